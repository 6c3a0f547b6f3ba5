package sample

import (
	"starling/graph"
	"starling/rng"
)

// SAINTEdgeDraws is GraphSAINT's edge sampler: m independent draws of edges with
// q(u→v) ∝ 1/d_u + 1/d_v; a batch's vertices are their ends. With Q_v the
// probability that a draw has v for an end, and q_uv that its ends are u and v,
//
//	p_v  = 1 - (1-Q_v)^m
//	p_uv = 1 - (1-Q_u)^m - (1-Q_v)^m + (1-Q_u-Q_v+q_uv)^m
//
// A seed vertex without edges is drawn as if it had an edge to itself; the paper's sampler never draws it.
type SAINTEdgeDraws struct {
	m      int
	ends   *Distribution // of the vertex whose in-edge is drawn
	either []float64     // Q
	total  float64
}

// NewSAINTEdgeDraws makes m draws. sums are of the weights (EdgeWeight) of a vertex's in-edges,
// either of those of all its edges; both are overwritten.
func NewSAINTEdgeDraws(sums, either []float64, m int) *SAINTEdgeDraws {
	d := &SAINTEdgeDraws{m: m, ends: NewDistribution(sums), either: either}
	d.total = d.ends.Total()
	for v := range either {
		either[v] /= max(d.total, 1)
	}
	return d
}

// EdgeWeight is q without its factor, given the in-edges of both ends.
func EdgeWeight(du, dv int) float64 { return 1/float64(max(du, 1)) + 1/float64(max(dv, 1)) }

// Draws is how many there are; none where no edge has a weight.
func (s *SAINTEdgeDraws) Draws() int {
	if s.total == 0 {
		return 0
	}
	return s.m
}

// Draw is the vertex whose in-edge draw i is, and where among them: the first at which their
// weights sum to over x.
func (s *SAINTEdgeDraws) Draw(key rng.Key, i uint64) (v uint32, x float64) {
	v = s.ends.Draw(key, 2*i)
	return v, key.Float64(2*i+1) * s.ends.Probability(v) * s.total
}

// Vertex is the probability that v is drawn.
func (s *SAINTEdgeDraws) Vertex(v uint32) float64 { return 1 - never(s.either[v], s.m) }

// Both is the probability that u and v both are, with the weights of all edges between them.
func (s *SAINTEdgeDraws) Both(u, v uint32, between float64) float64 {
	return both(s.either[u], s.either[v], between/s.total, s.m)
}

// saintEdges draws from a graph that is all here.
type saintEdges struct {
	*SAINTEdgeDraws
	g      *graph.CSR
	sorted bool
}

// NewSAINTEdges draws size edges per batch.
func NewSAINTEdges(g *graph.CSR, seeds []uint32, size int, seed uint64) (*SAINT, error) {
	d := &saintEdges{g: g, sorted: rowsSorted(g)}
	sums, either := EdgeSums(g, func(v uint32) int { return g.Degree(v) }, g.Nodes(), nil)
	all := make([]float64, len(either))
	for v := range all {
		all[v] = either[v].Float64()
	}
	for _, v := range seeds {
		sums[v], all[v] = LoneSeed(sums[v], all[v])
	}
	d.SAINTEdgeDraws = NewSAINTEdgeDraws(sums, all, size)
	return newSAINT(g, seeds, d, 2*size, seed), nil
}

// LoneSeed is the sums of weights of a seed vertex, in-edges' and all edges': without edges, those of one to itself.
func LoneSeed(in, either float64) (float64, float64) {
	if either == 0 {
		in = EdgeWeight(0, 0)
		either = in
	}
	return in, either
}

// EdgeSums are the sums of weights of the in-edges of a graph's rows, in the dataset's order of
// them, and over these rows those of all edges of each of n vertices.
func EdgeSums(g *graph.CSR, degree func(v uint32) int, n int, order *graph.RowOrder) (sums []float64, either []Sum) {
	sums, either = make([]float64, g.Nodes()), make([]Sum, n)
	for v := range uint32(g.Nodes()) {
		row, first := g.Neighbors(v), g.Indptr[v]
		for i := range row {
			u := row[i]
			if order != nil {
				u = row[order.At(first+int64(i))]
			}
			w := EdgeWeight(degree(u), degree(v))
			sums[v] += w
			either[v].Add(w)
			if u != v {
				either[u].Add(w)
			}
		}
	}
	return sums, either
}

func (s *saintEdges) weigh(u, v uint32) float64 { return EdgeWeight(s.g.Degree(u), s.g.Degree(v)) }

// Vertices calls take for both ends of every edge drawn.
func (s *saintEdges) Vertices(key rng.Key, take func(uint32)) {
	for i := range uint64(s.Draws()) {
		v, x := s.Draw(key, i)
		take(v)
		take(s.source(v, x))
	}
}

// source is the source of the in-edge of v at which the weights sum to over x, v itself where it has no in-edges.
func (s *saintEdges) source(v uint32, x float64) uint32 {
	row := s.g.Neighbors(v)
	if len(row) == 0 {
		return v
	}
	for _, u := range row {
		if x -= s.weigh(u, v); x < 0 {
			return u
		}
	}
	return row[len(row)-1]
}

// Edge is the probability that u and v are both drawn.
func (s *saintEdges) Edge(u, v uint32, _ int64) float64 {
	_, there := edgesBetween(s.g, s.sorted, u, v)
	_, back := edgesBetween(s.g, s.sorted, v, u)
	return s.Both(u, v, float64(there+back)*s.weigh(u, v))
}
