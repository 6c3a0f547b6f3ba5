package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"starling/tensor/bfloat"
)

func random16(r *rand.Rand, n int) []uint16 {
	x := make([]uint16, n)
	for i := range x {
		x[i] = bfloat.Round(float32(r.NormFloat64()))
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
				pitch := cols + r.IntN(64)
				got, want = make([]uint16, rows*pitch), make([]uint16, rows*pitch)
				for i := range got { // past the last row, they stay
					got[i], want[i] = 7, 7
				}
				PadRows(l, got, src, rows-1, cols, stride, pitch)
				PadRows(Generic, want, src, rows-1, cols, stride, pitch)
				if !slices.Equal(got, want) {
					t.Fatalf("%v: %dx%d padded to %d differ", l, rows, cols, pitch)
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
	for _, depth := range []int{2, 8, 30, 32, 33, 40, 47, 64, 100, 160} {
		for _, cols := range []int{1, 7, 16, 17, 31, 32, 40, 48, 49, 64, 100} {
			for _, rows := range []int{64, 128}[:1+cols%2] {
				testTiles16(t, r, rows, depth, cols)
			}
		}
	}
}

func testTiles16(t *testing.T, r *rand.Rand, rows, depth, cols int) {
	arow, crow := depth+r.IntN(3), cols+r.IntN(3)
	a, b := random16(r, (rows-1)*arow+depth), make([]float32, depth*cols)
	for i := range b {
		b[i] = float32(r.NormFloat64())
	}
	panels := make([]uint16, (cols+31)/32*PanelSize(depth))
	for lo := 0; lo < cols; lo += 32 {
		PackPairsPanel(panels[lo/32*PanelSize(depth):], b, depth, cols, cols, lo, depth, false)
	}
	for add := range 2 {
		got := make([]float32, rows*crow)
		for i := range got {
			got[i] = float32(i % 7)
		}
		want := slices.Clone(got)
		run := func(l Level, c []float32) {
			tiles := &Tiles16{A: unsafe.Pointer(&a[0]), B: unsafe.Pointer(&panels[0]), C: unsafe.Pointer(&c[0]),
				ARow: 2 * arow, CRow: 4 * crow, Depth: depth, Rows: rows, Cols: cols, Add: add}
			tiles.Run(l)
		}
		run(AMX, got)
		run(Generic, want)
		for i := range got { // those between rows, too
			if math.Abs(float64(got[i]-want[i])) > 1e-4 {
				t.Fatalf("%dx%d, depth %d, add %d: number %d is %g, want %g", rows, cols, depth, add, i, got[i], want[i])
			}
		}
	}
}
