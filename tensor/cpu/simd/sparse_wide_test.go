package simd

import (
	"math/rand/v2"
	"testing"

	"starling/tensor/bfloat"
)

// Rows wider than the registers are summed in panels of columns, some entries at a time. With small whole
// numbers every order is exact, so that all levels must agree to the bit.
func TestAggregateWide(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	whole := func(n int) []float32 {
		s := make([]float32, n)
		for i := range s {
			s[i] = float32(r.IntN(5) - 2)
		}
		return s
	}
	const sources = 9
	ptr := []int64{0}
	for _, entries := range []int64{1, 0, 31, 32, 33, 0, 64, 65, 2} {
		ptr = append(ptr, ptr[len(ptr)-1]+entries)
	}
	rows := len(ptr) - 1
	index := make([]uint32, ptr[rows])
	for e := range index {
		index[e] = uint32(r.IntN(sources))
	}
	value, scale, rowScale := whole(len(index)), whole(sources), whole(rows)
	for _, cols := range []int{161, 257, 271, 288, 300, 353, 385, 500, 602, 1000, 1433, 2049, MaxCols} {
		stride := cols + r.IntN(3)
		f32 := whole(sources * stride)
		b16, before := make([]uint16, len(f32)), make([]uint16, rows*stride)
		for i, x := range f32 {
			b16[i] = bfloat.Round(x)
		}
		for i := range before {
			before[i] = bfloat.Round(float32(r.IntN(9) - 4))
		}
		for kind := range 32 {
			a := RowSums{
				Src: Strided{F32: f32, Stride: stride}, Rows: rows, Cols: cols, Ptr: ptr, Index: index, RowScale: rowScale,
				Add: kind&1 != 0, Stream: kind&2 != 0, Acc: make([]float32, MaxCols),
			}
			if kind&4 != 0 {
				a.Src = Strided{B16: b16, Stride: stride}
			}
			if kind&8 != 0 {
				a.Value = value
			} else {
				a.ColScale, a.SelfScale, a.Self = scale, scale, 2
			}
			if kind&(8|16) == 8 {
				a.ColScale = scale
			}
			run := func(level Level) Strided {
				b := a
				b.Dst = Strided{B16: append([]uint16(nil), before...), Stride: stride}
				if kind&16 != 0 {
					b.Dst = Strided{F32: make([]float32, len(before)), Stride: stride}
					b.Dst.widenAll(before)
				}
				AggregateRows(level, &b)
				return b.Dst
			}
			want := run(Generic)
			for level := AVX2; level <= Supported(); level++ {
				got := run(level)
				for i := range before {
					if kind&16 == 0 && got.B16[i] != want.B16[i] || kind&16 != 0 && got.F32[i] != want.F32[i] {
						t.Fatalf("%v, %d columns, kind %d: column %d of row %d differs", level, cols, kind, i%stride, i/stride)
					}
				}
			}
		}
	}
}

// widenAll sets all of s, float32, to b.
func (s Strided) widenAll(b []uint16) {
	for i, x := range b {
		s.F32[i] = bfloat.Widen(x)
	}
}
