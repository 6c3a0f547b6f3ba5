package nn

import (
	"math"

	"starling/graph"
	"starling/tensor"
)

// Topology is a graph made ready for aggregation on a device: the orientations
// and scales that the reductions need, each made once, when first asked for.
// Where the graph is symmetric one structure serves both directions.
type Topology struct {
	dev tensor.Device
	in  *graph.CSR // in-edges, as given

	plain, loopFree, looped *structure
	scale                   map[Kind]tensor.Matrix
}

// structure is a graph in both orientations.
type structure struct{ in, out *tensor.Sparse }

// NewTopology prepares g, which must stay as it is.
func NewTopology(dev tensor.Device, g *graph.CSR) *Topology {
	return &Topology{dev: dev, in: g, scale: map[Kind]tensor.Matrix{}}
}

// Nodes is the number of vertices.
func (t *Topology) Nodes() int { return t.in.Nodes() }

// structure returns the edges for a reduction: as they are, or without loops for
// Symmetric, which counts one at every vertex.
func (t *Topology) structure(k Kind) *structure {
	if t.plain == nil {
		t.plain = t.orient(t.in)
	}
	if k != Symmetric {
		return t.plain
	}
	if t.loopFree == nil {
		t.loopFree = t.plain
		if hasLoops(t.in) {
			t.loopFree = t.orient(t.in.WithoutSelfLoops())
		}
	}
	return t.loopFree
}

// orient puts a graph on the device in both directions.
func (t *Topology) orient(g *graph.CSR) *structure {
	n := g.Nodes()
	in := t.dev.SparseMatrix(n, n, g.Indptr, g.Indices, g.Weights)
	if g.Weights == nil && g.Symmetric() {
		return &structure{in: in, out: in}
	}
	back, perm := g.Transpose()
	if g.Weights == nil {
		perm = nil
	}
	return &structure{in: in, out: t.dev.SparseTranspose(in, back.Indptr, back.Indices, perm)}
}

// attention returns the edges with one loop at every vertex, in both
// orientations, and for each edge backwards its place forwards.
func (t *Topology) attention() *structure {
	if t.looped == nil {
		g := t.in.WithSelfLoops()
		g.Weights = nil // attention computes its own
		back, perm := g.Transpose()
		n := g.Nodes()
		in := t.dev.SparseMatrix(n, n, g.Indptr, g.Indices, nil)
		t.looped = &structure{in: in, out: t.dev.SparseTranspose(in, back.Indptr, back.Indices, perm)}
	}
	return t.looped
}

// scales returns the factors of a reduction for rows and columns.
func (t *Topology) scales(k Kind) (row, col tensor.Matrix) {
	if k == Sum {
		return
	}
	s, ok := t.scale[k]
	if !ok {
		s = t.dev.New(t.dev.Type(), t.Nodes(), 1)
		t.dev.Upload(s, t.factors(k))
		t.scale[k] = s
	}
	if k == Symmetric {
		return s, s
	}
	return s, tensor.Matrix{}
}

func (t *Topology) factors(k Kind) []float64 {
	f := make([]float64, t.Nodes())
	for v := range f {
		switch d := t.degree(uint32(v), k == Symmetric); k {
		case Mean:
			f[v] = 1 / max(d, 1)
		case MeanSelf:
			f[v] = 1 / (d + 1)
		case Symmetric:
			f[v] = 1 / math.Sqrt(d+1)
		}
	}
	return f
}

// degree is the number (or, in a weighted graph, the sum of weights) of in-edges of v.
func (t *Topology) degree(v uint32, skipLoops bool) float64 {
	lo := t.in.Indptr[v]
	d := 0.0
	for i, u := range t.in.Neighbors(v) {
		switch {
		case skipLoops && u == v:
		case t.in.Weights != nil:
			d += float64(t.in.Weights[lo+int64(i)])
		default:
			d++
		}
	}
	return d
}

func hasLoops(g *graph.CSR) bool {
	for v := range g.Nodes() {
		for _, u := range g.Neighbors(uint32(v)) {
			if u == uint32(v) {
				return true
			}
		}
	}
	return false
}
