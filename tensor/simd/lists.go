package simd

import "unsafe"

// ListDepth is the most numbers a list is made of.
const ListDepth = 64

// List is a row without its zeros: of each other number its value, and its place times the bytes of
// a panel's row (see ListTile). After the last comes a zero at place 0, so that numbers can be taken in twos.
type List struct {
	offsets [ListDepth + 16]uint32
	values  [ListDepth + 16]float32
	count   int
	_       [56]byte // whole cache lines, an odd number of them
}

// Len is how many numbers the list has.
func (l *List) Len() int { return l.count }

// ListPanels is the most panels a tile takes: their sums fit in the registers, their rows in the nearest cache.
const ListPanels = 4

// ListPacking is how the right side of a product with lists is packed: in panels of two vectors. One row more than
// is used keeps panels from being a multiple of a page apart.
func ListPacking(level Level) Packing {
	if level >= AVX512 {
		return Packing{Width: 32, Pitch: 32, Depth: ListDepth + 1}
	}
	return Packing{Width: 16, Pitch: 16, Depth: ListDepth + 1}
}

// ListRows makes lists of rows of at most ListDepth numbers.
func ListRows(level Level, dst []List, src []float32, rows, cols, stride int) {
	if rows == 0 {
		return
	}
	if cols > ListDepth {
		panic("simd: a list of too many numbers")
	}
	_ = dst[rows-1]
	if level >= AVX512 && cols > 0 {
		_ = src[(rows-1)*stride+cols-1]
		listRows(&dst[0], &src[0], rows, cols, stride)
		return
	}
	step := uint32(4 * ListPacking(level).Pitch)
	for r := range rows {
		dst[r].fill(src[r*stride:r*stride+cols], step)
	}
}

// fill writes every number, zeros to where the next one goes: a jump would be guessed wrong every other time.
func (l *List) fill(row []float32, step uint32) {
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

// ListTile is a product with lists on its left side, C = A·B or C += A·B, a row of C for each list. B is packed by
// ListPacking. C has room for all columns of its panels.
type ListTile struct {
	Lists *List
	B, C  unsafe.Pointer
	CRow  int // bytes
	Rows  int
	Add   int
	// Ahead is memory the caller will need next: each list asks for two lines there and
	// moves on by AheadStep.
	Ahead     uintptr
	AheadStep int
}

// Run computes so many panels, at most ListPanels.
func (t *ListTile) Run(level Level, panels int) {
	switch {
	case t.Rows == 0:
	case level > Generic:
		runListTile(level, t, panels)
	default:
		t.generic(ListPacking(level), panels)
	}
}

// generic is the definition of Run.
func (t *ListTile) generic(p Packing, panels int) {
	for r, l := range unsafe.Slice(t.Lists, t.Rows) {
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
