package dataset

import (
	"io"

	"github.com/klauspost/compress/flate"
)

func otherInflate(r io.Reader) io.ReadCloser { return flate.NewReader(r) }
