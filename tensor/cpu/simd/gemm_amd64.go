package simd

import "unsafe"

//go:generate sh -c "cd asm && go run ./gemm -out ../gemm_amd64.s -stubs ../gemm_stubs_amd64.go -pkg simd"
//go:generate sh -c "cd asm && go run ./transpose -out ../transpose_amd64.s -stubs ../transpose_stubs_amd64.go -pkg simd"

// tiles are all of a level, by whether A is packed: two vectors of columns by few rows, more
// and most, then one vector of
// columns by some rows and most.
type tiles [2]struct{ few, more, most, some1, most1 func(t *byte) }

var tiles512 = tiles{
	{tile512r4w2, tile512r6w2, tile512r14w2, tile512r6w1, tile512r14w1},
	{tile512r4w2packed, tile512r6w2packed, tile512r14w2packed, tile512r6w1packed, tile512r14w1packed},
}

var tiles256 = tiles{
	{few: tile256r4w2, more: tile256r6w2, some1: tile256r6w1},
	{few: tile256r4w2packed, more: tile256r6w2packed, some1: tile256r6w1packed},
}

func (t *Tile) vector(level Level, rows int) {
	all, lanes, packed := &tiles512, 16, 0
	if level == AVX2 {
		all, lanes = &tiles256, 8
	}
	if t.Cols > lanes && rows > 6 && rows < 13 {
		t.twice(level, rows)
		return
	}
	if t.AStep != 4 {
		packed = 1
	}
	t.rows = rows
	all.of(packed, rows, t.Cols > lanes)((*byte)(unsafe.Pointer(t)))
}

// twice computes rows that are nearer to two small tiles than to the largest one.
func (t *Tile) twice(level Level, rows int) {
	a, c, upper := t.A, t.C, 6
	if rows <= 8 {
		upper = 4
	}
	t.vector(level, upper)
	t.A, t.C = unsafe.Add(a, upper*t.ARow), unsafe.Add(c, upper*t.CRow)
	t.vector(level, rows-upper)
	t.A, t.C = a, c
}

// of is the smallest tile that has a number of rows.
func (all *tiles) of(packed, rows int, wide bool) func(t *byte) {
	switch t := all[packed]; {
	case wide && rows <= 4:
		return t.few
	case wide && rows <= 6:
		return t.more
	case wide:
		return t.most
	case rows <= 6:
		return t.some1
	default:
		return t.most1
	}
}

func runShortRows(t *ShortRows) { shortRows512((*byte)(unsafe.Pointer(t))) }

func runOuter(t *Outer) { outer512((*byte)(unsafe.Pointer(t))) }

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
