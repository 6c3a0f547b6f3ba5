package simd

import (
	"unsafe"

	"starling/tensor/bfloat"
)

// Tile is one step of a dense product: C = A·B, or C += A·B, for a tile of C that
// fits in the registers. The tile has at most as many rows and columns as
// TileShape says; B is one packed panel (see PackPanels), K rows of the tile's
// full width, so that it is read front to back. A is read one number at a time, at
// A + row·ARow + k·AStep, from either of two layouts: rows LeftPitch apart (CopyLeft),
// or a packed panel of columns (Packing, with the pitch of TileShape's rows rounded up
// to whole vectors). There is space for TileShape's rows of it, of which those past the tile's
// may have any content. All
// steps are in bytes.
type Tile struct {
	A, B, C     unsafe.Pointer
	ARow, AStep int
	CRow        int
	K           int
	Cols        int // columns of C that are stored
	Add         int // 1: add to C; 0: overwrite it
	// Ahead is memory the caller will need next. Each step of k asks for the line
	// at Ahead and moves on by AheadStep. It is an address, not a pointer: it may lie
	// outside any matrix.
	Ahead     uintptr
	AheadStep int
	rows      int // that are stored
}

// TileShape is the largest tile of a level.
func TileShape(level Level) (rows, cols int) {
	switch {
	case level >= AVX512:
		return 14, 32 // 28 registers of sums, two of B, two of A
	case level == AVX2:
		return 6, 16 // 12 of sums, two of B, two of A
	}
	return 4, 4
}

// LeftDepth is the largest K of a tile that reads rows of A, which are LeftPitch
// numbers apart: fixed, so that addresses are simple, and no power of two, so that rows do not
// all fall into the same few cache sets.
const (
	LeftDepth = 256
	LeftPitch = LeftDepth + 16
)

// CopyLeft copies rows of at most LeftDepth numbers to where tiles read them. Of
// the numbers past the last column, up to the pitch, some get any content.
func CopyLeft(level Level, dst, src []float32, rows, cols, stride int) {
	if rows == 0 || cols == 0 {
		return
	}
	_, _ = dst[rows*LeftPitch-1], src[(rows-1)*stride+cols-1]
	if level >= AVX512 {
		copyLeft(&dst[0], &src[0], rows, cols, stride)
		return
	}
	for r := range rows {
		copy(dst[r*LeftPitch:r*LeftPitch+cols], src[r*stride:])
	}
}

// Run computes the tile's first rows rows.
func (t *Tile) Run(level Level, rows int) {
	if level == Generic {
		t.generic(rows)
		return
	}
	t.vector(level, rows)
}

// generic is the definition of Run, in blocks of up to 4x4.
func (t *Tile) generic(rows int) {
	const width = 4
	var sum [4][width]float32
	b := t.B
	if rows == 4 {
		sum = t.generic4()
	} else {
		for k := range t.K {
			row := (*[width]float32)(unsafe.Add(b, k*width*4))
			for i := range rows {
				a := *(*float32)(unsafe.Add(t.A, i*t.ARow+k*t.AStep))
				for j, x := range row {
					sum[i][j] += a * x
				}
			}
		}
	}
	for i := range rows {
		c := unsafe.Slice((*float32)(unsafe.Add(t.C, i*t.CRow)), t.Cols)
		for j := range c {
			if t.Add != 0 {
				c[j] += sum[i][j]
			} else {
				c[j] = sum[i][j]
			}
		}
	}
}

// generic4 is a full tile with the sums in variables, which the compiler keeps in
// registers where it has enough.
func (t *Tile) generic4() (sum [4][4]float32) {
	a, b := t.A, t.B
	var s00, s01, s02, s03, s10, s11, s12, s13 float32
	var s20, s21, s22, s23, s30, s31, s32, s33 float32
	for range t.K {
		x := (*[4]float32)(b)
		x0, x1, x2, x3 := x[0], x[1], x[2], x[3]
		a0 := *(*float32)(a)
		s00 += a0 * x0
		s01 += a0 * x1
		s02 += a0 * x2
		s03 += a0 * x3
		a1 := *(*float32)(unsafe.Add(a, t.ARow))
		s10 += a1 * x0
		s11 += a1 * x1
		s12 += a1 * x2
		s13 += a1 * x3
		a2 := *(*float32)(unsafe.Add(a, 2*t.ARow))
		s20 += a2 * x0
		s21 += a2 * x1
		s22 += a2 * x2
		s23 += a2 * x3
		a3 := *(*float32)(unsafe.Add(a, 3*t.ARow))
		s30 += a3 * x0
		s31 += a3 * x1
		s32 += a3 * x2
		s33 += a3 * x3
		a = unsafe.Add(a, t.AStep)
		b = unsafe.Add(b, 16)
	}
	return [4][4]float32{{s00, s01, s02, s03}, {s10, s11, s12, s13}, {s20, s21, s22, s23}, {s30, s31, s32, s33}}
}

// Panels is the number of panels of the given width that hold cols columns.
func Panels(cols, width int) int { return (cols + width - 1) / width }

// PackPanel writes columns [lo, lo+width) of the rows x cols matrix src as one
// panel: row after row, each of the full width, zeros past the last column.
func PackPanel(dst, src []float32, rows, cols, stride, lo, width int) {
	n := min(width, cols-lo)
	for r := range rows {
		d := dst[r*width : (r+1)*width]
		copy(d, src[r*stride+lo:r*stride+lo+n])
		clear(d[n:])
	}
}

// PackPanelTransposed is PackPanel for the transpose of src: row r of the panel is
// column r of src, its columns are rows [lo, lo+width) of src, which has n rows.
func PackPanelTransposed(level Level, dst, src []float32, rows, n, stride, lo, width int) {
	for j := 0; j < width && rows > 0; j += 16 {
		panel := dst[j:]
		have := max(0, min(16, width-j, n-lo-j))
		if have < min(16, width-j) {
			for r := range rows {
				clear(panel[r*width+have : r*width+min(16, width-j)])
			}
		}
		if have > 0 {
			transposeRows(level, panel, src[(lo+j)*stride:], have, rows, width, stride)
		}
	}
}

// transposeRows writes rows of src, each of cols numbers, as columns of dst.
func transposeRows(level Level, dst, src []float32, rows, cols, dstStride, srcStride int) {
	done := 0
	if rows == 16 && level >= AVX512 && cols >= 16 {
		done = cols &^ 15
		_, _ = dst[(done-1)*dstStride+15], src[15*srcStride+done-1]
		transpose(&dst[0], &src[0], dstStride, srcStride, done/16)
	}
	for r := range rows {
		for c, x := range src[r*srcStride+done : r*srcStride+cols] {
			dst[(done+c)*dstStride+r] = x
		}
	}
}

// Packing says how PackRows lays out panels: number (r, c) goes to panel c/Width,
// row r, place c%Width. Rows of a panel are Pitch numbers apart, panels Depth rows.
// Places past Width, or past the last column, get any content.
type Packing struct{ Width, Pitch, Depth int }

// Size is how many numbers the panels of cols columns take.
func (p Packing) Size(cols int) int { return Panels(cols, p.Width) * p.Depth * p.Pitch }

// PackRows packs rows of cols numbers.
func (p Packing) PackRows(level Level, dst, src []float32, rows, cols, stride int) {
	if rows == 0 || cols == 0 {
		return
	}
	_, _ = dst[p.Size(cols)-1], src[(rows-1)*stride+cols-1]
	if level > Generic {
		p.rows(level, &dst[0], &src[0], rows, cols, stride)
		return
	}
	for r := range rows {
		for c, x := range src[r*stride : r*stride+cols] {
			dst[(c/p.Width*p.Depth+r)*p.Pitch+c%p.Width] = x
		}
	}
}

// PackRows16 is PackRows from bfloat16.
func (p Packing) PackRows16(level Level, dst []float32, src []uint16, rows, cols, stride int) {
	if rows == 0 || cols == 0 {
		return
	}
	_, _ = dst[p.Size(cols)-1], src[(rows-1)*stride+cols-1]
	if level >= AVX512 {
		p.rows16(&dst[0], &src[0], rows, cols, stride)
		return
	}
	for r := range rows {
		for c, x := range src[r*stride : r*stride+cols] {
			dst[(c/p.Width*p.Depth+r)*p.Pitch+c%p.Width] = bfloat.Widen(x)
		}
	}
}

// AddRows adds rows of cols numbers to sum.
func AddRows(level Level, sum, src []float32, rows, cols, stride int) {
	if rows == 0 || cols == 0 {
		return
	}
	_, _ = sum[cols-1], src[(rows-1)*stride+cols-1]
	if level > Generic {
		addRows(level, sum, src, rows, cols, stride)
		return
	}
	for r := range rows {
		for c, x := range src[r*stride : r*stride+cols] {
			sum[c] += x
		}
	}
}

// AddRows16 is AddRows from bfloat16.
func AddRows16(level Level, sum []float32, src []uint16, rows, cols, stride int) {
	if rows == 0 || cols == 0 {
		return
	}
	_, _ = sum[cols-1], src[(rows-1)*stride+cols-1]
	if level >= AVX512 {
		addRows16(&sum[0], &src[0], rows, cols, stride)
		return
	}
	for r := range rows {
		for c, x := range src[r*stride : r*stride+cols] {
			sum[c] += bfloat.Widen(x)
		}
	}
}

// FMALoop does nothing but multiply and add in registers and returns how many
// floating-point operations that was: the speed dense multiplication is measured
// against. One step is a few nanoseconds.
func FMALoop(level Level, steps int) int {
	if level > Generic && steps > 0 {
		return fmaLoop(level, steps)
	}
	var s [8]float32
	for range steps {
		for i := range s {
			s[i] += s[i] * 0.5
		}
	}
	return steps * 2 * len(s)
}
