package cpu

import (
	"encoding/binary"
	"math"

	"starling/tensor"
	"starling/tensor/bfloat"
)

// Pack writes rows to host memory in the form they travel in.
func (c *Device) Pack(dst []byte, src Matrix, p Packing) int {
	needRows("Pack: src", src, src.Rows, src.Cols)
	tensor.NeedPack(dst, src, p)
	switch p.Form {
	case tensor.Unpacked:
		return copy(dst, bytesOf(src))
	case tensor.PackNonZero:
		return c.packNonZero(dst, src, p.Mask)
	}
	size, at := p.Form.RowBytes(src.Cols), entriesOf(p.At)
	c.forRows(src.Rows, rowChunk(8*src.Cols), func(lo, hi, _, _ int) {
		work := takeFloats(src.Cols)
		defer floatsPool.Put(work)
		sum := (*work)[:src.Cols]
		for k := lo; k < hi; k++ {
			widenRow(src, sum, k)
			var left []float32
			if !p.Residual.IsZero() {
				left = rowOf(p.Residual, placeOf(at, k))
				for i, x := range left {
					sum[i] += x
				}
			}
			if p.Form == tensor.PackInt8 {
				packInt8(dst[k*size:(k+1)*size], sum, left)
			} else {
				packBF16(dst[k*size:(k+1)*size], sum, left)
			}
		}
	})
	return len(dst)
}

// placeOf is the row of the residual that goes with row k.
func placeOf(at []uint32, k int) int {
	if at == nil {
		return k
	}
	return int(at[k])
}

// widen copies row k to dst as float32.
func widenRow(m Matrix, dst []float32, k int) {
	if m.Type() == F32 {
		copy(dst, rowOf(m, k))
		return
	}
	for i, x := range row16Of(m, k) {
		dst[i] = bfloat.Widen(x)
	}
}

// packBF16 writes x, and the error to left if there is one.
func packBF16(dst []byte, x, left []float32) {
	for i, v := range x {
		b := bfloat.Round(v)
		binary.LittleEndian.PutUint16(dst[2*i:], b)
		if left != nil {
			left[i] = v - bfloat.Widen(b)
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
	case top == 0:
		inv = 0
	case top < 127*tensor.SmallestScale:
		scale, inv = tensor.SmallestScale, 1/tensor.SmallestScale
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

// Unpack makes rows of the form they travel in.
func (c *Device) Unpack(dst Matrix, src []byte, p Packing) {
	needRows("Unpack: dst", dst, dst.Rows, dst.Cols)
	tensor.NeedUnpack(dst, src, p)
	switch f := p.Form; f {
	case tensor.Unpacked:
		copy(bytesOf(dst), src)
	case tensor.PackNonZero:
		c.unpackNonZero(dst, src, p.Mask)
	default:
		c.unpackRounded(dst, f, src)
	}
}

func (c *Device) unpackRounded(dst Matrix, f tensor.Packed, src []byte) {
	size := f.RowBytes(dst.Cols)
	c.forRows(dst.Rows, rowChunk(8*dst.Cols), func(lo, hi, _, _ int) {
		work := takeFloats(dst.Cols)
		defer floatsPool.Put(work)
		for k := lo; k < hi; k++ {
			row := (*work)[:dst.Cols]
			if dst.Type() == F32 {
				row = rowOf(dst, k)
			}
			f.UnpackRow(row, src[k*size:(k+1)*size])
			if dst.Type() == BF16 {
				for i, x := range row {
					row16Of(dst, k)[i] = bfloat.Round(x)
				}
			}
		}
	})
}
