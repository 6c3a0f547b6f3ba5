package simd

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"starling/tensor/bfloat"
)

func TestExp(t *testing.T) {
	worst := 0.0
	for x := float32(-87); x < 88; x += 0.00123 {
		want := math.Exp(float64(x))
		worst = max(worst, math.Abs(float64(Exp(x))-want)/want)
	}
	if worst > 2e-7 {
		t.Errorf("relative error %g, want at most 2e-7", worst)
	}
	for _, x := range []float32{-105, -1e30, float32(math.Inf(-1))} {
		if got := Exp(x); got != 0 {
			t.Errorf("Exp(%g) = %g, want 0", x, got)
		}
	}
}

// aligned is n numbers that start on a cache line.
func aligned[T any](n int) []T {
	var one T
	size := int(unsafe.Sizeof(one))
	s := make([]T, n+64)
	return s[int(-uintptr(unsafe.Pointer(&s[0]))&63)/size:][:n]
}

// Rows that go by non-temporal stores are the same as rows that do not.
func TestAggregateStreams(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	ptr, index := []int64{0, 3, 3, 7, 8}, []uint32{0, 4, 2, 1, 1, 3, 4, 2}
	for level := Generic; level <= Supported(); level++ {
		for _, cols := range []int{16, 32, 48, 64, 128, 256, 288, 640} {
			src := Strided{F32: aligned[float32](5 * cols), Stride: cols}
			src16 := Strided{B16: aligned[uint16](5 * cols), Stride: cols}
			for i := range src.F32 {
				src.F32[i] = float32(r.NormFloat64())
				src16.B16[i] = bfloat.Round(src.F32[i])
			}
			run := func(src Strided, stream bool) Strided {
				dst := Strided{F32: aligned[float32](4 * cols), Stride: cols}
				if src.B16 != nil {
					dst = Strided{B16: aligned[uint16](4 * cols), Stride: cols}
				}
				AggregateRows(level, &RowSums{
					Dst: dst, Src: src, Rows: 4, Cols: cols, Ptr: ptr, Index: index,
					RowScale: []float32{1, 2, 3, 4}, Stream: stream, Acc: make([]float32, MaxCols),
				})
				return dst
			}
			for _, s := range []Strided{src, src16} {
				a, b := run(s, false), run(s, true)
				for i := range 4 * cols {
					if s.B16 != nil && a.B16[i] != b.B16[i] || s.B16 == nil && a.F32[i] != b.F32[i] {
						t.Fatalf("%v, %d columns: number %d differs", level, cols, i)
					}
				}
			}
		}
	}
}

// A sum that overflows or is not a number stays so when it is rounded.
func TestAggregateRoundsNaN(t *testing.T) {
	nan := bfloat.Round(float32(math.NaN()))
	for level := Generic; level <= Supported(); level++ {
		src := Strided{B16: make([]uint16, 40), Stride: 40}
		dst := Strided{B16: make([]uint16, 40), Stride: 40}
		src.B16[3], src.B16[20], src.B16[39] = nan, 0x7f80, 0xff80 // NaN and both infinities
		AggregateRows(level, &RowSums{Dst: dst, Src: src, Rows: 1, Cols: 40, Ptr: []int64{0, 1}, Index: []uint32{0},
			Acc: make([]float32, MaxCols)})
		if x := bfloat.Widen(dst.B16[3]); x == x {
			t.Errorf("%v: NaN became %g", level, x)
		}
		if dst.B16[20] != 0x7f80 || dst.B16[39] != 0xff80 || dst.B16[0] != 0 {
			t.Errorf("%v: infinities became %#x and %#x", level, dst.B16[20], dst.B16[39])
		}
	}
}

// Source rows that do not stay in cache are prefetched, up to the last entry and not beyond it.
func TestAggregateAsksAhead(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	for _, cols := range []int{33, 64, 100, 256, 300} {
		n := 1<<20/cols + 1
		src := Strided{B16: make([]uint16, n*cols), Stride: cols}
		scale := make([]float32, n)
		for i := range scale {
			src.B16[r.IntN(len(src.B16))], scale[i] = bfloat.Round(float32(r.NormFloat64())), r.Float32()
		}
		ptr, index, value := []int64{0, 0, 1, 40, 43}, make([]uint32, 43), make([]float32, 43)
		for e := range index {
			index[e], value[e] = uint32(r.IntN(n)), r.Float32()
		}
		index[42] = uint32(n - 1)
		for _, columns := range [][]float32{nil, scale} {
			run := func(level Level) []float32 {
				dst := Strided{F32: make([]float32, 4*cols), Stride: cols}
				AggregateRows(level, &RowSums{
					Dst: dst, Src: src, Rows: 4, Cols: cols, Ptr: ptr, Index: index, Value: value, ColScale: columns,
					Self: 2, SelfScale: scale, Acc: make([]float32, MaxCols),
				})
				return dst.F32
			}
			want := run(Generic)
			for level := AVX2; level <= Supported(); level++ {
				for i, x := range run(level) {
					if math.Abs(float64(x-want[i])) > 1e-5 {
						t.Fatalf("%v, %d columns, scales %t: number %d is %g, want %g", level, cols, columns != nil, i,
							x, want[i])
					}
				}
			}
		}
	}
}
