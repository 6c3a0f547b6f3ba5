package cpu

import (
	"fmt"
	"unsafe"

	"starling/tensor"
	"starling/tensor/bfloat"
	"starling/tensor/cpu/simd"
)

// Element-wise work reads and writes memory and computes little, so it is cut
// into chunks of rows that fit the second-level cache, each one call of a loop in
// package simd.

// block is the rows of m from row i on.
func blockOf(m Matrix, i int) simd.Block {
	if m.Rows <= i || m.Cols == 0 || m.IsZero() {
		return simd.Block{}
	}
	size := m.Type().Size()
	b := simd.Block{Data: unsafe.Add(baseOf(m), i*m.Stride()*size), BF16: m.Type() == BF16}
	if m.Rows > 1 {
		b.Stride = m.Stride() * size
	}
	return b
}

// result is the block of a matrix that is computed from others.
func resultOf(m Matrix, i int, from ...simd.Block) simd.Block {
	return nonTemporal(blockOf(m, i), m.Bytes(), from...)
}

// past has a block of a matrix of the given bytes written by non-temporal stores if these will not
// hold it, unless its lines are in them anyway because they are read too.
func nonTemporal(b simd.Block, bytes int64, from ...simd.Block) simd.Block {
	b.NonTemporal = bytes >= streamBytes && (uintptr(b.Data)|uintptr(b.Stride))&63 == 0
	for _, f := range from {
		b.NonTemporal = b.NonTemporal && f.Data != b.Data
	}
	return b
}

// vector is the numbers of a 1 x n parameter, or nil for none.
func vectorOf(m Matrix, op, name string, n int) *float32 {
	if m.IsZero() {
		return nil
	}
	if m.Rows*m.Cols != n || m.Type() != F32 || !m.Contiguous() {
		panic(fmt.Sprintf("tensor: %s: %s is %v, want %d float32", op, name, m, n))
	}
	if n == 0 {
		return nil
	}
	return &f32Of(m)[0]
}

// noF64 panics when a matrix is float64: kernels compute in float32.
func noF64(op string, ms ...Matrix) {
	for _, m := range ms {
		if m.Type() == F64 {
			panic(fmt.Sprintf("tensor: %s of %v, want float32 or bfloat16", op, m))
		}
	}
}

// byRows runs body on chunks of rows of all matrices that are given, whole lines where rows are short and side by side.
func (c *Device) byRows(ms []Matrix, body func(lo, hi int)) {
	c.forRows(ms[0].Rows, passChunk(ms[0].Rows, rowBytes(ms)), func(lo, hi, _, _ int) { body(lo, hi) })
}

// passChunk is how many rows make a chunk of what goes over rows once: up to a megabyte where
// there are many. A core waits
// where a chunk begins, for lines that were not prefetched, and where it ends, for those that
// go by non-temporal stores.
func passChunk(rows, rowBytes int) int {
	least := rowChunk(rowBytes)
	return wholeLines(min(4*least, max(least, rows/maxChunks)))
}

// rowBytes is how many bytes a row has of all matrices that are given.
func rowBytes(ms []Matrix) (bytes int) {
	for _, m := range ms {
		if !m.IsZero() {
			bytes += m.Cols * m.Type().Size()
		}
	}
	return bytes
}

// Zero sets all numbers to zero.
func (c *Device) Zero(m Matrix) {
	ms := []Matrix{m}
	rest := fold(repeats(flatRow, m.Cols), ms)
	past := m.Bytes() >= streamBytes
	c.byRows(ms, func(lo, hi int) {
		c.clearRows(ms[0].Slice(lo, hi), past)
		simd.StoreFence()
	})
	for _, r := range rest {
		c.clearRows(r, past)
	}
	simd.StoreFence()
}

// clearRows zeroes rows, by non-temporal stores if they are of a matrix that these do not hold.
func (c *Device) clearRows(m Matrix, past bool) {
	switch {
	case m.Rows*m.Cols == 0:
	case !m.Contiguous():
		for i := range m.Rows {
			c.clearRows(m.Slice(i, i+1), past)
		}
	case past:
		simd.ClearNonTemporal(c.level, bytesOf(m))
	default:
		clear(bytesOf(m))
	}
}

// Copy converts src to dst's type.
func (c *Device) Copy(dst, src Matrix) {
	tensor.NeedSameShape("Copy", dst, src)
	if dst.Type() == F64 || src.Type() == F64 {
		combineWide(dst, 1, src, 0, Matrix{})
		return
	}
	c.mapRows(dst, src, Matrix{}, simd.Map{})
}

// Combine computes a·x + b·y.
func (c *Device) Combine(dst Matrix, a float64, x Matrix, b float64, y Matrix) {
	tensor.NeedSameShape("Combine", dst, x, y)
	if dst.Type() == F64 || x.Type() == F64 || y.Type() == F64 {
		combineWide(dst, a, x, b, y)
		return
	}
	c.mapRows(dst, x, y, simd.Map{Combine: true, Alpha: float32(a), Beta: float32(b)})
}

// mapRows runs m on all rows.
func (c *Device) mapRows(dst, src, other Matrix, m simd.Map) {
	if dst.Rows*dst.Cols == 0 {
		return
	}
	rows, cols, k := dst.Rows, dst.Cols, 1
	switch {
	case m.Drop.On:
		k = c.keptRows(cols, m.Drop)
	case m.Center == nil && m.Scale == nil && m.Bias == nil:
		k = repeats(flatRow, cols)
	default:
		k = repeats(foldRow, cols)
	}
	run := func(ms []Matrix) {
		c.byRows(ms, func(lo, hi int) {
			part := m
			part.Src, part.Other = blockOf(ms[1], lo), blockOf(ms[2], lo)
			part.Dst = resultOf(ms[0], lo, part.Src, part.Other)
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
func numberAt(m Matrix, i, j int) float64 {
	switch k := i*m.Stride() + j; m.Type() {
	case F32:
		return float64(f32Of(m)[k])
	case BF16:
		return float64(bfloat.Widen(b16Of(m)[k]))
	default:
		return f64Of(m)[k]
	}
}

func setNumber(m Matrix, i, j int, x float64) {
	switch k := i*m.Stride() + j; m.Type() {
	case F32:
		f32Of(m)[k] = float32(x)
	case BF16:
		b16Of(m)[k] = bfloat.Round(float32(x))
	default:
		f64Of(m)[k] = x
	}
}

func combineWide(dst Matrix, a float64, x Matrix, b float64, y Matrix) {
	for i := range dst.Rows {
		for j := range dst.Cols {
			v := a * numberAt(x, i, j)
			if !y.IsZero() {
				v += b * numberAt(y, i, j)
			}
			setNumber(dst, i, j, v)
		}
	}
}
