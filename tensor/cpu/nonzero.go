package cpu

import (
	"starling/tensor"
	"starling/tensor/cpu/simd"
)

// packNonZero writes the bits of rows, unless both sides have them, and the numbers whose
// bits are set.
func (c *Device) packNonZero(dst []byte, src Matrix, mask []byte) (n int) {
	if mask == nil {
		n = tensor.BitBytes(src.Rows, src.Cols)
		mask, dst = dst[:n], dst[n:]
		if src.Cols == 0 {
			return 0
		}
		c.forRows(src.Rows, rowChunk(src.Cols*src.Type().Size()), func(lo, hi, _, _ int) {
			if src.Type() == BF16 {
				notZero[uint16](c.level, mask, src, lo, hi)
			} else {
				notZero[uint32](c.level, mask, src, lo, hi)
			}
		})
	}
	if src.Type() == BF16 {
		return n + compress[uint16](c, dst, src, mask)
	}
	return n + compress[uint32](c, dst, src, mask)
}

// unpackNonZero is its inverse.
func (c *Device) unpackNonZero(dst Matrix, src, mask []byte) {
	if mask == nil {
		n := tensor.BitBytes(dst.Rows, dst.Cols)
		mask, src = src[:n], src[n:]
	}
	if dst.Type() == BF16 {
		expand[uint16](c, dst, src, mask)
	} else {
		expand[uint32](c, dst, src, mask)
	}
}

// bitsOf are the bits of rows lo to hi.
func bitsOf(mask []byte, lo, hi, cols int) []uint32 {
	return cast[uint32](mask[tensor.BitBytes(lo, cols):], (hi-lo)*tensor.BitWords(cols))
}

// chunksByBits runs body on chunks of rows. at is how many bits are set before a chunk; the
// result, in all.
func (c *Device) chunksByBits(m Matrix, mask []byte, body func(lo, hi, at int)) (total int) {
	if m.Cols == 0 {
		return 0
	}
	size := rowChunk(m.Cols * m.Type().Size())
	var starts []int
	for lo := 0; lo < m.Rows; lo += size {
		starts = append(starts, total)
		total += simd.CountBits(bitsOf(mask, lo, min(m.Rows, lo+size), m.Cols))
	}
	c.forRows(m.Rows, size, func(lo, hi, k, _ int) { body(lo, hi, starts[k]) })
	return total
}

// words are numbers of a matrix by their bits: row i begins at i·Stride.
func words[T uint16 | uint32](m Matrix) []T { return tensor.Numbers[T](m) }

func notZero[T uint16 | uint32](level simd.Level, mask []byte, m Matrix, lo, hi int) {
	x := words[T](m)
	for i := lo; i < hi; i++ {
		simd.NotZero(level, bitsOf(mask, i, i+1, m.Cols), x[i*m.Stride():i*m.Stride()+m.Cols])
	}
}

func compress[T uint16 | uint32](c *Device, dst []byte, m Matrix, mask []byte) int {
	x, to := words[T](m), cast[T](dst, len(dst)/m.Type().Size())
	return m.Type().Size() * c.chunksByBits(m, mask, func(lo, hi, at int) {
		for i := lo; i < hi; i++ {
			at += simd.Compress(c.level, to[at:], x[i*m.Stride():i*m.Stride()+m.Cols], bitsOf(mask, i, i+1, m.Cols))
		}
	})
}

func expand[T uint16 | uint32](c *Device, m Matrix, src, mask []byte) {
	x, from := words[T](m), cast[T](src, len(src)/m.Type().Size())
	c.chunksByBits(m, mask, func(lo, hi, at int) {
		for i := lo; i < hi; i++ {
			at += simd.Expand(c.level, x[i*m.Stride():i*m.Stride()+m.Cols], from[at:], bitsOf(mask, i, i+1, m.Cols))
		}
	})
}
