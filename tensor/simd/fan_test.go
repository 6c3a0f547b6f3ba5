package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"
)

func TestFanAgreesWithTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	for _, rows := range []int{1, 2, 7, 8, 9, 17} {
		for _, depth := range []int{1, 2, 7, 15, 16} {
			for cols := 1; cols <= FanWidth; cols++ {
				arow, crow := depth+r.IntN(3), cols+r.IntN(3)
				// As long as it has to be: nothing past the last number is read or written.
				a, src := randomSingles(r, (rows-1)*arow+depth), randomSingles(r, depth*cols)
				b := make([]float32, FanDepth*FanWidth)
				PackPanel(b, src, depth, cols, cols, 0, FanWidth)
				for add := range 2 {
					agreesWithTwin(t, fmt.Sprintf("%d x %d · %d, add %d", rows, depth, cols, add), rows*crow+8, func(l Level, c []float32) {
						fan := &Fan{A: unsafe.Pointer(&a[0]), B: unsafe.Pointer(&b[0]), C: unsafe.Pointer(&c[0]),
							ARow: 4 * arow, CRow: 4 * crow, Depth: depth, Rows: rows, Cols: cols, Add: add}
						fan.Run(l)
					})
				}
			}
		}
	}
}

func TestFanPastAgreesWithTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for units := 1; units <= 4; units++ {
		for _, depth := range []int{1, 2, 7, 15, 16} {
			for _, cols := range []int{1, 7, 15, 16, 17, 40, 48, 100, 255, 256} {
				testFanPast(t, r, units, depth, cols)
			}
		}
	}
}

func testFanPast(t *testing.T, r *rand.Rand, units, depth, cols int) {
	t.Helper()
	rows, arow := units*FanUnit, depth+r.IntN(3)
	// As long as it has to be: nothing past the last number is read.
	a, src := randomSingles(r, (rows-1)*arow+depth), randomSingles(r, depth*cols)
	b := make([]float32, Panels(cols, FanWidth)*FanDepth*FanWidth)
	for p := range Panels(cols, FanWidth) {
		PackPanel(b[p*FanDepth*FanWidth:], src, depth, cols, cols, p*FanWidth, FanWidth)
	}
	run := func(l Level) []float32 {
		c := lines(rows*cols + 16)
		fan := &FanPast{A: unsafe.Pointer(&a[0]), B: unsafe.Pointer(&b[0]), C: unsafe.Pointer(&c[0]), ARow: 4 * arow,
			Depth: depth, Units: units, Cols: cols, Room: make([]float32, FanRoom(cols))}
		fan.Run(l)
		Settle()
		return c
	}
	want := run(Generic)
	for l := AVX512; l <= Supported(); l++ {
		for i, got := range run(l) {
			if !(math.Abs(float64(got-want[i])) <= 1e-4) {
				t.Fatalf("%v, %d x %d · %d: number %d is %g, want %g", l, rows, depth, cols, i, got, want[i])
			}
		}
	}
}

// lines are so many numbers that begin with a line of memory.
func lines(n int) []float32 {
	mem := make([]float32, n+16)
	for uintptr(unsafe.Pointer(&mem[0]))&63 > 0 {
		mem = mem[1:]
	}
	return mem[:n]
}
