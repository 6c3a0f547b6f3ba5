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

func runTwoWay(t *TwoWaySplit) { tilesTwoWay((*byte)(unsafe.Pointer(t))) }

func splitRowsTwoWay(dst *uint16, back *float32, ranges *uint32, src *float32, rows, cols, stride int) {
	splitRowsFP16(bytesAt(dst), bytesAt(back), bytesAt(ranges), bytesAt(src), rows, cols, 4*stride)
}

func splitPairsTwoWay(dst *uint16, back *float32, ranges *uint32, src *float32, rows, cols, stride, panel int) {
	splitPairsFP16(bytesAt(dst), bytesAt(back), bytesAt(ranges), bytesAt(src), rows, cols, 4*stride, 2*panel)
}

func splitRows(dst *uint16, ranges *uint32, src *float32, rows, cols, stride int) {
	splitRows512(bytesAt(dst), bytesAt(ranges), bytesAt(src), rows, cols, 4*stride)
}

func splitPairs(dst *uint16, ranges *uint32, src *float32, rows, cols, stride, panel int) {
	splitPairs512(bytesAt(dst), bytesAt(ranges), bytesAt(src), rows, cols, 4*stride, 2*panel)
}

func anyWide(ranges *uint32, n int, x *RangeBounds) bool {
	var found byte
	anyWide512(bytesAt(ranges), n, int(x.Least), int(x.Most), int(x.Span), int(x.Top), &found)
	return found != 0
}

func anyBelow(x, limit *float32, n int, factor float32) bool { return anyBelow512(x, limit, n, factor) }

// bytesAt is a pointer as generated functions take it.
func bytesAt[T any](p *T) *byte { return (*byte)(unsafe.Pointer(p)) }
