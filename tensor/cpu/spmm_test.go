package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"starling/tensor"
	"starling/tensor/bfloat"
	"starling/tensor/cpu/simd"
	"starling/tensor/ref"
)

// edges is a graph as a list, for tests: in-edges (dst, src), in order of dst.
type edges struct {
	rows, cols int
	ptr        []int64
	index      []uint32
	value      []float32
}

// randomEdges has isolated rows, self-loops, entries given twice and one row
// with hub entries.
func randomEdges(r *rand.Rand, rows, cols, degree, hub int) *edges {
	g := &edges{rows: rows, cols: cols, ptr: []int64{0}}
	for i := range rows {
		n := r.IntN(2*degree + 1)
		if r.IntN(4) == 0 {
			n = 0
		}
		if i == rows/2 {
			n += hub
		}
		for k := range n {
			j := uint32(r.IntN(cols))
			switch {
			case k > 0 && r.IntN(8) == 0:
				j = g.index[len(g.index)-1]
			case i < cols && r.IntN(8) == 0:
				j = uint32(i)
			}
			g.index = append(g.index, j)
		}
		g.ptr = append(g.ptr, int64(len(g.index)))
	}
	g.value = make([]float32, len(g.index))
	for e := range g.value {
		g.value[e] = float32(r.NormFloat64())
	}
	return g
}

func (g *edges) sparse(d tensor.Device, values bool) *Sparse {
	if !values {
		return tensor.NewSparse(d, g.rows, g.cols, g.ptr, g.index, nil)
	}
	return tensor.NewSparse(d, g.rows, g.cols, g.ptr, g.index, g.value)
}

// transpose is the same graph by source, entries in order of destination.
func (g *edges) transpose(d tensor.Device, s *Sparse) *Sparse {
	ptr := make([]int64, g.cols+1)
	for _, j := range g.index {
		ptr[j+1]++
	}
	for j := range g.cols {
		ptr[j+1] += ptr[j]
	}
	next := append([]int64(nil), ptr...)
	index, perm := make([]uint32, len(g.index)), make([]uint32, len(g.index))
	for i := range g.rows {
		for e := g.ptr[i]; e < g.ptr[i+1]; e++ {
			at := &next[g.index[e]]
			index[*at], perm[*at] = uint32(i), uint32(e)
			*at++
		}
	}
	return tensor.Transpose(d, s, ptr, index, perm)
}

// twin makes the same random matrix on two devices. gap puts unused numbers
// between the rows of the first, so that it is a view.
func twin(r *rand.Rand, d, ref tensor.Device, t DType, rows, cols, gap int) (Matrix, Matrix) {
	host := make([]float64, rows*cols)
	for i := range host {
		host[i] = r.NormFloat64()
		if t == BF16 {
			host[i] = float64(bfloat.Widen(bfloat.Round(float32(host[i]))))
		} else {
			host[i] = float64(float32(host[i]))
		}
	}
	m := d.New(t, rows, cols+gap).Columns(gap, gap+cols)
	d.Upload(m, host)
	m64 := ref.New(F64, rows, cols)
	ref.Upload(m64, host)
	return m, m64
}

// same fails when got differs from want by more than tol times the largest
// number of its row (at least one).
func same(t *testing.T, name string, got, want Matrix, tol float64) {
	t.Helper()
	if got.Type() == BF16 {
		tol += 1. / 256
	}
	for i := range want.Rows {
		a, b := make([]float64, want.Cols), make([]float64, want.Cols)
		tensor.CopyOut(a, got.Slice(i, i+1))
		tensor.CopyOut(b, want.Slice(i, i+1))
		top := 1.0
		for _, x := range b {
			top = max(top, math.Abs(x))
		}
		for c := range a {
			if !(math.Abs(a[c]-b[c]) <= tol*top) {
				t.Fatalf("%s: row %d column %d is %g, want %g", name, i, c, a[c], b[c])
			}
		}
	}
}

// sameBits fails when two matrices differ in any bit.
func sameBits(t *testing.T, name string, a, b Matrix) {
	t.Helper()
	x, y := make([]float64, a.Rows*a.Cols), make([]float64, a.Rows*a.Cols)
	tensor.CopyOut(x, a)
	tensor.CopyOut(y, b)
	for i := range x {
		if math.Float64bits(x[i]) != math.Float64bits(y[i]) {
			t.Fatalf("%s: number %d is %g with other threads %g", name, i, x[i], y[i])
		}
	}
}

// everyLevel runs a test on a device of each instruction set this processor has.
func everyLevel(t *testing.T, body func(t *testing.T, d *Device)) {
	for l := simd.Generic; l <= simd.Supported(); l++ {
		if l >= simd.AMX {
			continue // it runs the kernels of AVX-512
		}
		t.Run(l.String(), func(t *testing.T) {
			d := newLevel(2, l)
			defer d.Close()
			body(t, d)
		})
	}
}

var graphSizes = []struct{ rows, cols, degree, hub int }{
	{0, 0, 0, 0}, {1, 1, 0, 0}, {1, 1, 3, 0}, {0, 5, 1, 0}, {37, 37, 4, 0}, {50, 20, 3, 0}, {20, 50, 3, 100}, {300, 300,
		9, 700},
}

// A long row is cut into parts; rows of any range of a sliced matrix are the same as in the whole.
func TestAggregateLongRowsAndSlices(t *testing.T) {
	everyLevel(t, func(t *testing.T, d *Device) {
		r := rand.New(rand.NewPCG(3, 4))
		ref := ref.New()
		g := randomEdges(r, 40, 60, 5, 15000)
		src, src64 := twin(r, d, ref, F32, g.cols, 300, 0)
		op, op64 := Aggregate{Self: -2}, Aggregate{Self: -2}
		op.RowScale, op64.RowScale = twin(r, d, ref, F32, g.rows, 1, 0)
		op.ColScale, op64.ColScale = twin(r, d, ref, F32, g.cols, 1, 0)
		dst, dst64 := twin(r, d, ref, F32, g.rows, 300, 0)
		s := g.sparse(d, true)
		d.Aggregate(dst, s, src, op)
		ref.Aggregate(dst64, g.sparse(ref, true), src64, op64)
		same(t, "long row", dst, dst64, 1e-4)

		part := d.New(F32, 10, 300)
		op.RowScale, op.First = op.RowScale.Slice(15, 25), 15
		d.Aggregate(part, s.Slice(15, 25), src, op)
		ref.Aggregate(dst64, g.sparse(ref, true), src64, op64)
		same(t, "slice", part, dst64.Slice(15, 25), 1e-4)
	})
}

func TestSharesCoverEveryEntryOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	d := New(1)
	defer d.Close()
	for range 200 {
		g := randomEdges(r, r.IntN(60), 1+r.IntN(60), r.IntN(30), r.IntN(400))
		size := int64(1 + r.IntN(50))
		w := newShares(g.sparse(d, false), size, size*int64(1+r.IntN(4)))
		row, entry := 0, int64(0)
		for _, x := range w.list {
			b := w.bounds(g.sparse(d, false), x)
			if b[0] != entry || (x.lo != row && !(x.part >= 0 && x.lo == row-1 && x.from > g.ptr[x.lo])) {
				t.Fatalf("share %+v after row %d entry %d", x, row, entry)
			}
			row, entry = x.hi, b[len(b)-1]
		}
		if row != g.rows || entry != int64(len(g.index)) {
			t.Fatalf("shares end at row %d entry %d of %d, %d", row, entry, g.rows, len(g.index))
		}
		w.done()
	}
}

func TestDropoutValues(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	d, ref := New(2), ref.New()
	defer d.Close()
	for _, g := range graphSizes {
		g := randomEdges(r, g.rows, g.cols, g.degree, g.hub)
		s, s64 := g.sparse(d, true), g.sparse(ref, true)
		for _, drop := range []Dropout{{}, {P: 0.5, Key: 77, First: 3},
			{P: 0.1, Key: 5, IDs: tensor.Indices(d, g.index[:min(len(g.index), g.rows)])}} {
			if entriesOf(drop.IDs) != nil && drop.IDs.Len() < g.rows {
				continue
			}
			v, v64 := d.New(F32, len(g.index), 1), ref.New(F64, len(g.index), 1)
			d.DropoutValues(v, s, drop, false)
			ref.DropoutValues(v64, s64, drop, false)
			same(t, "DropoutValues", v, v64, 1e-6)
			// The transpose draws the same for the same entry.
			w := d.New(F32, len(g.index), 1)
			st := g.transpose(d, s)
			d.DropoutValues(w, st, drop, true)
			for e, p := range compressedOf(st).perm {
				if f32Of(w)[e] != f32Of(v)[p] {
					t.Fatalf("entry %d of the transpose drew %g, want %g", e, f32Of(w)[e], f32Of(v)[p])
				}
			}
		}
	}
}

// Any number of threads gives the same bits.
func TestGraphKernelsIgnoreThreads(t *testing.T) {
	width, heads := 300, 4
	if testing.Short() {
		width, heads = 40, 1
	}
	var first []Matrix
	for threads := 1; threads <= 3; threads++ {
		r := rand.New(rand.NewPCG(13, 14))
		d, ref := New(threads), ref.New()
		defer d.Close()
		g := randomEdges(r, 2000, 2000, 20, 20000)
		s := g.sparse(d, true)
		src, _ := twin(r, d, ref, F32, g.cols, width, 0)
		dst := d.New(F32, g.rows, width)
		d.Aggregate(dst, s, src, Aggregate{})
		got := []Matrix{dst}
		got = append(got, attentionResults(d, ref, r, g, heads, 30)...)
		if first == nil {
			first = got
			continue
		}
		for i := range got {
			sameBits(t, fmt.Sprintf("result %d, %d threads", i, threads), got[i], first[i])
		}
	}
}
