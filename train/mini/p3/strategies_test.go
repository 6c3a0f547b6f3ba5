package p3_test

import _ "starling/train/mini" // registers the strategies
