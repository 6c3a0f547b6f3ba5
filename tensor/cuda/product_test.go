//go:build linux && amd64 && !static

package cuda_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"starling/tensor"
	"starling/tensor/cuda"
)

// TestProducts: every kernel of products, with odd sizes, all transpositions and a split sum, beside float64. The
// bounds are relative to the sum of the terms' sizes.
func TestProducts(t *testing.T) {
	needDriver(t)
	for _, k := range []struct {
		name    string
		o       cuda.Options
		a, b, c tensor.DType
		bound   float64
	}{
		{"split", cuda.Options{Plain: true}, tensor.F32, tensor.F32, tensor.F32, 1.5e-6},
		{"f32", cuda.Options{Plain: true, Exact: true}, tensor.F32, tensor.F32, tensor.F32, 1e-6},
		{"tf32", cuda.Options{Plain: true, TF32: true}, tensor.F32, tensor.F32, tensor.F32, 1e-3},
		{"bf16", cuda.Options{Plain: true}, tensor.BF16, tensor.BF16, tensor.F32, 1.5e-6},
		{"bf16 to bf16", cuda.Options{Plain: true}, tensor.BF16, tensor.BF16, tensor.BF16, 4e-3},
		{"bf16 by f32", cuda.Options{Plain: true}, tensor.BF16, tensor.F32, tensor.F32, 1e-2},
		{"f32 by bf16", cuda.Options{Plain: true}, tensor.F32, tensor.BF16, tensor.BF16, 1e-2},
	} {
		d, err := cuda.Open(k.o)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range productShapes {
			for which := range 4 {
				op := tensor.MatMul{TransA: which&1 != 0, TransB: which&2 != 0, Add: s.add}
				if emulated != "" && which != s.which && which != 3-s.which {
					continue
				}
				if e := productError(d, k.a, k.b, k.c, s.size, op); !(e < k.bound) {
					t.Errorf("%s: %v %+v: error %g, want less than %g", k.name, s.size, op, e, k.bound)
				}
			}
		}
		d.Close()
	}
}

// productShapes are rows, columns and terms of products: odd ones, ones that are copied 16 bytes at a time, more tiles
// than run at once, and a sum that is split. The emulator does the transpositions of which, and the other two of a GPU.
var productShapes = []struct {
	size  [3]int
	add   bool
	which int
}{
	{[3]int{45, 70, 21}, false, 0}, {[3]int{33, 40, 64}, true, 1}, {[3]int{390, 136, 40}, false, 0},
	{[3]int{136, 72, 56}, false, 1}, {[3]int{5, 9, 1100}, false, 1}, {[3]int{24, 16, 1056}, true, 0},
}

// productError is how far a product is from that of float64, at most.
func productError(d *cuda.Device, ta, tb, tc tensor.DType, s [3]int, op tensor.MatMul) (worst float64) {
	r := rand.New(rand.NewPCG(3, 4))
	draw := func(t tensor.DType, rows, cols int) (tensor.Matrix, []float64) {
		m, x := d.Scratch(t, rows, cols), make([]float64, rows*cols)
		for i := range x {
			x[i] = r.NormFloat64()
		}
		d.Upload(m, x)
		d.Download(x, m) // as it was rounded
		return m, x
	}
	shape := func(rows, cols int, turned bool) (int, int) {
		if turned {
			return cols, rows
		}
		return rows, cols
	}
	m, n, depth := s[0], s[1], s[2]
	ar, ac := shape(m, depth, op.TransA)
	br, bc := shape(depth, n, op.TransB)
	a, xa := draw(ta, ar, ac)
	b, xb := draw(tb, br, bc)
	dst, before := draw(tc, m, n)
	d.MatMul(dst, a, b, op)
	got := make([]float64, m*n)
	d.Download(got, dst)
	at := func(x []float64, i, j, cols int, turned bool) float64 {
		if turned {
			i, j = j, i
		}
		return x[i*cols+j]
	}
	for i := range m {
		for j := range n {
			want, size := 0.0, 0.0
			if op.Add {
				want, size = before[i*n+j], math.Abs(before[i*n+j])
			}
			for k := range depth {
				p := at(xa, i, k, ac, op.TransA) * at(xb, k, j, bc, op.TransB)
				want, size = want+p, size+math.Abs(p)
			}
			e := math.Abs(got[i*n+j]-want) / size
			if math.IsNaN(e) {
				panic(fmt.Sprint("not a number at ", i, j))
			}
			worst = max(worst, e)
		}
	}
	for _, x := range []tensor.Matrix{a, b, dst} {
		d.Free(x)
	}
	return worst
}
