package simd

import "unsafe"

//go:generate sh -c "cd asm && go run ./gemm -out ../gemm_amd64.s -stubs ../gemm_stubs_amd64.go -pkg simd"
//go:generate sh -c "cd asm && go run ./transpose -out ../transpose_amd64.s -stubs ../transpose_stubs_amd64.go -pkg simd"

// tiles512 and tiles256 are the tiles by rows less one, by whether A is packed, and
// by whether the columns take one vector or two. The last of tiles512 has fourteen rows.
var tiles512 = [8][2][2]func(t *byte){
	{{tile512r1w1, tile512r1w2}, {tile512r1w1packed, tile512r1w2packed}},
	{{tile512r2w1, tile512r2w2}, {tile512r2w1packed, tile512r2w2packed}},
	{{tile512r3w1, tile512r3w2}, {tile512r3w1packed, tile512r3w2packed}},
	{{tile512r4w1, tile512r4w2}, {tile512r4w1packed, tile512r4w2packed}},
	{{tile512r5w1, tile512r5w2}, {tile512r5w1packed, tile512r5w2packed}},
	{{tile512r6w1, tile512r6w2}, {tile512r6w1packed, tile512r6w2packed}},
	{{tile512r7w1, tile512r7w2}, {tile512r7w1packed, tile512r7w2packed}},
	{{tile512r14w1, tile512r14w2}, {tile512r14w1packed, tile512r14w2packed}},
}

var tiles256 = [6][2][2]func(t *byte){
	{{tile256r1w1, tile256r1w2}, {tile256r1w1packed, tile256r1w2packed}},
	{{tile256r2w1, tile256r2w2}, {tile256r2w1packed, tile256r2w2packed}},
	{{tile256r3w1, tile256r3w2}, {tile256r3w1packed, tile256r3w2packed}},
	{{tile256r4w1, tile256r4w2}, {tile256r4w1packed, tile256r4w2packed}},
	{{tile256r5w1, tile256r5w2}, {tile256r5w1packed, tile256r5w2packed}},
	{{tile256r6w1, tile256r6w2}, {tile256r6w1packed, tile256r6w2packed}},
}

func (t *Tile) vector(level Level, rows int) {
	raw, packed := (*byte)(unsafe.Pointer(t)), 0
	if t.AStep != 4 {
		packed = 1
	}
	if level == AVX2 {
		tiles256[rows-1][packed][(t.Cols-1)>>3](raw)
		return
	}
	if rows > 7 && rows < 14 {
		a, c, upper := t.A, t.C, rows/2
		t.vector(level, upper)
		t.A, t.C = unsafe.Add(a, upper*t.ARow), unsafe.Add(c, upper*t.CRow)
		t.vector(level, rows-upper)
		t.A, t.C = a, c
		return
	}
	tiles512[min(rows, 8)-1][packed][(t.Cols-1)>>4](raw)
}

func runDots(t *Dots) { rowDots512((*byte)(unsafe.Pointer(t))) }

func runFan(t *Fan) { fan512((*byte)(unsafe.Pointer(t))) }

func runFanPast(t *FanPast) { fanPast512((*byte)(unsafe.Pointer(t))) }

func runOuter(t *Outer) {
	[3]func(*byte){outer512w1, outer512w2, outer512w3}[(t.Cols-1)/16]((*byte)(unsafe.Pointer(t)))
}

func runOuterSquare(t *OuterSquare) {
	run := outer512by48
	if t.Cols <= 40 {
		run = outer512by40
	}
	run((*byte)(unsafe.Pointer(t)))
}

func runOuterWide(t *OuterWide) { outerWide512((*byte)(unsafe.Pointer(t))) }

func runSquare(t *Square) {
	run := square512by48
	if squarePairs(t.Depth, t.Cols) {
		run = square512by40
	}
	run((*byte)(unsafe.Pointer(t)))
}

func transpose(dst, src *float32, dstStride, srcStride, blocks int) {
	transpose512(dst, src, 4*dstStride, 4*srcStride, blocks)
}

func copyLeft(dst, src *float32, rows, cols, stride int) {
	copyRows512(dst, src, rows, cols, 4*stride)
}

func (p Packing) rows(level Level, dst, src *float32, rows, cols, stride int) {
	pack := packRows256w1
	switch {
	case level >= AVX512 && p.Pitch == 16:
		pack = packRows512w1
	case level >= AVX512:
		pack = packRows512w2
	case p.Pitch == 16:
		pack = packRows256w2
	}
	pack(dst, src, rows, cols, 4*stride, p.Width, 4*p.Pitch*p.Depth)
}

func (p Packing) rows16(dst *float32, src *uint16, rows, cols, stride int) {
	if p.Pitch == 16 {
		packRows512w1b16(dst, src, rows, cols, 2*stride, p.Width, 4*p.Pitch*p.Depth)
	} else {
		packRows512w2b16(dst, src, rows, cols, 2*stride, p.Width, 4*p.Pitch*p.Depth)
	}
}

func addRows(level Level, sum, src []float32, rows, cols, stride int) {
	if level >= AVX512 {
		addRows512(&sum[0], &src[0], rows, cols, 4*stride)
		return
	}
	whole := cols &^ 7
	if whole > 0 {
		addRows256(&sum[0], &src[0], rows, whole, 4*stride)
	}
	for r := range rows {
		for c := whole; c < cols; c++ {
			sum[c] += src[r*stride+c]
		}
	}
}

func addRows16(sum *float32, src *uint16, rows, cols, stride int) {
	addRows512b16(sum, src, rows, cols, 2*stride)
}

func fmaLoop(level Level, steps int) int {
	if level >= AVX512 {
		fmaLoop512(steps)
		return steps * 28 * 16 * 2
	}
	fmaLoop256(steps)
	return steps * 12 * 8 * 2
}
