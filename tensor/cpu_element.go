package tensor

import (
	"fmt"
	"unsafe"

	"starling/tensor/simd"
)

// Element-wise work reads and writes memory and computes little, so it is cut
// into chunks of rows that fit the second-level cache, each one call of a loop in
// package simd.

// block is the rows of m from row i on.
func (m Matrix) block(i int) simd.Block {
	if m.Rows <= i || m.Cols == 0 || m.IsZero() {
		return simd.Block{}
	}
	size := m.dtype.Size()
	b := simd.Block{Data: unsafe.Add(m.base(), i*m.stride*size), BF16: m.dtype == BF16, Far: m.Bytes() >= streamBytes}
	if m.Rows > 1 {
		b.Stride = m.stride * size
	}
	return b
}

// result is the block of a matrix that is computed from others.
func (m Matrix) result(i int, from ...simd.Block) simd.Block {
	return past(m.block(i), m.Bytes(), from...)
}

// turnedResult is result for what turns short rows (simd.ShortRow), if it does: where these are side by side they leave as
// whole lines all the same.
func (m Matrix) turnedResult(i int, turned bool, from ...simd.Block) simd.Block {
	b := m.result(i, from...)
	if turned && m.contiguous() {
		whole := b
		whole.Stride = 0
		b.Past = past(whole, m.Bytes(), from...).Past
		b.Stride = m.Cols * m.dtype.Size() // of one row too
	}
	return b
}

// past has a block of a matrix of so many bytes written past the caches if these will not
// hold it, unless its lines are in them anyway because they are read too.
func past(b simd.Block, bytes int64, from ...simd.Block) simd.Block {
	b.Past = bytes >= streamBytes && (uintptr(b.Data)|uintptr(b.Stride))&63 == 0
	for _, f := range from {
		b.Past = b.Past && f.Data != b.Data
	}
	return b
}

// vector is the numbers of a 1 x n parameter, or nil for none.
func (m Matrix) vector(op, name string, n int) *float32 {
	if m.IsZero() {
		return nil
	}
	if m.Rows*m.Cols != n || m.dtype != F32 || !m.contiguous() {
		panic(fmt.Sprintf("tensor: %s: %s is %v, want %d float32", op, name, m, n))
	}
	if n == 0 {
		return nil
	}
	return &m.f32[0]
}

// sameShape panics unless all matrices that are given have the shape of the first.
func sameShape(op string, first Matrix, others ...Matrix) {
	for _, m := range others {
		if !m.IsZero() && (m.Rows != first.Rows || m.Cols != first.Cols) {
			panic(fmt.Sprintf("tensor: %s: %v beside %v", op, m, first))
		}
	}
}

// noF64 panics when a matrix is float64: kernels compute in float32.
func noF64(op string, ms ...Matrix) {
	for _, m := range ms {
		if m.dtype == F64 {
			panic(fmt.Sprintf("tensor: %s of %v, want float32 or bfloat16", op, m))
		}
	}
}

// byRows runs body on chunks of rows of all matrices that are given, whole lines where rows are short and side by side.
func (c *CPU) byRows(ms []Matrix, body func(lo, hi int)) {
	c.forRows(ms[0].Rows, passChunk(ms[0].Rows, rowBytes(ms)), func(lo, hi, _, _ int) { body(lo, hi) })
}

// passChunk is how many rows make a chunk of what goes over rows once: up to a megabyte where there are many. A core waits
// where a chunk begins, for lines that nobody asked for, and where it ends, for those that go past the caches.
func passChunk(rows, rowBytes int) int {
	least := rowChunk(rowBytes)
	return wholeLines(min(4*least, max(least, rows/maxChunks)))
}

// rowBytes is how many bytes a row has of all matrices that are given.
func rowBytes(ms []Matrix) (bytes int) {
	for _, m := range ms {
		if !m.IsZero() {
			bytes += m.Cols * m.dtype.Size()
		}
	}
	return bytes
}

// Zero sets all numbers to zero.
func (c *CPU) Zero(m Matrix) {
	ms := []Matrix{m}
	rest := fold(repeats(flatRow, m.Cols), ms)
	past := m.Bytes() >= streamBytes
	c.byRows(ms, func(lo, hi int) {
		c.clearRows(ms[0].Slice(lo, hi), past)
		simd.Settle()
	})
	for _, r := range rest {
		c.clearRows(r, past)
	}
	simd.Settle()
}

// clearRows zeroes rows, past the caches if they are of a matrix that these do not hold.
func (c *CPU) clearRows(m Matrix, past bool) {
	switch {
	case m.Rows*m.Cols == 0:
	case !m.contiguous():
		for i := range m.Rows {
			c.clearRows(m.Slice(i, i+1), past)
		}
	case past:
		simd.ClearPast(c.level, m.bytes())
	default:
		clear(m.bytes())
	}
}

// Copy converts src to dst's type.
func (c *CPU) Copy(dst, src Matrix) {
	sameShape("Copy", dst, src)
	if dst.dtype == F64 || src.dtype == F64 {
		combineWide(dst, 1, src, 0, Matrix{})
		return
	}
	c.mapRows(dst, src, Matrix{}, simd.Map{})
}

// Combine computes a·x + b·y.
func (c *CPU) Combine(dst Matrix, a float64, x Matrix, b float64, y Matrix) {
	sameShape("Combine", dst, x, y)
	if dst.dtype == F64 || x.dtype == F64 || y.dtype == F64 {
		combineWide(dst, a, x, b, y)
		return
	}
	c.mapRows(dst, x, y, simd.Map{Combine: true, Alpha: float32(a), Beta: float32(b)})
}

// mapRows runs m on all rows.
func (c *CPU) mapRows(dst, src, other Matrix, m simd.Map) {
	if dst.Rows*dst.Cols == 0 {
		return
	}
	rows, cols, k := dst.Rows, dst.Cols, 1
	switch {
	case m.Drop.On:
		k = c.keptRows(cols)
	case m.Center == nil && m.Scale == nil && m.Bias == nil:
		k = repeats(flatRow, cols)
	default:
		k = repeats(foldRow, cols)
	}
	run := func(ms []Matrix) {
		c.byRows(ms, func(lo, hi int) {
			part := m
			part.Src, part.Other = ms[1].block(lo), ms[2].block(lo)
			part.Dst = ms[0].result(lo, part.Src, part.Other)
			part.Rows, part.Cols = hi-lo, ms[0].Cols
			drop, free := c.dropRows(m.Drop, rows, cols, ms[0], lo, hi)
			defer free()
			part.Drop = drop
			part.Run(c.level)
		})
	}
	ms := []Matrix{dst, src, other}
	if rest := fold(k, ms); rest != nil {
		run(rest)
		m.Center, m.Scale, m.Bias = repeated(m.Center, cols, k), repeated(m.Scale, cols, k), repeated(m.Bias, cols, k)
	}
	run(ms)
}

// get and set reach one number of any type. They serve the few small float64
// matrices of this device, the sums of batch norm.
func (m Matrix) get(i, j int) float64 {
	switch k := i*m.stride + j; m.dtype {
	case F32:
		return float64(m.f32[k])
	case BF16:
		return float64(simd.FromBF16(m.b16[k]))
	default:
		return m.f64[k]
	}
}

func (m Matrix) set(i, j int, x float64) {
	switch k := i*m.stride + j; m.dtype {
	case F32:
		m.f32[k] = float32(x)
	case BF16:
		m.b16[k] = simd.ToBF16(float32(x))
	default:
		m.f64[k] = x
	}
}

func combineWide(dst Matrix, a float64, x Matrix, b float64, y Matrix) {
	for i := range dst.Rows {
		for j := range dst.Cols {
			v := a * x.get(i, j)
			if !y.IsZero() {
				v += b * y.get(i, j)
			}
			dst.set(i, j, v)
		}
	}
}
