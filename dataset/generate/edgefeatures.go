package generate

import (
	"starling/graph"
	"starling/rng"
)

// writeEdgeFeatures draws features of edges as they are written. They are normal noise,
// the same in both directions of an edge; the first is larger by Signal where both ends
// are of one class, so that there is something to learn from them.
func (p Params) writeEdgeFeatures(w *graph.Writer, g *graph.CSR, class func(v uint64) int) error {
	dim := p.EdgeFeatures
	a, err := w.Array("edge_features.npy", "<f4", g.Edges(), int64(dim))
	if err != nil {
		return err
	}
	w.Meta.EdgeDim = dim
	key := rng.New(p.Seed).Fold(edgeFeatureStream)
	var rows []float32
	flush := func() error {
		defer func() { rows = rows[:0] }()
		return graph.WriteSlice(a, rows)
	}
	for v := range uint32(g.Nodes()) {
		for _, u := range g.Neighbors(v) {
			rows = appendEdge(rows, key, u, v, dim)
			if class != nil && p.Classes > 0 && class(uint64(u)) == class(uint64(v)) {
				rows[len(rows)-dim] += float32(p.Signal)
			}
		}
		if len(rows) >= 1<<18 {
			if err := flush(); err != nil {
				a.Abort()
				return err
			}
		}
	}
	if err := flush(); err != nil {
		a.Abort()
		return err
	}
	return a.Close()
}

// appendEdge appends the noise of an edge between u and v.
func appendEdge(rows []float32, key rng.Key, u, v uint32, dim int) []float32 {
	of := key.Fold(uint64(min(u, v))).Fold(uint64(max(u, v)))
	for c := range uint64(dim) {
		rows = append(rows, float32(of.Normal(c)))
	}
	return rows
}
