package distdgl_test

import _ "starling/train/mini" // registers the strategies
