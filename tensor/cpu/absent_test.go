package cpu

import (
	"math"
	"math/rand/v2"
	"testing"

	"starling/tensor"
	"starling/tensor/ref"
)

// TestAbsentSources: a source with a score of -1e30 gets exactly no weight and no
// gradient, and the others get what they get where it is missing from the graph.
// Strategies leave vertices out of a softmax that way. Rows so long that they are
// cut into parts are among them, with parts of absent sources only.
func TestAbsentSources(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	shapes := [][5]int{{1, 1, 0, 1, 1}, {30, 60, 8, 2, 5}, {20, 400, 60, 8, 16}, {3, 12000, 11000, 2, 4}}
	for _, s := range shapes {
		testAbsent(t, ref.New(), r, F64, s[0], s[1], s[2], s[3], s[4])
	}
	everyLevel(t, func(t *testing.T, d *Device) {
		for _, s := range shapes {
			testAbsent(t, d, r, F32, s[0], s[1], s[2], s[3], s[4])
			testAbsent(t, d, r, BF16, s[0], s[1], s[2], s[3], s[4])
		}
	})
}

// withLoops has a loop at each row and degree other entries, in order of columns.
// Sources that are not there are left out of some.
func withLoops(r *rand.Rand, rows, cols, degree int, there []bool) (all, some *edges) {
	all, some = &edges{rows: rows, cols: cols, ptr: []int64{0}}, &edges{rows: rows, cols: cols, ptr: []int64{0}}
	for i := range rows {
		for e := range degree + 1 {
			j := uint32(i)
			if e > 0 {
				j = uint32(min(cols-1, e*cols/(degree+1)+r.IntN(2)))
			}
			all.index = append(all.index, j)
			if there[j] {
				some.index = append(some.index, j)
			}
		}
		all.ptr, some.ptr = append(all.ptr, int64(len(all.index))), append(some.ptr, int64(len(some.index)))
	}
	return all, some
}

func testAbsent(t *testing.T, d tensor.Device, r *rand.Rand, kind DType, rows, cols, degree, heads, width int) {
	ref := ref.New()
	there := make([]bool, cols)
	for j := range there {
		there[j] = j < rows || j > 6000 && r.IntN(4) == 0 || j < 1000 && r.IntN(2) == 0
	}
	all, some := withLoops(r, rows, cols, degree, there)
	op := Attention{Heads: heads, Slope: 0.2}
	z, z64 := twin(r, d, ref, kind, cols, heads*width, 0)
	left, left64 := twin(r, d, ref, d.Type(), cols, heads, 0)
	right, right64 := twin(r, d, ref, d.Type(), rows, heads, 0)
	ddst, ddst64 := twin(r, d, ref, kind, rows, heads*width, 0)
	low := make([]float64, heads)
	for h := range low {
		low[h] = -1e30
	}
	for j, is := range there {
		if !is {
			d.Upload(left.Slice(j, j+1), low)
		}
	}
	got, want := attentionOf(d, kind, all, z, left, right, ddst, op), attentionOf(ref, F64, some, z64, left64, right64,
		ddst64, op)
	for k, name := range []string{"dst", "dz", "dleft", "dright"} {
		tol := 1e-4
		if kind == BF16 && k > 1 {
			tol = 0.02 * math.Sqrt(float64(width)+10)
		}
		same(t, name, got[k], want[k], tol)
	}
	for j, is := range there {
		for _, m := range []Matrix{got[1].Slice(j, j+1), got[2].Slice(j, j+1)} {
			for _, x := range numbers(m) {
				if !is && x != 0 {
					t.Fatalf("absent source %d has gradient %g", j, x)
				}
			}
		}
	}
}

// attentionOf is the result of both passes and the gradients of rows and scores.
func attentionOf(d tensor.Device, kind DType, g *edges, z, left, right, ddst Matrix, op Attention) []Matrix {
	s := g.sparse(d, false)
	dst, stat := d.New(kind, g.rows, z.Cols), d.New(d.Type(), g.rows, 2*op.Heads)
	d.Attend(dst, stat, s, z, left, right, op)
	dz, dleft, dright := d.New(kind, g.cols, z.Cols), d.New(d.Type(), g.cols, op.Heads), d.New(d.Type(), g.rows,
		op.Heads)
	d.AttendGrad(dz, dleft, dright, s, g.transpose(d, s), z, left, right, stat, dst, ddst, op)
	return []Matrix{dst, dz, dleft, dright}
}
