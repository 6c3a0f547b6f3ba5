package simd

import "unsafe"

//go:generate sh -c "cd asm && go run ./amx -out ../amx_amd64.s -stubs ../amx_stubs_amd64.go -pkg simd"

func runTiles16(t *Tiles16, tiles int) {
	switch at := (*byte)(unsafe.Pointer(t)); tiles {
	case 1:
		tiles16By1(at)
	case 2:
		tiles16By2(at)
	case 3:
		tiles16By3(at)
	}
}

func runStrips16(t *Strips16, tiles int) {
	[...]func(*byte){1: strips16By1, strips16By2, strips16By3}[tiles]((*byte)(unsafe.Pointer(t)))
}

func runStripsWide(t *Strips16) { strips16Wide((*byte)(unsafe.Pointer(t))) }

func runOuter16(t *Outer16, tiles int) {
	run := [...]func(*byte){1: outer16By1, outer16By2, outer16By3}[tiles]
	if t.few() {
		run = outer16Few
	}
	run((*byte)(unsafe.Pointer(t)))
}

func runOuterSquare16(t *OuterSquare16, tiles int) {
	[...]func(*byte){1: outerSquare16By1, outerSquare16By2, outerSquare16By3}[tiles]((*byte)(unsafe.Pointer(t)))
}

func packPairs(dst, src *uint16, rows, cols, stride, panel int) {
	packPairs512(dst, src, rows/32, cols, 2*stride, 2*panel)
}

func packTransposed(dst, src *uint16, rows, cols, stride, drow int) {
	packTransposed512(dst, src, rows/32, cols, 2*stride, 2*drow)
}

func padRows(dst, src *uint16, rows, cols, stride, pitch int) {
	padRows512(dst, src, rows, cols, stride, pitch)
}

func runTiles32(t *Tiles32) { tiles32((*byte)(unsafe.Pointer(t))) }

func runTiles48(t *Tiles48) {
	switch of := (*byte)(unsafe.Pointer(t)); (t.Cols + 15) / 16 {
	case 1:
		tiles48By1(of)
	case 2:
		tiles48By2(of)
	default:
		tiles48By3(of)
	}
}

func runOuterThirds(t *Tiles48) {
	if t.Cols <= 16 {
		outerThirdsBy1((*byte)(unsafe.Pointer(t)))
	} else {
		outerThirdsBy2((*byte)(unsafe.Pointer(t)))
	}
}

func runHalves(t *Halves) { tilesHalves((*byte)(unsafe.Pointer(t))) }

func runOuterHalves(t *OuterHalves) { outerHalves((*byte)(unsafe.Pointer(t))) }

func runOuterSquareHalves(t *OuterSquareHalves) { outerSquareHalves((*byte)(unsafe.Pointer(t))) }

func columnScales(scale, back, src *float32, rows, cols, stride, headroom int) {
	columnScales512((*byte)(unsafe.Pointer(scale)), (*byte)(unsafe.Pointer(back)), (*byte)(unsafe.Pointer(src)), rows, cols, 4*stride, headroom)
}

func halveRows(dst *uint16, back, src *float32, rows, cols, stride int) {
	halveRows512((*byte)(unsafe.Pointer(dst)), (*byte)(unsafe.Pointer(back)), (*byte)(unsafe.Pointer(src)), rows, cols, 4*stride)
}

func halvePairs(dst *uint16, back, src *float32, rows, cols, stride, panel int, ahead uintptr) {
	halvePairs512((*byte)(unsafe.Pointer(dst)), (*byte)(unsafe.Pointer(back)), (*byte)(unsafe.Pointer(src)), rows, cols, 4*stride, 2*panel, ahead)
}

func splitRows(dst *uint16, src *float32, rows, cols, stride int) {
	splitRows512((*byte)(unsafe.Pointer(dst)), (*byte)(unsafe.Pointer(src)), rows, cols, 4*stride)
}

func splitPairs(dst *uint16, src *float32, rows, cols, stride, panel int) {
	splitPairs512((*byte)(unsafe.Pointer(dst)), (*byte)(unsafe.Pointer(src)), rows, cols, 4*stride, 2*panel)
}

func runOuterWide16(t *OuterWide16) { outerWide16((*byte)(unsafe.Pointer(t))) }
