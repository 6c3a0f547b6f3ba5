package tensor

import (
	"encoding/binary"
	"math"

	"starling/tensor/simd"
)

func (r *Ref) Pack(dst []byte, f Packed, src, rest Matrix, at Index) {
	needPacked("Pack", dst, f, src)
	needRest(f, src, rest, at)
	if f == Unpacked {
		copy(dst, src.bytes())
		return
	}
	for k := range src.Rows {
		sum := append([]float64(nil), src.row64(k)...)
		if !rest.IsZero() {
			addScaled(sum, rest.row64(at.place(k)), 1)
		}
		row := dst[k*f.RowBytes(src.Cols) : (k+1)*f.RowBytes(src.Cols)]
		r.packRow(row, f, sum)
		if !rest.IsZero() {
			got := make([]float32, src.Cols)
			unpackRow(got, f, row)
			for i, x := range got {
				rest.row64(at.place(k))[i] = sum[i] - float64(x)
			}
		}
	}
}

func (r *Ref) packRow(dst []byte, f Packed, x []float64) {
	if f == PackBF16 {
		for i, v := range x {
			binary.LittleEndian.PutUint16(dst[2*i:], simd.ToBF16(float32(v)))
		}
		return
	}
	top := 0.0
	for _, v := range x {
		top = max(top, math.Abs(v))
	}
	scale := float32(top / 127)
	switch {
	case top < tiny:
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

func (r *Ref) Unpack(dst Matrix, f Packed, src []byte) {
	needPacked("Unpack", src, f, dst)
	if f == Unpacked {
		copy(dst.bytes(), src)
		return
	}
	size := f.RowBytes(dst.Cols)
	row := make([]float32, dst.Cols)
	for k := range dst.Rows {
		unpackRow(row, f, src[k*size:(k+1)*size])
		for i, x := range row {
			dst.row64(k)[i] = float64(x)
		}
	}
}
