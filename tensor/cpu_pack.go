package tensor

import (
	"encoding/binary"
	"math"

	"starling/tensor/simd"
)

func (c *CPU) Pack(dst []byte, f Packed, src, rest Matrix, at Index) {
	needRows("Pack: src", src, src.Rows, src.Cols)
	needPacked("Pack", dst, f, src)
	needRest(f, src, rest, at)
	if f == Unpacked {
		copy(dst, src.bytes())
		return
	}
	size := f.RowBytes(src.Cols)
	c.forRows(src.Rows, rowChunk(8*src.Cols), func(lo, hi, _, _ int) {
		work := takeFloats(src.Cols)
		defer floatsPool.Put(work)
		sum := (*work)[:src.Cols]
		for k := lo; k < hi; k++ {
			src.widen(sum, k)
			var left []float32
			if !rest.IsZero() {
				left = rest.row(at.place(k))
				for i, x := range left {
					sum[i] += x
				}
			}
			if f == PackInt8 {
				packInt8(dst[k*size:(k+1)*size], sum, left)
			} else {
				packBF16(dst[k*size:(k+1)*size], sum, left)
			}
		}
	})
}

// widen copies row k to dst as float32.
func (m Matrix) widen(dst []float32, k int) {
	if m.dtype == F32 {
		copy(dst, m.row(k))
		return
	}
	for i, x := range m.row16(k) {
		dst[i] = simd.FromBF16(x)
	}
}

// packBF16 writes x, and the error to left if there is one.
func packBF16(dst []byte, x, left []float32) {
	for i, v := range x {
		b := simd.ToBF16(v)
		binary.LittleEndian.PutUint16(dst[2*i:], b)
		if left != nil {
			left[i] = v - simd.FromBF16(b)
		}
	}
}

// nearest added to a float32 of at most 2^22 leaves its nearest integer in the low bits.
const nearest = 3 << 22

func packInt8(dst []byte, x, left []float32) {
	bits := uint32(0) // sizes of numbers are in the order of their bits, and NaN is on top
	for _, v := range x {
		bits = max(bits, math.Float32bits(v)&^(1<<31))
	}
	top := math.Float32frombits(bits)
	scale, inv := top/127, 127/top
	switch {
	case top < tiny:
		scale, inv = 0, 0
	case !(top <= math.MaxFloat32):
		scale, inv = float32(math.NaN()), 0
	}
	binary.LittleEndian.PutUint32(dst, math.Float32bits(scale))
	dst = dst[4 : 4+len(x)]
	for i, v := range x {
		q := float32(v*inv) + nearest
		dst[i] = byte(math.Float32bits(q))
		if left != nil {
			left[i] = v - float32(q-nearest)*scale
		}
	}
}

func (c *CPU) Unpack(dst Matrix, f Packed, src []byte) {
	needRows("Unpack: dst", dst, dst.Rows, dst.Cols)
	needPacked("Unpack", src, f, dst)
	if f == Unpacked {
		copy(dst.bytes(), src)
		return
	}
	size := f.RowBytes(dst.Cols)
	c.forRows(dst.Rows, rowChunk(8*dst.Cols), func(lo, hi, _, _ int) {
		work := takeFloats(dst.Cols)
		defer floatsPool.Put(work)
		for k := lo; k < hi; k++ {
			row := (*work)[:dst.Cols]
			if dst.dtype == F32 {
				row = dst.row(k)
			}
			unpackRow(row, f, src[k*size:(k+1)*size])
			if dst.dtype == BF16 {
				for i, x := range row {
					dst.row16(k)[i] = simd.ToBF16(x)
				}
			}
		}
	})
}

func unpackRow(dst []float32, f Packed, src []byte) {
	if f == PackBF16 {
		for i := range dst {
			dst[i] = simd.FromBF16(binary.LittleEndian.Uint16(src[2*i:]))
		}
		return
	}
	scale := math.Float32frombits(binary.LittleEndian.Uint32(src))
	for i, q := range src[4 : 4+len(dst)] {
		dst[i] = float32(int8(q)) * scale
	}
}
