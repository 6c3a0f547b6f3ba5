package simd

import (
	"fmt"
	"slices"
	"testing"
	"unsafe"
)

// TestFarChangesNothing: what asks for rows across pages computes what it does without, at rows that are short, long, of odd
// length or apart.
func TestFarChangesNothing(t *testing.T) {
	for _, s := range []struct{ rows, cols, stride int }{{90, 256, 256}, {70, 200, 203}, {300, 53, 53}, {3, 9000, 9000}, {1, 70, 70}, {900, 40, 40}, {900, 7, 7}, {300, 20, 21}} {
		for _, half := range []bool{false, true} {
			for level := AVX2; level <= Supported(); level++ {
				near, far := overBlock(level, s.rows, s.cols, s.stride, half, false), overBlock(level, s.rows, s.cols, s.stride, half, true)
				if !slices.Equal(far["softmax false"], far["softmax true"]) {
					t.Errorf("%v, %dx%d, half %v: a list of all rows makes a difference", level, s.rows, s.cols, half)
				}
				for name, want := range near {
					if !slices.Equal(far[name], want) {
						t.Errorf("%v, %dx%d, half %v: %s differs", level, s.rows, s.cols, half, name)
					}
				}
			}
		}
	}
}

// overBlock has what kernels make of a block of numbers.
func overBlock(l Level, rows, cols, stride int, half, far bool) map[string][]float32 {
	floats, halves := make([]float32, rows*stride), make([]uint16, rows*stride)
	for i := range floats {
		floats[i] = float32(i*7919%1000)/250 - 2
		halves[i] = ToBF16(floats[i])
	}
	x := Block{Data: unsafe.Pointer(&floats[0]), Stride: 4 * stride, Far: far}
	if half {
		x = Block{Data: unsafe.Pointer(&halves[0]), Stride: 2 * stride, BF16: true, Far: far}
	}
	result := map[string][]float32{}
	row := make([]float32, 2*(cols+16))
	out := func(name string) Block {
		result[name] = make([]float32, rows*cols)
		return Block{Data: unsafe.Pointer(&result[name][0]), Stride: 4 * cols}
	}
	for _, norm := range []bool{false, true} {
		m := Map{Src: x, Rows: rows, Cols: cols, Act: ELU, Moments: norm, Eps: 1e-5, StatStride: 8}
		if norm {
			m.Stat = &make([]float32, 2*rows)[0]
		}
		m.Dst = out(fmt.Sprint("map ", norm))
		m.Run(l)
	}
	list, labels, sum, gap := make([]uint32, rows), make([]uint32, rows), make([]float32, rows), make([]float32, rows)
	for i := range list {
		list[i], labels[i] = uint32(i), uint32(i%cols)
	}
	for _, listed := range []bool{false, true} {
		s := Softmax{X: x, Rows: rows, Cols: cols, Labels: &labels[0], Sum: &sum[0], Gap: &gap[0], Exp: &row[0], Scale: 1}
		if listed {
			s.List = &list[0]
		}
		s.Dst = out(fmt.Sprint("softmax ", listed))
		s.Run(l)
		result[fmt.Sprint("loss ", listed)] = append(slices.Clone(sum), gap...)
	}
	best := make([]uint32, rows)
	(&Argmax{X: x, Rows: rows, Cols: cols, Dst: &best[0]}).Run(l)
	sums := make([]float64, 4*(cols+16))
	c := ColumnSums{X: x, Dy: x, Rows: rows, Cols: cols, First: &sums[0], Other: &sums[cols+16]}
	c.Run(l)
	c.Mean, c.Rdev = &sums[2*(cols+16)], &sums[3*(cols+16)]
	c.Run(l)
	for _, b := range best {
		result["argmax"] = append(result["argmax"], float32(b))
	}
	for _, s := range sums {
		result["sums"] = append(result["sums"], float32(s))
	}
	return result
}
