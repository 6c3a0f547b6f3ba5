package ref

import (
	"encoding/binary"
	"math"

	"starling/tensor"
	"starling/tensor/bfloat"
)

func (r *Device) Pack(dst []byte, src Matrix, p Packing) int {
	tensor.NeedPack(dst, src, p)
	f := p.Form
	switch f {
	case tensor.Unpacked:
		return copy(dst, tensor.Memory(src))
	case tensor.PackNonZero:
		return r.packNonZero(dst, src, p.Mask)
	}
	for k := range src.Rows {
		sum := append([]float64(nil), rowOf(src, k)...)
		if !p.Residual.IsZero() {
			addScaled(sum, residualRow(p, k), 1)
		}
		row := dst[k*f.RowBytes(src.Cols) : (k+1)*f.RowBytes(src.Cols)]
		r.packRow(row, f, sum)
		if !p.Residual.IsZero() {
			got := make([]float32, src.Cols)
			f.UnpackRow(got, row)
			for i, x := range got {
				residualRow(p, k)[i] = sum[i] - float64(x)
			}
		}
	}
	return len(dst)
}

// residualRow is the residual of row k.
func residualRow(p Packing, k int) []float64 {
	if !p.At.IsZero() {
		k = int(entriesOf(p.At)[k])
	}
	return rowOf(p.Residual, k)
}

// packNonZero writes the bits of rows, unless both sides have them, and their numbers.
func (r *Device) packNonZero(dst []byte, src Matrix, mask []byte) (n int) {
	if mask == nil {
		n = tensor.BitBytes(src.Rows, src.Cols)
		mask = dst[:n]
		clear(mask)
		for i := range src.Rows {
			for j, x := range rowOf(src, i) {
				if math.Float64bits(x) != 0 {
					mask[bitAt(src, i, j)/8] |= 1 << (j % 8)
				}
			}
		}
	}
	for i := range src.Rows {
		for j, x := range rowOf(src, i) {
			if mask[bitAt(src, i, j)/8]>>(j%8)&1 != 0 {
				binary.LittleEndian.PutUint64(dst[n:], math.Float64bits(x))
				n += 8
			}
		}
	}
	return n
}

// bitAt is the place of a number's bit.
func bitAt(m Matrix, i, j int) int { return 8*tensor.BitBytes(i, m.Cols) + j }

func (r *Device) unpackNonZero(dst Matrix, src, mask []byte) {
	if mask == nil {
		n := tensor.BitBytes(dst.Rows, dst.Cols)
		mask, src = src[:n], src[n:]
	}
	for i := range dst.Rows {
		row := rowOf(dst, i)
		for j := range row {
			row[j] = 0
			if mask[bitAt(dst, i, j)/8]>>(j%8)&1 != 0 {
				row[j] = math.Float64frombits(binary.LittleEndian.Uint64(src))
				src = src[8:]
			}
		}
	}
}

func (r *Device) packRow(dst []byte, f tensor.Packed, x []float64) {
	if f == tensor.PackBF16 {
		for i, v := range x {
			binary.LittleEndian.PutUint16(dst[2*i:], bfloat.Round(float32(v)))
		}
		return
	}
	top := 0.0
	for _, v := range x {
		top = max(top, math.Abs(v))
	}
	scale := max(float32(top/127), tensor.SmallestScale)
	switch {
	case top == 0:
		scale = 0
	case !(top <= math.MaxFloat32):
		scale = float32(math.NaN())
	}
	binary.LittleEndian.PutUint32(dst, math.Float32bits(scale))
	for i, v := range x {
		dst[4+i] = 0
		if scale > 0 {
			dst[4+i] = byte(int8(max(-127, min(127, math.RoundToEven(v/float64(scale))))))
		}
	}
}

func (r *Device) Unpack(dst Matrix, src []byte, p Packing) {
	tensor.NeedUnpack(dst, src, p)
	switch p.Form {
	case tensor.Unpacked:
		copy(tensor.Memory(dst), src)
		return
	case tensor.PackNonZero:
		r.unpackNonZero(dst, src, p.Mask)
		return
	}
	size := p.Form.RowBytes(dst.Cols)
	row := make([]float32, dst.Cols)
	for k := range dst.Rows {
		p.Form.UnpackRow(row, src[k*size:(k+1)*size])
		for i, x := range row {
			rowOf(dst, k)[i] = float64(x)
		}
	}
}
