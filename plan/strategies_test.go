package plan

import (
	_ "starling/train/full" // registers the strategies that tests name
	_ "starling/train/mini" // likewise
)
