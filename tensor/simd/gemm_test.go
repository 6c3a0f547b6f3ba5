package simd

import (
	"testing"
)

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
								t.Fatalf("%v, width %d, %d rows of %d from %d: number %d is %v, want %v", level, width, rows, n, lo, i, got, want)
							}
						}
					}
				}
			}
		}
	}
}
