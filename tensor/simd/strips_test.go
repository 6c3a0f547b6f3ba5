package simd

import (
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

func TestStrips16AgreeWithTwin(t *testing.T) {
	if Supported() < AMX {
		t.Skip("this processor has no AMX")
	}
	r := rand.New(rand.NewPCG(4, 4))
	for _, depth := range []int{1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 64, 70} {
		for _, cols := range []int{1, 7, 16, 17, 32, 40, 48, 64, 96} {
			for units := 1; units <= 4; units++ {
				testStrips16(t, r, units, depth, cols)
			}
		}
	}
	for _, depth := range []int{256, 301} {
		testStrips16(t, r, 3, depth, 7)
		testStrips16(t, r, 2, depth, 40)
	}
	testStrips16(t, r, 3, 7, 256)
	testStrips16(t, r, 2, 40, 256+96)
}

// testStrips16 takes whole numbers, whose sums are exact in any order.
func testStrips16(t *testing.T, r *rand.Rand, units, depth, cols int) {
	t.Helper()
	rows, even := units*StripsRows, (&Strips16{Depth: depth}).Padded()
	small := make([]float32, depth*cols)
	for i := range small {
		small[i] = float32(r.IntN(9) - 4)
	}
	b := make([]uint16, Panels(cols, 32)*PanelSize(even))
	for p := range Panels(cols, 32) {
		PackPairsPanel(b[p*PanelSize(even):], small, depth, cols, cols, 32*p, even, false)
	}
	for gap := range 2 {
		arow := depth + 3*gap
		// As long as it has to be: nothing past the last number is read.
		a := wholes16(r, (rows-1)*arow+depth)
		for past := range 2 {
			run := func(l Level) []uint16 {
				mem := make([]uint16, rows*cols+64)
				skip := 0
				for uintptr(unsafe.Pointer(&mem[skip]))&63 > 0 {
					skip++
				}
				c := mem[skip : skip+rows*cols+8]
				s := Strips16{A: unsafe.Pointer(&a[0]), B: unsafe.Pointer(&b[0]), C: unsafe.Pointer(&c[0]), Units: units, Past: past,
					ARow: 2 * arow, CRow: 2 * cols, Cols: cols, Depth: depth, Room: make([]float32, StripsRoom)}
				s.Run(l)
				Settle()
				return c
			}
			if got, want := run(AMX), run(Generic); !slices.Equal(got, want) {
				t.Fatalf("%d x %d · %d, gap %d, past %d: differ", rows, depth, cols, gap, past)
			}
		}
	}
}
