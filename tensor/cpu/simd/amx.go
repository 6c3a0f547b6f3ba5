package simd

import (
	"unsafe"

	"starling/tensor/bfloat"
)

// Tiles16 is a product of bfloat16 numbers summed in float32, C = A·B or C += A·B,
// on AMX. A is Rows rows of Depth bfloat16, ARow bytes apart. B is packed in panels of 32 columns, one
// after another; for each block of 32 rows of B a panel holds two tiles, the left and
// the right 16 columns, and a tile holds rows two by two:
//
//	tile:  16 lines, line r:  B[2r][0] B[2r+1][0]  B[2r][1] B[2r+1][1]  ...
//
// Where depth is no multiple of 32 the last block of A is the last 32 numbers of a row, some of which
// were in the block before: B has zeros for these (see pairPlace). So nothing but a row's own numbers is read,
// and rows need not be padded; only a row of fewer than 32 numbers has to have an even number of them.
//
// Rows are a multiple of RowStep: A and C have space for those past the last.
type Tiles16 struct {
	A, B, C      unsafe.Pointer
	ARow, CRow   int
	blocks, last int // of depth; bytes that the last block is nearer than 64 to the one before
	rows, panels int // blocks of rows, panels of columns
	Add          int
	// Ahead is memory the caller will need next, up to AheadEnd, and Then, in pieces of 256 bytes: in each step of
	// depth AheadStep bytes more of it are asked for.
	Ahead, AheadEnd, Then uintptr
	AheadStep             int
	config                tileConfig

	Rows, Cols, Depth int
}

// tileConfig is how many rows, and bytes of a row, each of AMX's eight tiles has.
type tileConfig struct {
	palette byte
	_       [15]byte
	bytes   [16]uint16
	rows    [16]byte
}

// stripRows is how many rows are computed together with panels of one tile, of two and of three.
var stripRows = [...]int{1: 64, 2: 32, 3: 16}

// RowStep is what rows are a multiple of, given the number of columns.
func RowStep(cols int) int {
	if cols > 48 {
		return 32
	}
	return stripRows[(cols+15)/16]
}

// Run computes the product.
func (t *Tiles16) Run(level Level) {
	if level >= AMX {
		t.run()
		return
	}
	for i := range t.Rows {
		a := unsafe.Slice((*uint16)(unsafe.Add(t.A, i*t.ARow)), t.Depth)
		c := unsafe.Slice((*float32)(unsafe.Add(t.C, i*t.CRow)), t.Cols)
		for j := range c {
			panel := unsafe.Slice((*uint16)(unsafe.Add(t.B, j/32*PanelSize(t.Depth)*2)), PanelSize(t.Depth))
			var sum float32
			for k, x := range a {
				sum += bfloat.Widen(x) * bfloat.Widen(panel[pairPlace(k, j&31, t.Depth)])
			}
			if t.Add != 0 {
				sum += c[j]
			}
			c[j] = sum
		}
	}
}

// run does whole panels first, then the columns that are left: in a panel of their own or, where that
// would be half empty, together with the panel before.
func (t *Tiles16) run() {
	t.blocks, t.last = (t.Depth+31)/32, 0
	if t.Depth > 32 {
		t.last = 2*t.Depth - 64*t.blocks
	}
	whole, left := t.columns()
	if whole > 0 {
		t.panels = whole
		t.strips(2, 32)
	}
	if left == 0 {
		return
	}
	b, c := t.B, t.C
	t.B, t.C = unsafe.Add(t.B, 2*PanelSize(t.Depth)*whole), unsafe.Add(t.C, 128*whole)
	t.panels = 1
	t.strips((left+15)/16, left)
	t.B, t.C = b, c
}

// columns is how many panels of 32 columns are computed as such, and how many columns are left, up to 48.
func (t *Tiles16) columns() (whole, left int) {
	whole, left = t.Cols/32, t.Cols%32
	if whole > 0 && left > 0 && left <= 16 {
		return whole - 1, left + 32
	}
	return whole, left
}

// strips computes panels of a number of tiles, the last as narrow as these columns make it.
func (t *Tiles16) strips(tiles, cols int) {
	t.rows = t.Rows / stripRows[tiles]
	depth, right := min(32, t.Depth), 8-tiles
	t.config.palette = 1
	for i := range 8 {
		t.config.rows[i], t.config.bytes[i] = 16, 64
		switch last := i == 7 || i < 4 && i%tiles == tiles-1; {
		case i == 4 || i == 5 && i < right:
			t.config.bytes[i] = uint16(2 * depth)
		case last:
			t.config.bytes[i] = uint16(4 * (cols - 16*tiles + 16))
		}
		if i >= right {
			t.config.rows[i] = byte(depth / 2)
		}
	}
	runTiles16(t, tiles)
}

// Ask has the n bytes from first on and then the m from second on asked for, spread over all steps of the product.
func (t *Tiles16) Ask(first, second uintptr, n, m int) {
	whole, left := t.columns()
	blocks := whole * t.Rows / 32
	if left > 0 {
		blocks += t.Rows / stripRows[(left+15)/16]
	}
	steps := blocks * ((t.Depth + 31) / 32)
	up := func(n int) int { return (n + 255) &^ 255 }
	t.Ahead, t.AheadEnd, t.Then = first, first+uintptr(up(n)), second
	t.AheadStep = up((n + m + steps - 1) / steps)
}

// PanelSize is how many numbers a panel of a number of rows has.
func PanelSize(depth int) int { return (depth + 31) &^ 31 * 32 }

// pairPlace is where a panel of a number of rows keeps the number of row k, column j.
func pairPlace(k, j, depth int) int {
	block := k >> 5
	if k &= 31; block > 0 && block == depth>>5 { // in the last block, which ends with the last row
		k += 32 - depth&31
	}
	return block<<10 | j>>4<<9 | k>>1<<5 | j&15<<1 | k&1
}

// PackPairs packs rows x cols numbers, a whole number of blocks of 32 rows, for
// Tiles16. Panels are panel numbers apart.
func PackPairs(level Level, dst, src []uint16, rows, cols, stride, panel int) {
	if rows == 0 || cols == 0 {
		return
	}
	_, _ = dst[(cols-1)/32*panel+rows*32-1], src[(rows-1)*stride+cols-1]
	if level >= AVX512 {
		packPairs(&dst[0], &src[0], rows, cols, stride, panel)
		return
	}
	for k := range rows {
		for j := range (cols + 31) &^ 31 {
			x := uint16(0)
			if j < cols {
				x = src[k*stride+j]
			}
			dst[j/32*panel+pairPlace(k, j&31, rows)] = x
		}
	}
}

// PackPairsPanel packs one panel for Tiles16 of a depth from float32: columns [lo, lo+32) of
// the rows x cols matrix src, or of its transpose; zeros past the last column, and past the last row.
func PackPairsPanel(dst []uint16, src []float32, rows, cols, stride, lo, depth int, transposed bool) {
	clear(dst[:PanelSize(depth)])
	for j := range min(32, cols-lo) {
		for k := range rows {
			x := 0
			if transposed {
				x = (lo+j)*stride + k
			} else {
				x = k*stride + lo + j
			}
			dst[pairPlace(k, j, depth)] = bfloat.Round(src[x])
		}
	}
}

// PackTransposed writes the transpose of rows x cols numbers, a whole number of
// blocks of 32 rows, as rows drow apart. Columns are rounded up to 16, with zeros.
func PackTransposed(level Level, dst, src []uint16, rows, cols, stride, drow int) {
	if rows == 0 || cols == 0 {
		return
	}
	wide := (cols + 15) &^ 15
	_, _ = dst[(wide-1)*drow+rows-1], src[(rows-1)*stride+cols-1]
	if level >= AVX512 {
		packTransposed(&dst[0], &src[0], rows, cols, stride, drow)
		return
	}
	for j := range wide {
		for k := range rows {
			x := uint16(0)
			if j < cols {
				x = src[k*stride+j]
			}
			dst[j*drow+k] = x
		}
	}
}

// PadRows copies rows of cols numbers to where they are pitch apart, with zeros after them up to a multiple of 32, or
// to the next row.
func PadRows(level Level, dst, src []uint16, rows, cols, stride, pitch int) {
	if rows == 0 || cols == 0 {
		return
	}
	end := min(pitch, (cols+31)&^31)
	_, _ = dst[(rows-1)*pitch+end-1], src[(rows-1)*stride+cols-1]
	if level >= AVX512 {
		padRows(&dst[0], &src[0], rows, cols, stride, pitch)
		return
	}
	for i := range rows {
		d := dst[i*pitch : i*pitch+end]
		clear(d[copy(d, src[i*stride:i*stride+cols]):])
	}
}
