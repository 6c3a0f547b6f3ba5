package simulate

// Both register the strategies that tests name.
import (
	_ "starling/train/full"
	_ "starling/train/mini"
)
