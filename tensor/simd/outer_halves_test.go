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
	for _, s := range [][3]int{{1, 40, 16}, {1, 33, 7}, {2, 48, 100}, {2, 47, 256}} {
		blocks, left, cols := s[0], s[1], s[2]
		rows, brow, whole := 32*blocks, cols+r.IntN(3), (cols+15)&^15
		// As long as it has to be: nothing past the last number is read.
		b := randomSingles(r, (rows-1)*brow+cols)
		a, backA := make([]uint16, 2*OuterHalvesPanel), make([]float32, 64)
		HalvePairs(Generic, a, backA, randomSingles(r, rows*left), rows, left, left, OuterHalvesPanel)
		for i := range 2 {
			TurnHalves(Generic, a[i*OuterHalvesPanel:], blocks)
		}
		scale, backB := make([]float32, whole), make([]float32, whole)
		ColumnScales(Generic, scale, backB, b, rows, cols, brow, OuterHeadroom)
		run := func(l Level, spoilt []uint16) []float32 {
			c, room := make([]float32, whole/16*OuterHalvesSums), make([]float32, RoomOuterHalves)
			for i := range c {
				c[i] = float32(i % 7)
			}
			step := &OuterHalves{A: unsafe.Pointer(&a[0]), B: unsafe.Pointer(&b[0]), C: unsafe.Pointer(&c[0]),
				Scale: unsafe.Pointer(&scale[0]), BackA: unsafe.Pointer(&backA[0]), BackB: unsafe.Pointer(&backB[0]),
				Room: unsafe.Pointer(&room[0]), BRow: 4 * brow, Blocks: blocks, Rows: left, Cols: cols}
			if spoilt != nil {
				step.Spoilt = unsafe.Pointer(&spoilt[0])
			}
			step.Run(l)
			return c
		}
		agree := func(what string, got, want []float32) {
			for i := range got {
				row, col := i/16%48, i/OuterHalvesSums*16+i%16
				if row < left && col < cols && !(math.Abs(float64(got[i]-want[i])) <= 1e-4) {
					t.Fatalf("%v, %s: number (%d,%d) is %g, want %g", s, what, row, col, got[i], want[i])
				}
			}
		}
		agree("all added", run(AMXFP16, nil), run(Generic, nil))
		// Of the first panel and of the last, a column is too large.
		for i, j := range []int{min(3, cols-1), cols - 1} {
			b[i*brow+j] = 1e6 / scale[j]
		}
		got, want := make([]uint16, whole/16), make([]uint16, whole/16)
		agree("some left out", run(AMXFP16, got), run(Generic, want))
		if !slices.Equal(got, want) || want[whole/16-1]&(1<<((cols-1)%16)) == 0 {
			t.Fatalf("%v: spoilt columns are %b, want %b", s, got, want)
		}
	}
}

func TestColumnScalesAgreeWithTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 9))
	for _, rows := range []int{1, 2, 33} {
		for _, cols := range []int{1, 15, 16, 17, 64, 100, 256, 300} {
			stride := cols + r.IntN(3)
			src := strange(r, randomSingles(r, rows*stride), stride)[:(rows-1)*stride+cols]
			for i := cols / 2; i < len(src); i += stride {
				src[i] = 0 // a column that keeps its scale
			}
			scales := func(l Level) (scale, back []float32) {
				scale, back = make([]float32, cols+15), make([]float32, cols+15)
				StartScales(scale, back)
				ColumnScales(l, scale, back, src, rows, cols, stride, rows%9)
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
