package sample

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sort"

	"starling/graph"
)

// LaterEdges holds out the edges that come last (link prediction by time, as in the Temporal Graph Benchmark, Huang et
// al. 2023, §4): in the order of time, pairs before the share Train are learnt from, those up to Val validate, and the
// rest tests. A pair, its reverse and its repeats are of the earliest of their times, and pairs of equal times are in
// one set, that of the first of them.
//
//	pairs by time     [ 1  2  2  4 │ 5  7 │ 7  9 ]
//	set                 train        val    test          (the second 7 joins the first)
//	messages            edges from before the first validation pair, repeats of older pairs by their own times too
type LaterEdges struct{ Train, Val float64 }

// HoldOutLater holds out the latest pairs of a graph whose edges have times. It ends early with ctx.
func HoldOutLater(ctx context.Context, g *graph.CSR, shares LaterEdges) (*EdgeSplit, error) {
	if g.EdgeTimes == nil {
		return nil, fmt.Errorf("the edges have no times")
	}
	g = ascending(g)
	var pairs Pairs
	var times []int64
	for v := range uint32(g.Nodes()) {
		if v%checkEvery == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			u := g.Indices[e]
			if first := e == g.Indptr[v] || g.Indices[e-1] != u; first && (u < v || u > v && !linked(g, v, u)) {
				pairs.add(min(u, v), max(u, v))
				times = append(times, min(earliest(g, u, v), earliest(g, v, u)))
			}
		}
	}
	order := slices.Sorted(slices.Values(times))
	val, test := after(order, shares.Train), after(order, shares.Val)
	s := &EdgeSplit{Graph: before(g, val)}
	for i, t := range times {
		to := &s.Train
		if t >= test {
			to = &s.Test
		} else if t >= val {
			to = &s.Val
		}
		to.add(pairs.U[i], pairs.V[i])
	}
	switch {
	case s.Train.Len() == 0:
		return nil, fmt.Errorf("%d edges between different vertices", len(times))
	case shares.Val > shares.Train && s.Val.Len() == 0 || shares.Val < 1 && s.Test.Len() == 0:
		return nil, fmt.Errorf("%d, %d and %d edges, since edges of equal times stay together", s.Train.Len(),
			s.Val.Len(), s.Test.Len())
	}
	return s, nil
}

// earliest is the least time of the edges u → v; the greatest there is: there is none.
func earliest(g *graph.CSR, u, v uint32) int64 {
	row, t := g.Neighbors(v), int64(math.MaxInt64)
	for i := sort.Search(len(row), func(i int) bool { return row[i] >= u }); i < len(row) && row[i] == u; i++ {
		t = min(t, g.EdgeTimes[g.Indptr[v]+int64(i)])
	}
	return t
}

// after is the first time of which no pair is among the first share.
func after(order []int64, share float64) int64 {
	at := int(math.Ceil(share * float64(len(order))))
	for at > 0 && at < len(order) && order[at] == order[at-1] {
		at++
	}
	if at >= len(order) {
		return math.MaxInt64
	}
	return order[at]
}

// before is a graph of the edges from before a time.
func before(g *graph.CSR, time int64) *graph.CSR {
	out := &graph.CSR{Indptr: make([]int64, g.Nodes()+1), EdgeDim: g.EdgeDim}
	for v := range g.Nodes() {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			if g.EdgeTimes[e] < time {
				copyEdge(out, g, e)
			}
		}
		out.Indptr[v+1] = int64(len(out.Indices))
	}
	return out
}
