package simd

import "unsafe"

// Tiles16 is a product of bfloat16 numbers summed in float32, C = A·B or C += A·B,
// on the matrix unit: Rows blocks of 32 rows by Panels panels of 32 columns, over
// Depth blocks of 32. A is rows of bfloat16, ARow bytes apart. B is packed in panels, one
// after another; for each block of 32 rows of B a panel holds two tiles, the left and
// the right 16 columns, and a tile holds rows two by two:
//
//	tile:  16 lines, line r:  B[2r][0] B[2r+1][0]  B[2r][1] B[2r+1][1]  ...
//
// All sizes are whole: the caller pads with zeros, and with room in C.
type Tiles16 struct {
	A, B, C    unsafe.Pointer
	ARow, CRow int
	Depth      int
	Rows       int
	Panels     int
	Add        int
	// Ahead is memory the caller will need next: 512 bytes from it are asked for in each
	// step of depth, AheadStep further each time.
	Ahead     uintptr
	AheadStep int
}

// Run computes the product.
func (t *Tiles16) Run(level Level) {
	if level >= AMX {
		runTiles16(t)
		return
	}
	for p := range t.Panels {
		panel := unsafe.Slice((*uint16)(unsafe.Add(t.B, p*t.Depth*2048)), t.Depth*1024)
		for i := range t.Rows * 32 {
			a := unsafe.Slice((*uint16)(unsafe.Add(t.A, i*t.ARow)), t.Depth*32)
			c := unsafe.Slice((*float32)(unsafe.Add(t.C, i*t.CRow+p*128)), 32)
			for j := range c {
				var sum float32
				for k, x := range a {
					sum += FromBF16(x) * FromBF16(panel[pairPlace(k, j)])
				}
				if t.Add != 0 {
					sum += c[j]
				}
				c[j] = sum
			}
		}
	}
}

// pairPlace is where a panel keeps the number of row k, column j.
func pairPlace(k, j int) int { return k>>5<<10 | j>>4<<9 | k>>1&15<<5 | j&15<<1 | k&1 }

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
			dst[j/32*panel+pairPlace(k, j&31)] = x
		}
	}
}

// PackPairsPanel packs one panel for Tiles16 from float32: columns [lo, lo+32) of
// the rows x cols matrix src, or of its transpose; zeros past the last column, and past
// the last row up to depth blocks of 32.
func PackPairsPanel(dst []uint16, src []float32, rows, cols, stride, lo, depth int, transposed bool) {
	clear(dst[:depth*1024])
	for j := range min(32, cols-lo) {
		for k := range rows {
			x := 0
			if transposed {
				x = (lo+j)*stride + k
			} else {
				x = k*stride + lo + j
			}
			dst[pairPlace(k, j)] = ToBF16(src[x])
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
