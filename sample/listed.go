package sample

import (
	"context"
	"fmt"

	"starling/graph"
)

// Listed are pairs that are given, not drawn: to be measured on, among candidates that are given too.
type Listed struct {
	Pairs
	// Ends are K vertices for each pair, which replace its second end; with K = 0 all pairs are ranked among Shared.
	Ends   []uint32
	K      int
	Shared Pairs
}

// Lists are the pairs that are given for validation and the test; nil: there are none.
type Lists struct{ Val, Test *Listed }

// Of is the list of a set, ValEdges or TestEdges; nil: there is none.
func (l *Lists) Of(set int) *Listed {
	switch {
	case l == nil:
		return nil
	case set == ValEdges:
		return l.Val
	case set == TestEdges:
		return l.Test
	}
	return nil
}

// ListedEdges holds out the edges that lists have, in either direction, and no others.
func ListedEdges(l *Lists) EdgeSets {
	return EdgeSets{listed: l.sets(func(u, v uint32) [2]uint32 { return [2]uint32{min(u, v), max(u, v)} })}
}

// sets are the sets of all pairs, each by what key writes it as. A pair of both is held out for validation.
func (l *Lists) sets(key func(u, v uint32) [2]uint32) map[[2]uint32]int {
	out := map[[2]uint32]int{}
	for _, set := range []int{TestEdges, ValEdges} {
		if of := l.Of(set); of != nil {
			for i := range of.U {
				out[key(of.U[i], of.V[i])] = set
			}
		}
	}
	return out
}

// HoldOutListed holds out the edges that lists have, to measure on these lists.
func HoldOutListed(ctx context.Context, g *graph.CSR, l *Lists) (*EdgeSplit, error) {
	s, err := holdOut(ctx, g, ListedEdges(l))
	if err == nil && s.Train.Len() == 0 {
		err = fmt.Errorf("candidates hold out every edge between different vertices: none is left to learn from")
	}
	return s, err
}

// RankListed is NewRanked with pairs and candidates that are given.
func RankListed(ctx context.Context, whole *graph.CSR, l *Listed, seed uint64, set string) (*Ranked, error) {
	r, err := NewRanked(ctx, whole, l.Pairs, 0, seed, set)
	if err != nil {
		return nil, err
	}
	r.Kept, r.Other, r.Ends, r.K, r.Shared = l.U, l.V, l.Ends, l.K, l.Shared
	return r, nil
}
