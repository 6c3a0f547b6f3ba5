package sample

import (
	"context"

	"starling/graph"
	"starling/rng"
)

// Ranked are pairs to measure a model on, with fixed negatives that are the same in
// every epoch and for every model of the same graph and seed:
//
//	Against   as many pairs of vertices drawn uniformly, for the area under the curve
//	Ends      for every pair K vertices that replace one of its ends, for ranks
//
// None of them is an edge of the whole graph, held out or not.
type Ranked struct {
	Pairs
	Against Pairs
	// Kept[i] is the end of pair i that stays, Other[i] the one that
	// Ends[i·K : (i+1)·K] replace.
	Kept, Other []uint32
	Ends        []uint32
	K           int
	// Shared are what all pairs are ranked among where K is 0.
	Shared Pairs
}

// NewRanked draws the negatives of pairs. set distinguishes the sets of one seed. It ends
// early with ctx.
func NewRanked(ctx context.Context, whole *graph.CSR, pairs Pairs, k int, seed uint64, set string) (*Ranked, error) {
	n, err := NewNegatives(whole, 0, true, seed)
	if err != nil {
		return nil, err
	}
	r := &Ranked{Pairs: pairs, K: k, Ends: make([]uint32, 0, k*pairs.Len())}
	key := RankedKey(seed, set)
	for i := range pairs.Len() {
		if i%checkEvery == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		own := key.Fold(uint64(i))
		u := uint32(own.IntN(0, whole.Nodes()))
		r.Against.add(u, n.ByKey(own.Fold(0), u))
		kept, other := KeptEnd(own, 1, pairs.U[i], pairs.V[i])
		r.Kept, r.Other = append(r.Kept, kept), append(r.Other, other)
		for j := range k {
			r.Ends = append(r.Ends, n.ByKey(own.Fold(uint64(1+j)), kept))
		}
	}
	return r, nil
}

// RankedKey returns the key of a set's negatives. Folded with i it is the key of pair i's negatives:
// its draw 0 is the vertex that Against pairs with the negative of key 0, its draw 1 decides which
// end is kept, and its keys 1 to K are used by Ends.
func RankedKey(seed uint64, set string) rng.Key { return rng.New(seed).Fold(useRanked).Fold(hash(set)) }

// KeptEnd is a pair in an order given by draw i of a key: the end that negatives keep, and the
// other.
func KeptEnd(key rng.Key, i uint64, u, v uint32) (kept, other uint32) {
	if key.Uint64(i)>>63 == 0 {
		return u, v
	}
	return v, u
}
