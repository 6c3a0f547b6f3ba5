package tensor

import (
	"unsafe"

	"starling/tensor/simd"
)

// Zeros takes rows apart into bits, one a number that says whether it is not zero, and the
// numbers whose bits are set. Nothing is rounded: -0 is not zero here, nor is NaN.
type Zeros interface {
	// NotZero: bits = those of src, in BitBytes bytes.
	NotZero(bits []byte, src Matrix)
	// Compress writes the numbers of src whose bits are set to dst, row after row, and returns
	// how many bytes they take. The bits may be those of other rows.
	Compress(dst []byte, src Matrix, bits []byte) int
	// Expand: dst = the numbers that Compress wrote to src, and zeros elsewhere.
	// REQUIRES: src has just these, and no bit is beyond the last column (see CountBits).
	Expand(dst Matrix, src, bits []byte)
}

// BitBytes is what the bits of rows take, each in whole words of 32.
func BitBytes(rows, cols int) int { return 4 * rows * bitWords(cols) }

func bitWords(cols int) int { return (cols + 31) / 32 }

// CountBits is how many bits of rows are set. ok is false where one is beyond the last column.
func CountBits(bits []byte, cols int) (n int, ok bool) {
	words := cast[uint32](bits, len(bits)/4)
	if cols%32 != 0 {
		for last := bitWords(cols) - 1; last < len(words); last += bitWords(cols) {
			if words[last]>>(cols%32) != 0 {
				return 0, false
			}
		}
	}
	return simd.CountBits(words), true
}

func needBits(op string, bits []byte, m Matrix) {
	need(len(bits) == BitBytes(m.Rows, m.Cols), "%s: bits of %d bytes for %v", op, len(bits), m)
}

// bitsOf are those of rows lo to hi.
func bitsOf(bits []byte, lo, hi, cols int) []uint32 {
	return cast[uint32](bits[BitBytes(lo, cols):], (hi-lo)*bitWords(cols))
}

// eachChunk runs body on chunks of rows, at the same time where there is a pool. at is how
// many bits are set before a chunk; the result, in all.
func eachChunk(p *pool, m Matrix, bits []byte, body func(lo, hi, at int)) (total int) {
	size := rowChunk(m.Cols * m.dtype.Size())
	var starts []int
	for lo := 0; lo < m.Rows; lo += size {
		starts = append(starts, total)
		total += simd.CountBits(bitsOf(bits, lo, min(m.Rows, lo+size), m.Cols))
	}
	if p == nil {
		for c, at := range starts {
			body(c*size, min(m.Rows, (c+1)*size), at)
		}
		return total
	}
	p.forRows(m.Rows, size, func(lo, hi, c, _ int) { body(lo, hi, starts[c]) })
	return total
}

// words are numbers of a matrix by their bits: row i begins at i*stride.
func words[T uint16 | uint32 | uint64](m Matrix) []T {
	n := max(len(m.f32), len(m.b16), len(m.f64))
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(m.base()), n)
}

func notZero[T uint16 | uint32 | uint64](level simd.Level, bits []byte, m Matrix, lo, hi int) {
	x := words[T](m)
	for i := lo; i < hi; i++ {
		simd.NotZero(level, bitsOf(bits, i, i+1, m.Cols), x[i*m.stride:i*m.stride+m.Cols])
	}
}

func compress[T uint16 | uint32 | uint64](p *pool, level simd.Level, dst []byte, m Matrix, bits []byte) int {
	x, to := words[T](m), cast[T](dst, len(dst)/m.dtype.Size())
	return m.dtype.Size() * eachChunk(p, m, bits, func(lo, hi, at int) {
		for i := lo; i < hi; i++ {
			at += simd.Compress(level, to[at:], x[i*m.stride:i*m.stride+m.Cols], bitsOf(bits, i, i+1, m.Cols))
		}
	})
}

func expand[T uint16 | uint32 | uint64](p *pool, level simd.Level, m Matrix, src, bits []byte) {
	x, from := words[T](m), cast[T](src, len(src)/m.dtype.Size())
	eachChunk(p, m, bits, func(lo, hi, at int) {
		for i := lo; i < hi; i++ {
			at += simd.Expand(level, x[i*m.stride:i*m.stride+m.Cols], from[at:], bitsOf(bits, i, i+1, m.Cols))
		}
	})
}

func (c *CPU) NotZero(bits []byte, src Matrix) {
	needRows("NotZero", src, src.Rows, src.Cols)
	needBits("NotZero", bits, src)
	c.forRows(src.Rows, rowChunk(src.Cols*src.dtype.Size()), func(lo, hi, _, _ int) {
		if src.dtype == BF16 {
			notZero[uint16](c.level, bits, src, lo, hi)
		} else {
			notZero[uint32](c.level, bits, src, lo, hi)
		}
	})
}

func (c *CPU) Compress(dst []byte, src Matrix, bits []byte) int {
	needRows("Compress", src, src.Rows, src.Cols)
	needBits("Compress", bits, src)
	if src.dtype == BF16 {
		return compress[uint16](c.pool, c.level, dst, src, bits)
	}
	return compress[uint32](c.pool, c.level, dst, src, bits)
}

func (c *CPU) Expand(dst Matrix, src, bits []byte) {
	needRows("Expand", dst, dst.Rows, dst.Cols)
	needBits("Expand", bits, dst)
	if dst.dtype == BF16 {
		expand[uint16](c.pool, c.level, dst, src, bits)
	} else {
		expand[uint32](c.pool, c.level, dst, src, bits)
	}
}

func (r *Ref) NotZero(bits []byte, src Matrix) {
	needBits("NotZero", bits, src)
	notZero[uint64](simd.Generic, bits, src, 0, src.Rows)
}

func (r *Ref) Compress(dst []byte, src Matrix, bits []byte) int {
	needBits("Compress", bits, src)
	return compress[uint64](nil, simd.Generic, dst, src, bits)
}

func (r *Ref) Expand(dst Matrix, src, bits []byte) {
	needBits("Expand", bits, dst)
	expand[uint64](nil, simd.Generic, dst, src, bits)
}
