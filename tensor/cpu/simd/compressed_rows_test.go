package simd

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// someZeros is numbers of which a share is zero, of either sign.
func someZeros(r *rand.Rand, n int, share float64) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
		if r.Float64() < share {
			x[i] = float32(math.Copysign(0, float64(x[i])))
		}
	}
	return x
}

// TestCompressRows: a list has what is not zero, in order, and a zero after it. What is not a number is there too.
func TestCompressRows(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for level := Generic; level <= Best(); level++ {
		for _, cols := range []int{0, 1, 15, 16, 17, 48, 63, 64} {
			for _, share := range []float64{0, 0.5, 0.9, 1} {
				const rows = 5
				stride := cols + 3
				src := someZeros(r, rows*stride, share)
				src[stride] = float32(math.NaN())
				compact := make([]CompressedRow, rows)
				CompressRows(level, compact, src, rows, cols, stride)
				for i := range compact {
					checkList(t, level, &compact[i], src[i*stride:i*stride+cols])
				}
			}
		}
	}
}

func checkList(t *testing.T, level Level, l *CompressedRow, row []float32) {
	t.Helper()
	n := 0
	for k, x := range row {
		if x == 0 {
			continue
		}
		offset, same := uint32(4*k*CompressedPacking(level).Pitch), math.Float32bits(l.values[n]) == math.Float32bits(x)
		if n >= l.Len() || l.offsets[n] != offset || !same {
			t.Fatalf("%v, %v: number %d of the list is %v at %d, of %d", level, row, n, l.values[n], l.offsets[n],
				l.Len())
		}
		n++
	}
	if l.Len() != n || l.values[n] != 0 || l.offsets[n] != 0 {
		t.Fatalf("%v, %v: %d in the list, then %v at %d", level, row, l.Len(), l.values[n], l.offsets[n])
	}
}

// TestCompressedTile: every level's tiles give the sums of a plain loop, and write no other place.
func TestCompressedTile(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for level := Generic; level <= Best(); level++ {
		p := CompressedPacking(level)
		for panels := 1; panels <= CompressedPanels; panels++ {
			for _, depth := range []int{1, 7, 64} {
				for _, add := range []int{0, 1} {
					const rows = 9
					cols := panels * p.Width
					a, b := someZeros(r, rows*depth, 0.7), someZeros(r, depth*cols, 0)
					clear(a[:depth]) // an empty list
					packed := make([]float32, p.Size(cols))
					p.PackRows(level, packed, b, depth, cols, cols)
					compact := make([]CompressedRow, rows)
					CompressRows(level, compact, a, rows, depth, depth)
					stride := cols + 1
					c := someZeros(r, rows*stride, 0)
					was := append([]float32(nil), c...)
					tile := CompressedTile{Compressed: &compact[0], B: unsafe.Pointer(&packed[0]), C: unsafe.Pointer(&c[0]),
						CRow: 4 * stride, Rows: rows, Add: add}
					tile.Run(level, panels)
					for i, got := range c {
						want, j := float64(was[i]), i%stride
						if j < cols {
							want *= float64(add)
							for k := range depth {
								want += float64(a[i/stride*depth+k]) * float64(b[k*cols+j])
							}
						}
						if math.Abs(float64(got)-want) > 1e-5 {
							t.Fatalf("%v, %d panels, depth %d, add %d: number (%d,%d) is %v, want %v", level, panels,
								depth, add, i/stride, j, got, want)
						}
					}
				}
			}
		}
	}
}
