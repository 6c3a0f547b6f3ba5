package simd

import "unsafe"

// CompressedDepth is the most numbers a list is made of.
const CompressedDepth = 64

// CompressedRow is a row without its zeros: of each other number its value, and its place times the bytes of
// a panel's row (see CompressedTile). After the last comes a zero at place 0, so that numbers can be taken in twos.
type CompressedRow struct {
	offsets [CompressedDepth + 16]uint32
	values  [CompressedDepth + 16]float32
	count   int
	_       [56]byte // whole cache lines, an odd number of them
}

// Len is how many numbers the list has.
func (l *CompressedRow) Len() int { return l.count }

// CompressedPanels is the most panels a tile takes: their sums fit in the registers, their rows in the nearest cache.
const CompressedPanels = 4

// CompressedPacking is how the right side of a product with lists is packed: in panels of two
// vectors. One row more than
// is used keeps panels from being a multiple of a page apart.
func CompressedPacking(level Level) Packing {
	if level >= AVX512 {
		return Packing{Width: 32, Pitch: 32, Depth: CompressedDepth + 1}
	}
	return Packing{Width: 16, Pitch: 16, Depth: CompressedDepth + 1}
}

// CompressRows makes lists of rows of at most CompressedDepth numbers.
func CompressRows(level Level, dst []CompressedRow, src []float32, rows, cols, stride int) {
	if rows == 0 {
		return
	}
	if cols > CompressedDepth {
		panic("simd: a list of too many numbers")
	}
	_ = dst[rows-1]
	if level >= AVX512 && cols > 0 {
		_ = src[(rows-1)*stride+cols-1]
		compressRows(&dst[0], &src[0], rows, cols, stride)
		return
	}
	step := uint32(4 * CompressedPacking(level).Pitch)
	for r := range rows {
		dst[r].fill(src[r*stride:r*stride+cols], step)
	}
}

// fill writes every number, zeros to where the next one goes: a jump would be mispredicted every other time.
func (l *CompressedRow) fill(row []float32, step uint32) {
	n, offset := 0, uint32(0)
	for _, x := range row {
		l.offsets[n], l.values[n] = offset, x
		if x != 0 {
			n++
		}
		offset += step
	}
	l.offsets[n], l.values[n], l.count = 0, 0, n
}

// CompressedTile is a product with lists on its left side, C = A·B or C += A·B, a row of C for
// each list. B is packed by
// CompressedPacking. C holds all columns of its panels.
type CompressedTile struct {
	Compressed *CompressedRow
	B, C       unsafe.Pointer
	CRow       int // bytes
	Rows       int
	Add        int
	// Ahead is memory the caller will need next: each list asks for two lines there and
	// moves on by AheadStep.
	Ahead     uintptr
	AheadStep int
}

// Run computes a number of panels, at most CompressedPanels.
func (t *CompressedTile) Run(level Level, panels int) {
	switch {
	case t.Rows == 0:
	case level > Generic:
		runCompressedTile(level, t, panels)
	default:
		t.generic(CompressedPacking(level), panels)
	}
}

// generic is the definition of Run.
func (t *CompressedTile) generic(p Packing, panels int) {
	for r, l := range unsafe.Slice(t.Compressed, t.Rows) {
		c := unsafe.Slice((*float32)(unsafe.Add(t.C, r*t.CRow)), panels*p.Width)
		for j := range c {
			panel := unsafe.Add(t.B, 4*(j/p.Width*p.Depth*p.Pitch+j%p.Width))
			sum := float32(0)
			for i, x := range l.values[:l.count] {
				sum += x * *(*float32)(unsafe.Add(panel, l.offsets[i]))
			}
			if t.Add != 0 {
				sum += c[j]
			}
			c[j] = sum
		}
	}
}
