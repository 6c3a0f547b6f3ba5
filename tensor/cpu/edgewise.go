package cpu

import (
	"math"

	"starling/tensor"
	"starling/tensor/bfloat"
	"starling/tensor/cpu/simd"
)

// edgewise is an operation over edges on some core: scratch, and how rows are read
// and written. Rows of a device's own type are used in place.
type edgewise struct {
	level simd.Level
	free  []float32
	taken *[]float32
}

// work is scratch of n numbers; what take distributes of it is of any content.
func (c *Device) work(n int) *edgewise {
	f := takeFloats(n)
	return &edgewise{c.level, (*f)[:n], f}
}

func (w *edgewise) done() { floatsPool.Put(w.taken) }

func (w *edgewise) take(n int) []float32 {
	out := w.free[:n:n]
	w.free = w.free[n:]
	return out
}

// zeros is take, cleared.
func (w *edgewise) zeros(n int) []float32 {
	out := w.take(n)
	clear(out)
	return out
}

// read is row i of m, in buffer where it must be widened.
func readRow(m Matrix, i int, buffer []float32) []float32 {
	if m.Type() == F32 {
		return rowOf(m, i)
	}
	for c, x := range row16Of(m, i) {
		buffer[c] = bfloat.Widen(x)
	}
	return buffer[:m.Cols]
}

// write makes row i of m scale·x, or adds that.
func writeRow(m Matrix, i int, x []float32, scale float32, add bool) {
	if m.Type() == F32 {
		row := rowOf(m, i)
		for c, v := range x {
			if add {
				row[c] += scale * v
			} else {
				row[c] = scale * v
			}
		}
		return
	}
	row := row16Of(m, i)
	for c, v := range x {
		v *= scale
		if add {
			v += bfloat.Widen(row[c])
		}
		row[c] = bfloat.Round(v)
	}
}

// edgeShares are whole rows: what is done over an edge costs far more than reading it,
// and sums that several shares add to (of parameters) must be few.
func edgeShares(s *Sparse, cols int) *shares {
	return newShares(s, max(entriesPerShare(cols), s.Entries()/512), math.MaxInt64)
}

// partials are sums of parameters' gradients, one row a share, added in their order.
type partials struct {
	c   *Device
	sum Matrix
}

func (c *Device) partials(shares, cols int) partials { return partials{c, c.New(F32, shares, cols)} }

// addTo adds columns from on of all rows to the numbers of dst.
func (p partials) addTo(dst Matrix, from int) {
	if dst.IsZero() {
		return
	}
	for k := range p.sum.Rows {
		part := rowOf(p.sum, k)[from:]
		for i := range dst.Rows {
			simd.AddScaled(p.c.level, rowOf(dst, i), part[i*dst.Cols:], 1)
		}
	}
}

func (p partials) done() { p.c.Free(p.sum) }

// size is how many numbers the gradients of the linear map have.
func edgeGradSize(x *EdgeInput) int { return x.Features.Cols*x.Weight.Cols + x.Bias.Cols }

func needEdges(x *EdgeInput, name string, adj *Sparse, width int) {
	csr := compressedOf(adj)
	if x.Features.IsZero() {
		return
	}
	tensor.Need(x.Features.Type() == F32 && x.Features.Rows >= int(csr.ptr[adj.Rows]), "%s: edge features are %v", name,
		x.Features)
	needScores(name+": weight of edge features", x.Weight, x.Features.Cols, width)
	if !x.Bias.IsZero() {
		needScores(name+": bias of edge features", x.Bias, 1, width)
	}
}

// add: to = base + features_e · weight + bias.
func addEdge(x *EdgeInput, w *edgewise, to, base []float32, e int64) []float32 {
	if x.Features.IsZero() {
		return base
	}
	copy(to, base)
	for k, f := range rowOf(x.Features, int(e)) {
		simd.AddScaled(w.level, to, rowOf(x.Weight, k), f)
	}
	if !x.Bias.IsZero() {
		simd.AddScaled(w.level, to, rowOf(x.Bias, 0), 1)
	}
	return to
}

// learnInto adds what the gradient dt of an edge's row says of weight and bias.
func addEdgeGrad(x *EdgeInput, w *edgewise, sum, dt []float32, e int64) {
	if x.Features.IsZero() {
		return
	}
	for k, f := range rowOf(x.Features, int(e)) {
		simd.AddScaled(w.level, sum[k*len(dt):(k+1)*len(dt)], dt, f)
	}
	if !x.Bias.IsZero() {
		simd.AddScaled(w.level, sum[x.Features.Cols*len(dt):][:len(dt)], dt, 1)
	}
}
