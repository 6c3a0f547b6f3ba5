//go:build !amd64

package simd

// Other architectures have no level but Generic, so none of these is reached.

func (t *Tile) vector(level Level, rows int) { t.generic(rows) }

func packRows(level Level, dst, src *float32, rows, cols, stride, width, depth int) {}

func packRows16(level Level, dst *float32, src *uint16, rows, cols, stride, width, depth int) {}

func addRows(level Level, sum, src *float32, rows, cols, stride int) {}

func addRows16(level Level, sum *float32, src *uint16, rows, cols, stride int) {}
