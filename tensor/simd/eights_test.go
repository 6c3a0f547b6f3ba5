package simd

import (
	"math"
	"slices"
	"testing"
	"unsafe"
)

// TestEights: products of any number of rows, columns and steps write or add what a plain loop does, and nothing else. What
// is behind a row of A may be anything.
func TestEights(t *testing.T) {
	for _, level := range []Level{Generic, AVX512} {
		if level > Supported() {
			t.Logf("%v: not on this machine", level)
			continue
		}
		for cols := 1; cols <= EightsCols; cols++ {
			for _, rows := range []int{1, EightsRows(cols) - 1, EightsRows(cols), 2*EightsRows(cols) + 3} {
				for k := 1; k <= 9; k++ {
					for add := range 2 {
						eightsAre(t, level, rows, cols, k, add)
					}
				}
			}
		}
	}
}

func eightsAre(t *testing.T, level Level, rows, cols, k, add int) {
	t.Helper()
	aRow, cRow := k+1, cols+2
	a, src, b := make([]float32, rows*aRow), make([]float32, k*cols), make([]float32, EightsSize(k, cols))
	got := make([]float32, rows*cRow)
	for i := range a {
		a[i] = float32(i%11 - 5)
		if i%aRow == k {
			a[i] = float32(math.NaN())
		}
	}
	for i := range src {
		src[i] = float32(i%13 - 6)
	}
	for i := range got {
		got[i] = float32(i % 3)
	}
	want := slices.Clone(got)
	for i := range rows {
		for j := range cols {
			sum := float32(add) * want[i*cRow+j]
			for x := range k {
				sum += a[i*aRow+x] * src[x*cols+j]
			}
			want[i*cRow+j] = sum
		}
	}
	PackEights(b, src, k, cols, cols, 1)
	p := Eights{A: unsafe.Pointer(&a[0]), B: unsafe.Pointer(&b[0]), C: unsafe.Pointer(&got[0]), ARow: 4 * aRow, CRow: 4 * cRow,
		K: k, Rows: rows, Cols: cols, Add: add}
	p.Run(level)
	if !slices.Equal(got, want) {
		t.Fatalf("%v, %d rows of %d to %d columns, add %d: %v, want %v", level, rows, k, cols, add, got, want)
	}
}
