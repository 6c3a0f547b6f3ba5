package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"starling/tensor/bfloat"
)

func randomSingles(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// tinyToo makes every seventh number, or so, one below 1e-32.
func tinyToo(r *rand.Rand, x []float32) []float32 {
	for i := range x {
		if r.IntN(7) == 0 {
			x[i] *= float32(math.Pow(10, -32-13*r.Float64()))
		}
	}
	return x
}

// TestThreeWaySplitAddsUp: three bfloat16 are a float32, bit for bit, and fall off quickly enough.
func TestThreeWaySplitAddsUp(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 100_000 {
		x := math.Float32frombits(r.Uint32())
		if size := math.Abs(float64(x)); !(size > 1e-32 && size < 3.38e38) {
			continue
		}
		s := split(x)
		a, b, c := bfloat.Widen(s[0]), bfloat.Widen(s[1]), bfloat.Widen(s[2])
		if a+(b+c) != x {
			t.Fatalf("%g is split into %g + %g + %g", x, a, b, c)
		}
		if size := math.Abs(float64(a)); math.Abs(float64(b)) > size/256 || math.Abs(float64(c)) > size/65536 {
			t.Fatalf("%g is split into %g + %g + %g, which are too large", x, a, b, c)
		}
	}
}

func TestSplitsAgreeWithTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for _, rows := range []int{1, 15, 16, 17, 32, 33, 50, 96} {
		for _, cols := range []int{1, 7, 15, 16, 17, 31, 32, 33, 48, 64, 100} {
			stride := cols + r.IntN(4)
			src := tinyToo(r, randomSingles(r, rows*stride))
			deep, wide := (rows+31)/32, (cols+31)/32
			for l := AVX512; l <= Supported(); l++ {
				got, want := make([]uint16, deep*wide*SplitBlock), make([]uint16, deep*wide*SplitBlock)
				ranges, wantRanges := randomRanges(r, max(rows, cols))
				SplitPairs(l, got, ranges, src, rows, cols, stride, deep*SplitBlock)
				SplitPairs(Generic, want, wantRanges, src, rows, cols, stride, deep*SplitBlock)
				if !slices.Equal(got, want) || !slices.Equal(ranges, wantRanges) {
					t.Fatalf("%v: pairs of %dx%d differ", l, rows, cols)
				}
				TransposeSplit(l, got, deep*wide)
				TransposeSplit(Generic, want, deep*wide)
				if !slices.Equal(got, want) {
					t.Fatalf("%v: transposed tiles of %dx%d differ", l, rows, cols)
				}
				clear(got)
				clear(want)
				SplitRows(l, got, ranges, src, min(rows, 32), cols, stride)
				SplitRows(Generic, want, wantRanges, src, min(rows, 32), cols, stride)
				if !slices.Equal(got, want) || !slices.Equal(ranges, wantRanges) {
					t.Fatalf("%v: rows of %dx%d differ", l, rows, cols)
				}
			}
		}
	}
}

func TestTiles32AgreeWithTwin(t *testing.T) {
	if Supported() < AMX {
		t.Skip("this processor has no AMX")
	}
	r := rand.New(rand.NewPCG(3, 3))
	for _, s := range [][3]int{{1, 1, 1}, {2, 3, 1}, {1, 2, 4}, {3, 2, 2}} {
		rows, depth, panels := s[0], s[1], s[2]
		crow := panels*32 + r.IntN(3)*8
		a, b := make([]uint16, rows*depth*SplitBlock), make([]uint16, panels*depth*SplitBlock)
		for i := range rows {
			SplitRows(AMX, a[i*depth*SplitBlock:], make(Ranges, 64), randomSingles(r, 1024*depth), 32, 32*depth, 32*depth)
		}
		SplitPairs(AMX, b, make(Ranges, 64*panels), randomSingles(r, 1024*depth*panels), 32*depth, 32*panels, 32*panels,
			depth*SplitBlock)
		for add := range 2 {
			got, want := make([]float32, rows*32*crow), make([]float32, rows*32*crow)
			run := func(l Level, a []uint16, c []float32) {
				for i := range c {
					c[i] = float32(i % 7)
				}
				tiles := &Tiles32{A: unsafe.Pointer(&a[0]), B: unsafe.Pointer(&b[0]), C: unsafe.Pointer(&c[0]),
					APanel: 2 * depth * SplitBlock, BPanel: 2 * depth * SplitBlock, CRow: 4 * crow,
					Depth: depth, Rows: rows, Panels: panels, Add: add}
				tiles.Run(l)
			}
			run(AMX, a, got)
			run(Generic, a, want)
			for i := range got {
				if math.Abs(float64(got[i]-want[i])) > 1e-4 {
					t.Fatalf("%v, add %d: number %d is %g, want %g", s, add, i, got[i], want[i])
				}
			}
		}
	}
}
