package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

func random16(r *rand.Rand, n int) []uint16 {
	x := make([]uint16, n)
	for i := range x {
		x[i] = ToBF16(float32(r.NormFloat64()))
	}
	return x
}

func TestPacksFor16AgreeWithTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, rows := range []int{32, 96} {
		for _, cols := range []int{1, 7, 15, 16, 17, 31, 32, 33, 48, 64, 100} {
			stride := cols + r.IntN(4)
			src := random16(r, rows*stride)
			wide := (cols + 31) &^ 31
			for l := AVX512; l <= Supported(); l++ {
				got, want := make([]uint16, rows*wide), make([]uint16, rows*wide)
				PackPairs(l, got, src, rows, cols, stride, rows*32)
				PackPairs(Generic, want, src, rows, cols, stride, rows*32)
				if !slices.Equal(got, want) {
					t.Fatalf("%v: pairs of %dx%d differ", l, rows, cols)
				}
				clear(got)
				clear(want)
				PackTransposed(l, got, src, rows, cols, stride, rows)
				PackTransposed(Generic, want, src, rows, cols, stride, rows)
				if !slices.Equal(got, want) {
					t.Fatalf("%v: transpose of %dx%d differs", l, rows, cols)
				}
			}
		}
	}
}

func TestTiles16AgreeWithTwin(t *testing.T) {
	if Supported() < AMX {
		t.Skip("this processor has no AMX")
	}
	r := rand.New(rand.NewPCG(2, 2))
	for _, s := range [][3]int{{1, 1, 1}, {2, 3, 1}, {1, 2, 4}, {3, 5, 2}} {
		rows, depth, panels := s[0], s[1], s[2]
		arow, crow := depth*32+r.IntN(3)*8, panels*32+r.IntN(3)*8
		a, b := random16(r, rows*32*arow), random16(r, panels*depth*1024)
		for add := range 2 {
			got := make([]float32, rows*32*crow)
			for i := range got {
				got[i] = float32(i % 7)
			}
			want := slices.Clone(got)
			run := func(l Level, c []float32) {
				tiles := &Tiles16{A: unsafe.Pointer(&a[0]), B: unsafe.Pointer(&b[0]), C: unsafe.Pointer(&c[0]),
					ARow: 2 * arow, CRow: 4 * crow, Depth: depth, Rows: rows, Panels: panels, Add: add}
				tiles.Run(l)
			}
			run(AMX, got)
			run(Generic, want)
			for i := range got {
				if math.Abs(float64(got[i]-want[i])) > 1e-4 {
					t.Fatalf("%v, add %d: number %d is %g, want %g", s, add, i, got[i], want[i])
				}
			}
		}
	}
}
