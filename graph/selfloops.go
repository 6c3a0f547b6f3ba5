package graph

// WithSelfLoops returns the graph with exactly one self-loop per vertex, which is
// what PyG's GCNConv and GATConv do before they aggregate. In a weighted graph a
// vertex keeps the weight of the (last) loop it had; a new loop weighs 1. The features
// of a loop are the mean over the vertex's other in-edges, zeros without any.
// Rows that were in ascending order stay so.
func (g *CSR) WithSelfLoops() *CSR {
	return g.rebuild(func(v uint32, u uint32) bool { return u != v }, true)
}

// Subgraph returns the graph without the edges that touch a vertex whose mask is
// false. Vertices keep their numbers, so features, labels and splits still fit:
// inductive training runs on the subgraph of its training vertices.
func (g *CSR) Subgraph(mask []bool) *CSR {
	return g.rebuild(func(v, u uint32) bool { return mask[v] && mask[u] }, false)
}

// rebuild copies the edges u → v for which keep holds, and with loops adds one
// self-loop per vertex before its first larger neighbour.
func (g *CSR) rebuild(keep func(v, u uint32) bool, loops bool) *CSR {
	n := int64(g.Nodes())
	out := &CSR{Indptr: make([]int64, n+1)}
	Parallel(n, grain, func(lo, hi int64) {
		for v := lo; v < hi; v++ {
			var deg int64
			if loops {
				deg = 1
			}
			for _, u := range g.Neighbors(uint32(v)) {
				if keep(uint32(v), u) {
					deg++
				}
			}
			out.Indptr[v+1] = deg
		}
	})
	for v := range n {
		out.Indptr[v+1] += out.Indptr[v]
	}
	out.Indices = newArray[uint32](out.Indptr[n])
	if g.Weights != nil {
		out.Weights = newArray[float32](out.Indptr[n])
	}
	if g.EdgeDim > 0 {
		out.EdgeDim, out.EdgeFeatures = g.EdgeDim, newArray[float32](out.Indptr[n]*int64(g.EdgeDim))
	}
	Parallel(n, grain, func(lo, hi int64) {
		for v := lo; v < hi; v++ {
			g.copyRow(out, uint32(v), keep, loops)
		}
	})
	return out
}

func (g *CSR) copyRow(out *CSR, v uint32, keep func(v, u uint32) bool, loops bool) {
	to := out.Indptr[v]
	put := func(u uint32, w float32, from int64) {
		out.Indices[to] = u
		if out.Weights != nil {
			out.Weights[to] = w
		}
		if from >= 0 {
			copy(out.edgeRow(to), g.edgeRow(from))
		} else {
			g.meanRow(out.edgeRow(to), v, keep)
		}
		to++
	}
	own := g.loopWeight(v)
	for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
		u := g.Indices[e]
		if !keep(v, u) {
			continue
		}
		if loops && u > v {
			put(v, own, -1)
			loops = false
		}
		var w float32
		if g.Weights != nil {
			w = g.Weights[e]
		}
		put(u, w, e)
	}
	if loops {
		put(v, own, -1)
	}
}

// edgeRow are the features of an edge, if edges have any.
func (g *CSR) edgeRow(e int64) []float32 { return g.EdgeRows(e, e+1) }

// EdgeRows are the features of edges lo to hi, if edges have any.
func (g *CSR) EdgeRows(lo, hi int64) []float32 {
	d := int64(g.EdgeDim)
	return g.EdgeFeatures[lo*d : hi*d]
}

// meanRow is the mean of the features of the in-edges of v that are kept.
func (g *CSR) meanRow(to []float32, v uint32, keep func(v, u uint32) bool) {
	for c := range to {
		sum, n := 0.0, 0.0 // in double, so that the order of edges does not show
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			if keep(v, g.Indices[e]) {
				sum, n = sum+float64(g.edgeRow(e)[c]), n+1
			}
		}
		to[c] = float32(sum / max(n, 1))
	}
}

// loopWeight is the weight of v's last self-loop, 1 if it has none.
func (g *CSR) loopWeight(v uint32) float32 {
	w := float32(1)
	if g.Weights == nil {
		return w
	}
	for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
		if g.Indices[e] == v {
			w = g.Weights[e]
		}
	}
	return w
}

// WithoutSelfLoops returns the graph without its self-loops.
func (g *CSR) WithoutSelfLoops() *CSR {
	return g.rebuild(func(v, u uint32) bool { return u != v }, false)
}
