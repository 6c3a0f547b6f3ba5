package sample

import (
	"slices"

	"starling/graph"
	"starling/rng"
)

// saintEdges is GraphSAINT's edge sampler: m independent draws of edges with
// q(u→v) ∝ 1/d_u + 1/d_v; a batch's vertices are their ends. With Q_v the
// probability that a draw has v for an end, and q_uv that its ends are u and v,
//
//	p_v  = 1 - (1-Q_v)^m
//	p_uv = 1 - (1-Q_u)^m - (1-Q_v)^m + (1-Q_u-Q_v+q_uv)^m
type saintEdges struct {
	g      *graph.CSR
	m      int
	ends   *distribution // of the vertex whose in-edge is drawn
	either []float64     // Q
	total  float64
	sorted bool
}

// NewSAINTEdges draws size edges a batch.
func NewSAINTEdges(g *graph.CSR, roots []uint32, size int, seed uint64) (*SAINT, error) {
	d := &saintEdges{g: g, m: size, either: make([]float64, g.Nodes()), sorted: true}
	sums := make([]float64, g.Nodes())
	for v := range sums {
		row := g.Neighbors(uint32(v))
		d.sorted = d.sorted && slices.IsSorted(row)
		for _, u := range row {
			w := d.weigh(u, uint32(v))
			sums[v] += w
			d.either[v] += w
			if u != uint32(v) {
				d.either[u] += w
			}
		}
	}
	d.ends = newDistribution(sums)
	d.total = d.ends.total()
	for v := range d.either {
		d.either[v] /= max(d.total, 1)
	}
	return newSAINT(g, roots, d, 2*size, seed), nil
}

// weigh is q without its factor.
func (s *saintEdges) weigh(u, v uint32) float64 {
	return 1/float64(max(s.g.Degree(u), 1)) + 1/float64(max(s.g.Degree(v), 1))
}

func (s *saintEdges) vertices(key rng.Key, take func(uint32)) {
	if s.total == 0 {
		return
	}
	for i := range uint64(s.m) {
		v := s.ends.draw(key, 2*i)
		take(v)
		take(s.source(v, key.Float64(2*i+1)*s.ends.probability(v)*s.total))
	}
}

// source is the one of v's in-edges at which their weights add up to over x.
func (s *saintEdges) source(v uint32, x float64) uint32 {
	row := s.g.Neighbors(v)
	for _, u := range row {
		if x -= s.weigh(u, v); x < 0 {
			return u
		}
	}
	return row[len(row)-1]
}

func (s *saintEdges) vertex(v uint32) float64 { return 1 - never(s.either[v], s.m) }

func (s *saintEdges) edge(u, v uint32, _ int64) float64 {
	joining := float64(s.times(u, v) + s.times(v, u))
	return both(s.either[u], s.either[v], joining*s.weigh(u, v)/s.total, s.m)
}

// times is how many edges go from u to v.
func (s *saintEdges) times(u, v uint32) (n int) {
	row := s.g.Neighbors(v)
	if s.sorted {
		at, _ := slices.BinarySearch(row, u)
		row = row[at:]
	}
	for _, w := range row {
		if w == u {
			n++
		} else if s.sorted {
			break
		}
	}
	return n
}
