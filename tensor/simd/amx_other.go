//go:build !amd64

package simd

// Other architectures have no level but Generic, so none of these is reached.

func runTiles16(t *Tiles16, tiles int) {}

func runStrips16(t *Strips16, tiles int) {}

func runStripsWide(t *Strips16) {}

func runOuter16(t *Outer16, tiles int) {}

func runOuterWide16(t *OuterWide16) {}

func runOuterSquare16(t *OuterSquare16, tiles int) {}

func packPairs(dst, src *uint16, rows, cols, stride, panel int) {}

func packTransposed(dst, src *uint16, rows, cols, stride, drow int) {}

func padRows(dst, src *uint16, rows, cols, stride, pitch int) {}

func runTiles32(*Tiles32) {}

func runTiles48(*Tiles48)     {}
func runOuterThirds(*Tiles48) {}

func splitRows(dst *uint16, src *float32, rows, cols, stride int) {}

func splitPairs(dst *uint16, src *float32, rows, cols, stride, panel int) {}

func runHalves(*Halves) {}

func runOuterHalves(*OuterHalves) {}

func runOuterSquareHalves(*OuterSquareHalves) {}

func columnScales(*float32, *float32, *float32, int, int, int, int) {}

func halveRows(dst *uint16, back, src *float32, rows, cols, stride int) {}

func halvePairs(*uint16, *float32, *float32, int, int, int, int, uintptr) {}
