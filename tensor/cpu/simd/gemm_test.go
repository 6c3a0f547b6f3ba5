package simd

import (
	"math"
	"slices"
	"testing"
	"unsafe"
)

// TestTiles: tiles of every size add to the rows and columns they have what a plain loop does,
// or overwrite them, and nothing
// else. Rows of A past theirs may be anything.
func TestTiles(t *testing.T) {
	const k, cRow = 7, 40
	for level := Generic; level <= min(AVX512, Supported()); level++ {
		mr, nr := TileShape(level)
		b := make([]float32, k*nr)
		for i := range b {
			b[i] = float32(i%13 - 6)
		}
		for _, packed := range []bool{false, true} {
			aRow, aStep := LeftPitch, 1
			if packed {
				aRow, aStep = 1, (mr+nr/2-1)/(nr/2)*(nr/2)
			}
			for rows := 1; rows <= mr; rows++ {
				a := make([]float32, mr*LeftPitch)
				for i := range a {
					a[i] = float32(math.NaN())
				}
				for r := range rows {
					for x := range k {
						a[r*aRow+x*aStep] = float32((3*r+x)%11 - 5)
					}
				}
				for cols := 1; cols <= nr; cols++ {
					for add := range 2 {
						got, want := make([]float32, mr*cRow), make([]float32, mr*cRow)
						for i := range got {
							got[i], want[i] = 1, 1
						}
						tile := Tile{
							A: unsafe.Pointer(&a[0]), B: unsafe.Pointer(&b[0]), C: unsafe.Pointer(&got[0]),
							ARow: 4 * aRow, AStep: 4 * aStep, CRow: 4 * cRow, K: k, Cols: cols, Add: add,
						}
						tile.Run(level, rows)
						for r := range rows {
							for c := range cols {
								sum := float32(add)
								for x := range k {
									sum += a[r*aRow+x*aStep] * b[x*nr+c]
								}
								want[r*cRow+c] = sum
							}
						}
						if !slices.Equal(got, want) {
							t.Fatalf("%v, packed %v, %d x %d, add %d: %v, want %v", level, packed, rows, cols, add, got,
								want)
						}
					}
				}
			}
		}
	}
}

// TestPackPanelTransposed: every number of a panel is the one of its transposed place,
// and zero past the last row, at every level.
func TestPackPanelTransposed(t *testing.T) {
	for _, level := range []Level{Generic, AVX2, AVX512} {
		if level > Best() {
			continue
		}
		for _, width := range []int{4, 8, 16, 32} {
			for _, rows := range []int{0, 1, 15, 16, 17, 50, 64} {
				for _, n := range []int{1, 16, 31, 40} {
					stride := rows + 3
					src := make([]float32, n*stride)
					for i := range src {
						src[i] = float32(i + 1)
					}
					for lo := 0; lo < n; lo += width {
						dst := make([]float32, rows*width)
						for i := range dst {
							dst[i] = -1
						}
						PackPanelTransposed(level, dst, src, rows, n, stride, lo, width)
						for i, got := range dst {
							var want float32
							if at := lo + i%width; at < n {
								want = src[at*stride+i/width]
							}
							if got != want {
								t.Fatalf("%v, width %d, %d rows of %d from %d: number %d is %v, want %v", level, width,
									rows, n, lo, i, got, want)
							}
						}
					}
				}
			}
		}
	}
}
