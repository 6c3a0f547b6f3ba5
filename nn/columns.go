package nn

import (
	"starling/graph"
	"starling/tensor"
)

// FromColumns is the edges from some columns, ascending, which are numbered anew; rows keep the scales of all edges. Of
// an aligned topology the columns that are rows are among them. The caller frees it.
func (t *Topology) FromColumns(keep []uint32) *Topology {
	const none = ^uint32(0)
	place := make([]uint32, t.cols)
	for u := range place {
		place[u] = none
	}
	degrees := &Degrees{All: make([]float64, len(keep))}
	if t.colDegrees.NoLoops != nil {
		degrees.NoLoops = make([]float64, len(keep))
	}
	for i, u := range keep {
		place[u], degrees.All[i] = uint32(i), t.colDegrees.All[u]
		if degrees.NoLoops != nil {
			degrees.NoLoops[i] = t.colDegrees.NoLoops[u]
		}
	}
	in := &graph.CSR{Indptr: make([]int64, 1, t.in.Nodes()+1), EdgeDim: t.in.EdgeDim}
	if t.in.Weights != nil {
		in.Weights = []float32{}
	}
	for v := range t.in.Nodes() {
		for e := t.in.Indptr[v]; e < t.in.Indptr[v+1]; e++ {
			u := place[t.in.Indices[e]]
			if u == none {
				continue
			}
			in.Indices = append(in.Indices, u)
			if t.in.Weights != nil {
				in.Weights = append(in.Weights, t.in.Weights[e])
			}
			if in.EdgeDim > 0 {
				in.EdgeFeatures = append(in.EdgeFeatures, t.in.EdgeRows(e, e+1)...)
			}
		}
		in.Indptr = append(in.Indptr, int64(len(in.Indices)))
	}
	some := NewPart(t.dev, in, len(keep), t.rowDegrees, degrees, t.aligned)
	some.rowScale = t.rowScale // made once
	return some
}

// Free gives back what was made for the topology, but for scales of its rows.
func (t *Topology) Free() {
	free := func(s *tensor.Sparse) {
		if s != nil && !s.Values().IsZero() {
			t.dev.Free(s.Values())
		}
	}
	switch plain, s := t.plain, t.loopFree; {
	case t.in.Weights != nil: // values are weights, of which the transposed ones were made
		if plain != nil {
			free(plain.out)
		}
		if s != nil && s != plain {
			free(s.out)
		}
	case s != nil: // values are scales
		free(s.in)
		if s.out != s.in {
			free(s.out)
		}
	}
	for _, m := range t.colScale {
		t.dev.Free(m)
	}
	t.plain, t.loopFree, t.looped, t.featured, t.colScale = nil, nil, nil, nil, nil
}
