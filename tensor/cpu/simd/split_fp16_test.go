package simd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// TestHalfPrecisionRoundTrips: every number of half precision is its own nearest, and what lies between two goes to
// the nearer one, or to the even one.
func TestHalfPrecisionRoundTrips(t *testing.T) {
	for h := range 0x7c00 {
		x, next := FromHalf(uint16(h)), FromHalf(uint16(h+1))
		if h == 0x7bff {
			next = 65536 // where rounding up becomes infinite
		}
		middle := (x + next) / 2
		even := uint16(h + h&1)
		for _, c := range []struct {
			in   float32
			want uint16
		}{{x, uint16(h)}, {middle, even}, {math.Nextafter32(middle, 0), uint16(h)}, {math.Nextafter32(middle, 1e9),
			uint16(h + 1)}} {
			if ToHalf(c.in) != c.want || ToHalf(-c.in) != c.want|0x8000 {
				t.Fatalf("%g becomes %#x, want %#x", c.in, ToHalf(c.in), c.want)
			}
		}
	}
	for _, x := range []float32{float32(math.Inf(1)), float32(math.Inf(-1)), 0} {
		if got := FromHalf(ToHalf(x)); got != x {
			t.Errorf("%g becomes %g", x, got)
		}
	}
	if nan := FromHalf(ToHalf(float32(math.NaN()))); nan == nan {
		t.Error("NaN was lost")
	}
}

// TestTwoWaySplitAddsUp: two numbers of half precision miss a float32 by no more than was promised.
func TestTwoWaySplitAddsUp(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		largest := math.Float32frombits(r.Uint32() &^ (1 << 31))
		if !(largest > 1.3e-26 && largest < 3e38) {
			continue
		}
		scale, back := scaling(largest)
		if top := largest * scale; !(top >= 1<<14 && top < 1<<15) || scale*back != 1 {
			t.Fatalf("%g is scaled to %g, and that by %g", largest, top, scale*back)
		}
		x := largest * float32(math.Exp2(-30*r.Float64()))
		h := splitFP16(x * scale)
		got := (float64(FromHalf(h[0])) + float64(FromHalf(h[1]))) * float64(back)
		if miss, allowed := math.Abs(got-float64(x)), max(math.Abs(float64(x))/(1<<23),
			float64(largest)/(1<<39)); miss > allowed {
			t.Fatalf("%g beside %g becomes %g: off by %g, allowed %g", x, largest, got, miss, allowed)
		}
	}
}

// strange makes some numbers tiny, some rows and columns too, and some infinite or NaN.
func strange(r *rand.Rand, x []float32, stride int) []float32 {
	for i := range x {
		switch {
		case r.IntN(9) == 0:
			x[i] *= float32(math.Exp2(-60 * r.Float64()))
		case r.IntN(2000) == 0:
			x[i] = []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
				math.MaxFloat32}[r.IntN(4)]
		}
		if i/stride%5 == 3 {
			x[i] *= 1e-20
		}
		if i%stride%7 == 2 {
			x[i] *= 1e-19
		}
	}
	return x
}

func TestSplitFP16AgreesWithTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 3))
	for _, rows := range []int{1, 2, 15, 16, 17, 31, 32, 33, 50, 96} {
		for _, cols := range []int{1, 7, 15, 16, 17, 31, 32, 33, 48, 64, 100} {
			stride := cols + r.IntN(4)
			src := strange(r, randomSingles(r, rows*stride), stride)
			deep, wide := (rows+31)/32, (cols+31)/32
			for l := AVX512; l <= Supported(); l++ {
				got, want := make([]uint16, deep*wide*FP16Block), make([]uint16, deep*wide*FP16Block)
				back, wantBack := make([]float32, 32*max(deep, wide)), make([]float32, 32*max(deep, wide))
				ranges, wantRanges := randomRanges(r, max(rows, cols))
				compare := func(what string) {
					t.Helper()
					if !slices.Equal(got, want) || !slices.Equal(back, wantBack) || !slices.Equal(ranges, wantRanges) {
						t.Fatalf("%v: %s of %dx%d differ", l, what, rows, cols)
					}
				}
				SplitPairsFP16(l, got, back, ranges, src, rows, cols, stride, deep*FP16Block)
				SplitPairsFP16(Generic, want, wantBack, wantRanges, src, rows, cols, stride, deep*FP16Block)
				compare("pairs")
				TransposeFP16(l, got, deep*wide)
				TransposeFP16(Generic, want, deep*wide)
				compare("transposed tiles")
				clear(got)
				clear(want)
				SplitRowsFP16(l, got, back, ranges, src, min(rows, 32), cols, stride)
				SplitRowsFP16(Generic, want, wantBack, wantRanges, src, min(rows, 32), cols, stride)
				compare("rows")
			}
		}
	}
}

func TestTwoWaySplitAgreesWithTwin(t *testing.T) {
	if Supported() < AMXFP16 {
		t.Skip("this processor has no tiles of half precision")
	}
	r := rand.New(rand.NewPCG(3, 4))
	for _, s := range [][3]int{{1, 1, 1}, {2, 3, 1}, {1, 2, 4}, {3, 2, 2}} {
		rows, depth, panels := s[0], s[1], s[2]
		crow := panels*32 + r.IntN(3)*16
		a, b := make([]uint16, rows*depth*FP16Block), make([]uint16, panels*depth*FP16Block)
		backA, backB, room := make([]float32, 32*rows), make([]float32, 32*panels), make([]float32, FP16Workspace)
		for i := range rows {
			SplitRowsFP16(AVX512, a[i*depth*FP16Block:], backA[32*i:], make(Ranges, 64), randomSingles(r, 1024*depth),
				32, 32*depth, 32*depth)
		}
		SplitPairsFP16(AVX512, b, backB, make(Ranges, 64*panels), randomSingles(r, 1024*depth*panels), 32*depth,
			32*panels, 32*panels, depth*FP16Block)
		for way := range 3 {
			add, past := way%2, way/2
			run := func(l Level) []float32 {
				c := make([]float32, rows*32*crow+16)
				for i := range c {
					c[i] = float32(i % 7)
				}
				c = c[(64-int(uintptr(unsafe.Pointer(&c[0]))%64))/4%16:][:rows*32*crow] // beginning with a line
				tiles := &TwoWaySplit{A: unsafe.Pointer(&a[0]), B: unsafe.Pointer(&b[0]), C: unsafe.Pointer(&c[0]),
					BackA: unsafe.Pointer(&backA[0]), BackB: unsafe.Pointer(&backB[0]), Workspace: unsafe.Pointer(&room[0]),
					APanel: 2 * depth * FP16Block, BPanel: 2 * depth * FP16Block, CRow: 4 * crow,
					Depth: depth, Rows: rows, Panels: panels, Add: add, NonTemporal: past}
				tiles.Run(l)
				return c
			}
			got, want := run(AMXFP16), run(Generic)
			for i := range got {
				if !(math.Abs(float64(got[i]-want[i])) <= 1e-4) {
					t.Fatalf("%v, add %d, by non-temporal stores %d: number %d is %g, want %g", s, add, past, i, got[i],
						want[i])
				}
			}
		}
	}
}
