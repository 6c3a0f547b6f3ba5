package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"starling/tensor"
	"starling/tensor/ref"
)

// attentionResults runs both passes of attention on d and returns all results.
func attentionResults(d *Device, ref *ref.Device, r *rand.Rand, g *edges, heads, width int) []Matrix {
	op := Attention{Heads: heads, Slope: 0.2, Dropout: Dropout{P: 0.3, Key: 9}}
	s := g.sparse(d, false)
	z, _ := twin(r, d, ref, F32, g.cols, heads*width, 0)
	left, _ := twin(r, d, ref, F32, g.cols, heads, 0)
	right, _ := twin(r, d, ref, F32, g.rows, heads, 0)
	ddst, _ := twin(r, d, ref, F32, g.rows, heads*width, 0)
	a, _ := twin(r, d, ref, F32, 1, heads*width, 0)
	dst, stat := d.New(F32, g.rows, heads*width), d.New(F32, g.rows, 2*heads)
	d.Attend(dst, stat, s, z, left, right, op)
	dz, dleft, dright := d.New(F32, g.cols, heads*width), d.New(F32, g.cols, heads), d.New(F32, g.rows, heads)
	d.AttendGrad(dz, dleft, dright, s, g.transpose(d, s), z, left, right, stat, dst, ddst, op)
	score, da := d.New(F32, g.cols, heads), d.New(F32, 1, heads*width)
	d.HeadDot(z, HeadDot{Score: score, A: a})
	d.HeadDotGrad(Matrix{}, z, HeadDot{Score: score, A: a, DA: da})
	return []Matrix{dst, stat, dz, dleft, dright, score, da}
}

func TestAttention(t *testing.T) {
	graphs, grouped := 4, []int{1, 2, 4, 7, 8, 20}
	if testing.Short() {
		graphs, grouped = 1, []int{1, 4, 7}
	}
	everyLevel(t, func(t *testing.T, d *Device) {
		r := rand.New(rand.NewPCG(1, 2))
		for _, shape := range [][2]int{{1, 1}, {1, 7}, {1, 40}, {2, 5}, {3, 16}, {4, 32}, {8, 8}, {8, 64}, {6, 33},
			{16, 3}, {20, 12}, {1, 300}, {2, 150}, {5, 1}, {1, 700}, {33, 20}, {1, 90}, {2, 48}, {2, 64}, {3, 32}, {6,
				64}, {11, 16}, {16, 16}, {4, 10}, {4, 40}, {4, 4}, {6, 8}, {8, 9}, {2, 17}, {8, 40}, {16, 8}} {
			for range graphs {
				g := graphSizes[r.IntN(len(graphSizes))]
				testAttention(t, d, r, randomEdges(r, g.rows, g.cols, g.degree, g.hub), shape[0], shape[1])
			}
		}
		for _, g := range graphSizes {
			testAttention(t, d, r, randomEdges(r, g.rows, g.cols, g.degree, g.hub), 1+r.IntN(5), 1+r.IntN(40))
		}
		for _, heads := range grouped { // enough entries for gradients to be summed by groups
			testAttention(t, d, r, randomEdges(r, 20, 30, 5, 10000), heads, 20)
			testAttention(t, d, r, randomEdges(r, 20, 30, 150, 0), heads, 32)
			testAttention(t, d, r, randomEdges(r, 20, 30, 150, 0), heads, 8)
		}
	})
}

// Rows of whole lines, heads of whole ones, have loops of their own, up to where few entries are left.
func TestAttentionOfWholeLines(t *testing.T) {
	everyLevel(t, func(t *testing.T, d *Device) {
		r := rand.New(rand.NewPCG(3, 4))
		for _, shape := range [][2]int{{4, 32}, {4, 64}, {8, 32}, {12, 64}, {16, 32}} {
			for _, degree := range []int{1, 7, 33, 150} {
				testAttentionOf(t, d, r, randomEdges(r, 20, 30, degree, 0), shape[0], shape[1], BF16, 0)
			}
		}
	})
}

// Rows of a megabyte and more are prefetched, in loops of their own.
func TestAttentionOfManyRows(t *testing.T) {
	shapes := [][2]int{{4, 32}, {1, 41}}
	if testing.Short() {
		shapes = shapes[:1]
	}
	everyLevel(t, func(t *testing.T, d *Device) {
		r := rand.New(rand.NewPCG(5, 6))
		for _, shape := range shapes {
			n := 1<<20/(shape[0]*shape[1]*BF16.Size()) + 1
			testAttentionOf(t, d, r, randomEdges(r, n, n, 2, 50), shape[0], shape[1], BF16, 0)
		}
	})
}

func testAttention(t *testing.T, d *Device, r *rand.Rand, g *edges, heads, width int) {
	gap := r.IntN(3)
	testAttentionOf(t, d, r, g, heads, width, DType(r.IntN(2)), gap)
}

func testAttentionOf(t *testing.T, d *Device, r *rand.Rand, g *edges, heads, width int, kind DType, gap int) {
	ref := ref.New()
	cols := heads * width
	name := fmt.Sprintf("%dx%d, %d entries, %d heads of %d, %v: ", g.rows, g.cols, len(g.index), heads, width, kind)
	op := Attention{Heads: heads, Slope: 0.2}
	if r.IntN(2) == 1 {
		op.Dropout = Dropout{P: 0.4, Key: r.Uint64(), First: 10}
		if r.IntN(2) == 1 {
			op.Dropout.IDs, op.SrcIDs = randomIDs(r, g.rows), randomIDs(r, g.cols)
		}
	}
	op64 := op
	if r.IntN(3) == 0 {
		op.Edge, op64.Edge = twin(r, d, ref, F32, len(g.index), heads, 0)
		op.DEdge, op64.DEdge = twin(r, d, ref, F32, len(g.index), heads, 0)
	}
	z, z64 := twin(r, d, ref, kind, g.cols, cols, gap)
	left, left64 := twin(r, d, ref, F32, g.cols, heads, gap)
	right, right64 := twin(r, d, ref, F32, g.rows, heads, gap)
	dst, dst64 := twin(r, d, ref, kind, g.rows, cols, gap)
	stat, stat64 := twin(r, d, ref, F32, g.rows, 2*heads, 0)
	s, s64 := g.sparse(d, false), g.sparse(ref, false)
	d.Attend(dst, stat, s, z, left, right, op)
	ref.Attend(dst64, stat64, s64, z64, left64, right64, op64)
	same(t, name+"dst", dst, dst64, 5e-5)

	ddst, ddst64 := twin(r, d, ref, kind, g.rows, cols, gap)
	dz, dz64 := twin(r, d, ref, kind, g.cols, cols, gap)
	dleft, dleft64 := twin(r, d, ref, F32, g.cols, heads, gap)
	dright, dright64 := twin(r, d, ref, F32, g.rows, heads, gap)
	d.AttendGrad(dz, dleft, dright, s, g.transpose(d, s), z, left, right, stat, dst, ddst, op)
	ref.AttendGrad(dz64, dleft64, dright64, s64, nil, z64, left64, right64, stat64, dst64, ddst64, op64)
	tol := 1e-4
	if kind == BF16 {
		tol = 0.02 * math.Sqrt(float64(width)+10) // delta is made of the rounded dst
	}
	same(t, name+"dz", dz, dz64, 1e-4)
	same(t, name+"dleft", dleft, dleft64, tol)
	if !op.Edge.IsZero() {
		same(t, name+"edges", op.DEdge, op64.DEdge, tol)
	}
	same(t, name+"dright", dright, dright64, tol)

	testHeadDot(t, d, r, name, kind, g.cols, g.rows, heads, cols, gap)
}

// testHeadDot has two vectors, one of fewer rows, as attention has.
func testHeadDot(t *testing.T, d *Device, r *rand.Rand, name string, kind DType, rows, fewer, heads, cols, gap int) {
	t.Helper()
	ref := ref.New()
	z, z64 := twin(r, d, ref, kind, rows, cols, gap)
	dz, dz64 := twin(r, d, ref, kind, rows, cols, gap)
	var dots, dots64 []HeadDot
	for _, n := range []int{rows, min(rows, fewer)} {
		var x, x64 HeadDot
		x.Score, x64.Score = twin(r, d, ref, F32, n, heads, gap)
		x.A, x64.A = twin(r, d, ref, F32, 1, cols, 0)
		x.DA, x64.DA = twin(r, d, ref, F32, 1, cols, 0)
		dots, dots64 = append(dots, x), append(dots64, x64)
	}
	d.HeadDotGrad(dz, z, dots...)
	ref.HeadDotGrad(dz64, z64, dots64...)
	tol := 1e-4
	if kind == BF16 {
		tol = 1. / 64 // dz is rounded once more, where it may be larger than at the end
	}
	same(t, name+"HeadDotGrad dz", dz, dz64, tol)
	for i := range dots {
		same(t, name+"HeadDotGrad da", dots[i].DA, dots64[i].DA, 1e-4)
	}
	d.HeadDot(z, dots...)
	ref.HeadDot(z64, dots64...)
	for i := range dots {
		same(t, name+"HeadDot", dots[i].Score, dots64[i].Score, 1e-4)
	}
}

// Heads are loaded and stored as vectors that may reach over to the next: nothing is written
// beside the rows that were asked
// for, and a NaN stays in its head.
func TestHeadsKeepApart(t *testing.T) {
	everyLevel(t, func(t *testing.T, d *Device) {
		r := rand.New(rand.NewPCG(7, 8))
		for _, shape := range [][2]int{{4, 10}, {4, 40}, {8, 8}, {8, 4}, {3, 5}, {2, 17}, {16, 9}, {1, 7}, {6, 33}} {
			for _, kind := range []DType{F32, BF16} {
				testHeadsApart(t, d, r, randomEdges(r, 30, 20, 4, 40), shape[0], shape[1], kind)
			}
		}
	})
}

func testHeadsApart(t *testing.T, d *Device, r *rand.Rand, g *edges, heads, width int, kind DType) {
	const pad, mark = 3, 7
	ref, cols := ref.New(), heads*width
	z, _ := twin(r, d, ref, kind, g.cols, cols, 0)
	left, _ := twin(r, d, ref, F32, g.cols, heads, 0)
	right, _ := twin(r, d, ref, F32, g.rows, heads, 0)
	dst, _ := twin(r, d, ref, kind, g.rows, cols, 0)
	ddst, _ := twin(r, d, ref, kind, g.rows, cols, 0)
	stat, dleft, dright := d.New(F32, g.rows, 2*heads), d.New(F32, g.cols, heads), d.New(F32, g.rows, heads)
	s, op := g.sparse(d, false), Attention{Heads: heads, Slope: 0.2}
	d.Attend(dst, stat, s, z, left, right, op)
	bad := heads / 2
	none := make([]float32, g.rows*width)
	for i := range none {
		none[i] = float32(math.NaN())
	}
	d.Upload(ddst.Columns(bad*width, (bad+1)*width), none)
	around := d.New(kind, g.cols+2, cols+2*pad)
	marks := make([]float32, around.Rows*around.Cols)
	for i := range marks {
		marks[i] = mark
	}
	d.Upload(around, marks)
	d.AttendGrad(around.Slice(1, 1+g.cols).Columns(pad, pad+cols), dleft, dright, s, g.transpose(d, s), z, left, right,
		stat, dst, ddst, op)
	for i, x := range hostOf(around) {
		row, col := i/around.Cols-1, i%around.Cols-pad
		inside := row >= 0 && row < g.cols && col >= 0 && col < cols
		if !inside && x != mark || inside && col/width != bad && math.IsNaN(x) {
			t.Fatalf("%v, %d heads of %d: row %d, column %d became %g", kind, heads, width, row, col, x)
		}
	}
	for name, m := range map[string]Matrix{"dleft": dleft, "dright": dright} {
		for i, x := range hostOf(m) {
			if i%heads != bad && math.IsNaN(x) {
				t.Fatalf("%v, %d heads of %d: %s %d became none", kind, heads, width, name, i)
			}
		}
	}
}

func hostOf(m Matrix) []float64 {
	host := make([]float64, m.Rows*m.Cols)
	tensor.CopyOut(host, m)
	return host
}

func randomIDs(r *rand.Rand, n int) Index {
	ids := make([]uint32, n)
	for i := range ids {
		ids[i] = r.Uint32()
	}
	return tensor.MakeIndex(tensor.FromSlice(len(ids), 1, ids))
}

// The backward pass of the definition is the derivative of its forward pass,
// dropout included.
func TestAttentionGradIsTheDerivative(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	ref := ref.New()
	g := randomEdges(r, 12, 9, 3, 10)
	const heads, width, h = 2, 3, 1e-6
	op := Attention{Heads: heads, Slope: 0.2, Dropout: Dropout{P: 0.3, Key: 8}}
	_, z := twin(r, ref, ref, F32, g.cols, heads*width, 0)
	_, left := twin(r, ref, ref, F32, g.cols, heads, 0)
	_, right := twin(r, ref, ref, F32, g.rows, heads, 0)
	_, w := twin(r, ref, ref, F32, g.rows, heads*width, 0)
	dst, stat := ref.New(F64, g.rows, heads*width), ref.New(F64, g.rows, 2*heads)
	s := g.sparse(ref, false)
	loss := func() float64 {
		ref.Attend(dst, stat, s, z, left, right, op)
		return tensor.Dots(ref, [2]Matrix{dst, w})[0]
	}
	loss()
	dz, dleft, dright := ref.New(F64, g.cols, heads*width), ref.New(F64, g.cols, heads), ref.New(F64, g.rows, heads)
	ref.AttendGrad(dz, dleft, dright, s, nil, z, left, right, stat, dst, w, op)
	for k, pair := range [][2]Matrix{{z, dz}, {left, dleft}, {right, dright}} {
		for i := range f64Of(pair[0]) {
			x := &f64Of(pair[0])[i]
			was := *x
			*x = was + h
			up := loss()
			*x = was - h
			down := loss()
			*x = was
			if got, want := f64Of(pair[1])[i], (up-down)/(2*h); got-want > 1e-6 || want-got > 1e-6 {
				t.Fatalf("gradient %d, number %d is %g, want %g", k, i, got, want)
			}
		}
	}
}
