package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

func TestOuterHalvesAgreesWithTwin(t *testing.T) {
	if Supported() < AMXFP16 {
		t.Skip("this processor has no tiles of half precision")
	}
	r := rand.New(rand.NewPCG(8, 8))
	for _, s := range [][3]int{{1, 40, 16}, {4, 33, 7}, {2, 48, 100}, {3, 47, 256}} {
		blocks, left, cols := s[0], s[1], s[2]
		rows, brow, crow := 32*blocks, cols+r.IntN(3), (cols+15)&^15
		// As long as it has to be: nothing past the last number is read.
		b := randomSingles(r, (rows-1)*brow+cols)
		a, backA := make([]uint16, 2*blocks*HalfBlock), make([]float32, 64)
		HalvePairs(Generic, a, backA, randomSingles(r, rows*left), rows, left, left, blocks*HalfBlock)
		TurnHalves(Generic, a, 2*blocks)
		scale, backB, room := make([]float32, crow), make([]float32, crow), make([]float32, RoomOuterHalves)
		ColumnScales(Generic, scale, backB, b, rows, cols, brow, 0)
		for add := range 2 {
			run := func(l Level) []float32 {
				c := make([]float32, left*crow)
				for i := range c {
					c[i] = float32(i % 7)
				}
				step := &OuterHalves{A: unsafe.Pointer(&a[0]), B: unsafe.Pointer(&b[0]), C: unsafe.Pointer(&c[0]),
					Scale: unsafe.Pointer(&scale[0]), BackA: unsafe.Pointer(&backA[0]), BackB: unsafe.Pointer(&backB[0]),
					Room: unsafe.Pointer(&room[0]), APanel: 2 * blocks * HalfBlock, BRow: 4 * brow, CRow: 4 * crow,
					Blocks: blocks, Rows: left, Cols: cols, Add: add}
				step.Run(l)
				return c
			}
			got, want := run(AMXFP16), run(Generic)
			for i := range got {
				if i%crow < cols && !(math.Abs(float64(got[i]-want[i])) <= 1e-4) {
					t.Fatalf("%v, add %d: number %d is %g, want %g", s, add, i, got[i], want[i])
				}
			}
		}
	}
}

func TestColumnScalesAgreeWithTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for _, rows := range []int{1, 2, 33} {
		for _, cols := range []int{1, 15, 16, 17, 64, 100, 256, 300} {
			stride := cols + r.IntN(3)
			src := strange(r, randomSingles(r, rows*stride), stride)[:(rows-1)*stride+cols]
			scales := func(l Level) (scale, back []float32) {
				scale, back = make([]float32, cols+15), make([]float32, cols+15)
				ColumnScales(l, scale, back, src, rows, cols, stride, 0)
				return scale[:cols], back[:cols]
			}
			want, wantBack := scales(Generic)
			for l := AVX512; l <= Supported(); l++ {
				if got, back := scales(l); !slices.Equal(got, want) || !slices.Equal(back, wantBack) {
					t.Fatalf("%v: scales of %dx%d differ", l, rows, cols)
				}
			}
		}
	}
}
