package sample

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"

	"starling/graph"
	"starling/rng"
)

// Pairs are pairs of vertices: U[i] with V[i].
type Pairs struct{ U, V []uint32 }

// Len is how many there are.
func (p *Pairs) Len() int { return len(p.U) }

func (p *Pairs) add(u, v uint32) { p.U, p.V = append(p.U, u), append(p.V, v) }

// EdgeSplit is a graph of which some edges are held out, to be predicted from the
// rest. An edge, its reverse and its repeats are one pair, the smaller id first,
// and are held out together. Self-loops are not pairs: they stay in the graph.
type EdgeSplit struct {
	// Graph is what messages may pass over: no edge of Val or Test, in either direction.
	Graph            *graph.CSR
	Train, Val, Test Pairs
}

// EdgeSets decides which pairs are held out: a function of the seed and of a pair's ids.
type EdgeSets struct {
	key       rng.Key
	val, test float64
	listed    map[[2]uint32]int // sets of pairs that are given; nil: sets are drawn
}

// The sets of pairs.
const (
	TrainEdges = iota
	ValEdges
	TestEdges
)

// NewEdgeSets holds out about the given shares.
func NewEdgeSets(val, test float64, seed uint64) EdgeSets {
	return EdgeSets{key: rng.New(seed).Fold(useHoldOut), val: val, test: test}
}

// Of is the set that the edges between u and v belong to.
func (s EdgeSets) Of(u, v uint32) int {
	if s.listed != nil {
		return s.listed[[2]uint32{min(u, v), max(u, v)}]
	}
	switch x := s.key.Fold(uint64(min(u, v))).Float64(uint64(max(u, v))); {
	case u == v:
		return TrainEdges
	case x < s.val:
		return ValEdges
	case x < s.val+s.test:
		return TestEdges
	}
	return TrainEdges
}

// checkEvery is how many vertices, or pairs, are processed between two checks of the
// context.
const checkEvery = 1 << 12

// HoldOut holds out about the given shares of a graph's pairs, each by its own draw,
// keyed by the seed and the pair: whether an edge is held out depends on
// nothing else in the graph. It ends early with ctx.
func HoldOut(ctx context.Context, g *graph.CSR, val, test float64, seed uint64) (*EdgeSplit, error) {
	if !(val >= 0 && test >= 0 && val+test < 1) {
		return nil, fmt.Errorf("shares %g and %g of the edges to hold out: they must not be negative, and leave some to learn from", val, test)
	}
	s, err := holdOut(ctx, g, NewEdgeSets(val, test, seed))
	if err != nil {
		return nil, err
	}
	return s, s.check(val, test)
}

// holdOut holds out the edges that are in sets.
func holdOut(ctx context.Context, g *graph.CSR, sets EdgeSets) (*EdgeSplit, error) {
	g = ascending(g)
	s := &EdgeSplit{Graph: &graph.CSR{Indptr: make([]int64, g.Nodes()+1), EdgeDim: g.EdgeDim}}
	parts := [3]*Pairs{&s.Train, &s.Val, &s.Test}
	for v := range uint32(g.Nodes()) {
		if v%checkEvery == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			u := g.Indices[e]
			to := sets.Of(u, v)
			if to == 0 {
				copyEdge(s.Graph, g, e)
			}
			if first := e == g.Indptr[v] || g.Indices[e-1] != u; first && (u < v || u > v && !linked(g, v, u)) {
				parts[to].add(min(u, v), max(u, v))
			}
		}
		s.Graph.Indptr[v+1] = int64(len(s.Graph.Indices))
	}
	return s, nil
}

// copyEdge appends an edge of g with its weight and features.
func copyEdge(to, g *graph.CSR, e int64) {
	to.Indices = append(to.Indices, g.Indices[e])
	if g.Weights != nil {
		to.Weights = append(to.Weights, g.Weights[e])
	}
	to.EdgeFeatures = append(to.EdgeFeatures, g.EdgeRows(e, e+1)...)
}

func (s *EdgeSplit) check(val, test float64) error {
	all := s.Train.Len() + s.Val.Len() + s.Test.Len()
	switch {
	case s.Train.Len() == 0:
		return fmt.Errorf("a graph of %d edges between different vertices leaves none to learn from", all)
	case val > 0 && s.Val.Len() == 0 || test > 0 && s.Test.Len() == 0:
		return fmt.Errorf("shares %g and %g of %d edges hold out %d and %d: give larger shares, or another seed", val,
			test, all, s.Val.Len(), s.Test.Len())
	}
	return nil
}

// linked reports whether there is an edge u → v. REQUIRES: rows are ascending.
func linked(g *graph.CSR, u, v uint32) bool {
	row := g.Neighbors(v)
	i := sort.Search(len(row), func(i int) bool { return row[i] >= u })
	return i < len(row) && row[i] == u
}

// ascending is a graph with every row in ascending order: g itself, unless another
// program wrote it otherwise.
func ascending(g *graph.CSR) *graph.CSR {
	sorted := true
	for v := range uint32(g.Nodes()) {
		sorted = sorted && slices.IsSorted(g.Neighbors(v))
	}
	if sorted {
		return g
	}
	out := &graph.CSR{Indptr: g.Indptr, Indices: make([]uint32, 0, g.Edges()), EdgeDim: g.EdgeDim}
	var row []int64
	for v := range uint32(g.Nodes()) {
		row = row[:0]
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			row = append(row, e)
		}
		slices.SortStableFunc(row, func(a, b int64) int { return cmp.Compare(g.Indices[a], g.Indices[b]) })
		for _, e := range row {
			copyEdge(out, g, e)
			if g.EdgeTimes != nil {
				out.EdgeTimes = append(out.EdgeTimes, g.EdgeTimes[e])
			}
		}
	}
	return out
}
