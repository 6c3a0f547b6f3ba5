package partition

import (
	"cmp"
	"context"
	"slices"

	"starling/graph"
)

// ByteGNN is the partitioning of ByteGNN (Zheng et al., VLDB 2022), for mini-batch training, which visits only the
// neighbourhoods of training, validation and test vertices:
//
//  1. from each of these a breadth-first search of K hops along in-edges; a vertex
//     belongs to the block that reaches it first;
//
//  2. blocks, biggest first, each to the part of highest
//
//     |cross edges(B, P_j)| / |P_j| · (1 - α·train_j/C_train - β·val_j/C_val - γ·test_j/C_test)
//
// with C the mean of a split over parts and α, β, γ the splits' shares of the
// labelled vertices. Unlike in the paper, a block holds at most 1/32 of a part; parts
// at their limit are not candidates, so tolerances hold; blocks are reassigned
// in further passes, when all their neighbours have parts; and vertices that no search
// reached are assigned last.
func ByteGNN(ctx context.Context, p *Problem) ([]uint32, error) {
	if p.Splits.Empty() {
		return nil, &graph.InputError{Field: "method", Found: "bytegnn on a dataset without splits",
			Want: "training, validation or test vertices to grow blocks from",
			Fix:  "use multilevel, or give the dataset splits"}
	}
	b := &byteGNN{p: p, loads: newLoads(withSplits(p)), parts: make([]uint32, p.Graph.Nodes()),
		count: make([]int64, p.Parts), size: make([]int64, p.Parts)}
	for v := range b.parts {
		b.parts[v] = unassigned
	}
	b.splitScores()
	if err := b.grow(ctx); err != nil {
		return nil, err
	}
	b.collect()
	passes := p.passes()
	for pass := range passes {
		if err := b.assign(ctx, pass, passes); err != nil {
			return nil, err
		}
	}
	return b.parts, rebalance(ctx, p, b.parts, b.loads)
}

// withSplits is the problem with the three splits added to its constraints:
// the purpose of the method.
func withSplits(p *Problem) *Problem {
	q := *p
	q.Constraints = slices.Clone(p.constraints())
	for _, s := range []struct {
		name string
		ids  []uint32
	}{{"train", p.Splits.Train}, {"val", p.Splits.Val}, {"test", p.Splits.Test}} {
		if len(s.ids) == 0 || slices.ContainsFunc(q.Constraints, func(c Constraint) bool { return c.Name == s.name }) {
			continue
		}
		w := make([]uint32, p.Graph.Nodes())
		for _, v := range s.ids {
			w[v] = 1
		}
		q.Constraints = append(q.Constraints, Constraint{Name: s.name, Weight: w, Tolerance: DefaultTolerance})
	}
	return &q
}

type byteGNN struct {
	p     *Problem
	loads *loads
	parts []uint32

	block   []uint32 // of each vertex: the position of its centre in centres
	centres []uint32
	members []uint32 // vertices by block
	start   []int64  // where a block's members start
	order   []uint32 // blocks, biggest first

	split []splitScore
	count []int64 // cross edges by part, for the current block
	size  []int64 // vertices by part
}

// splitScore is one split's part in the balance score.
type splitScore struct {
	constraint int     // its index in loads
	factor     float64 // share of the labelled vertices over the mean of a part
}

func (b *byteGNN) splitScores() {
	s := b.p.Splits
	labelled := float64(len(s.Train) + len(s.Val) + len(s.Test))
	for name, ids := range map[string][]uint32{"train": s.Train, "val": s.Val, "test": s.Test} {
		if len(ids) == 0 {
			continue
		}
		at := slices.IndexFunc(b.loads.constraints, func(c Constraint) bool { return c.Name == name })
		mean := float64(len(ids)) / float64(b.p.Parts)
		b.split = append(b.split, splitScore{at, float64(len(ids)) / labelled / mean})
	}
	slices.SortFunc(b.split, func(x, y splitScore) int { return x.constraint - y.constraint })
}

// grow runs all searches together, one hop at a time, so a vertex joins the closest
// centre, and the lower block number if two are equally close.
func (b *byteGNN) grow(ctx context.Context) error {
	g := b.p.Graph
	b.centres = slices.Concat(b.p.Splits.Train, b.p.Splits.Val, b.p.Splits.Test)
	slices.Sort(b.centres)
	b.block = make([]uint32, g.Nodes())
	for v := range b.block {
		b.block[v] = unassigned
	}
	for i, v := range b.centres {
		b.block[v] = uint32(i)
	}
	capacity := make([]int32, len(b.centres))
	for i := range capacity {
		capacity[i] = int32(min(max(1, g.Nodes()/b.p.Parts/32), 1<<30)) - 1
	}
	frontier := b.centres
	for hop := range b.p.hops() {
		if err := ctx.Err(); err != nil {
			return err
		}
		b.p.report("blocks", int64(hop), int64(b.p.hops()))
		var next []uint32
		for _, v := range frontier {
			k := b.block[v]
			for _, u := range g.Neighbors(v) {
				if b.block[u] == unassigned && capacity[k] > 0 {
					b.block[u] = k
					capacity[k]--
					next = append(next, u)
				}
			}
		}
		frontier = next
	}
	return nil
}

func (p *Problem) hops() int {
	if p.Hops > 0 {
		return p.Hops
	}
	return 2
}

// collect lists the members of each block and orders blocks by size. A vertex
// without a block becomes one of its own, after all others.
func (b *byteGNN) collect() {
	blocks := uint32(len(b.centres))
	for v, k := range b.block {
		if k == unassigned {
			b.block[v] = blocks
			blocks++
		}
	}
	b.start, b.members = group(b.block, int(blocks))
	b.order = make([]uint32, blocks)
	for i := range b.order {
		b.order[i] = uint32(i)
	}
	size := func(k uint32) int64 { return b.start[k+1] - b.start[k] }
	centred := len(b.centres)
	slices.SortFunc(b.order[:centred], func(x,
		y uint32) int {
		return cmp.Or(cmp.Compare(size(y), size(x)), cmp.Compare(x, y))
	})
}

func (b *byteGNN) assign(ctx context.Context, pass, passes int) error {
	for i, k := range b.order {
		if i%between == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			b.p.report("bytegnn", int64(pass*len(b.order)+i), int64(passes*len(b.order)))
		}
		members := b.members[b.start[k]:b.start[k+1]]
		if old := b.parts[members[0]]; old != unassigned {
			b.put(members, old, -1)
		}
		b.put(members, uint32(b.choose(members)), 1)
	}
	return nil
}

// put moves a block into a part, or out of it.
func (b *byteGNN) put(members []uint32, k uint32, sign int64) {
	b.size[k] += sign * int64(len(members))
	for _, v := range members {
		b.loads.add(int(k), int(v), sign)
		b.parts[v] = k
		if sign < 0 {
			b.parts[v] = unassigned
		}
	}
}

// choose scores every part that the block fits into; if none has a neighbour, or it fits
// nowhere, it takes the emptiest.
func (b *byteGNN) choose(members []uint32) int {
	clear(b.count)
	for _, v := range members {
		for _, u := range b.p.Graph.Neighbors(v) {
			if k := b.parts[u]; k != unassigned {
				b.count[k]++
			}
		}
	}
	best, score, emptiest, least := -1, 0.0, 0, 0.0
	for k := range b.count {
		fill := b.fillOf(k, members)
		if k == 0 || fill < least {
			emptiest, least = k, fill
		}
		if b.count[k] == 0 || !b.fits(k, members) {
			continue
		}
		s := float64(b.count[k]) / float64(b.size[k]) * b.balance(k)
		if best < 0 || s > score {
			best, score = k, s
		}
	}
	if best < 0 {
		return emptiest
	}
	return best
}

// balance is the paper's score, kept above zero so that parts slightly above the
// mean are still ranked by their cross edges.
func (b *byteGNN) balance(k int) float64 {
	score := 1.0
	for _, s := range b.split {
		score -= s.factor * float64(b.loads.weight[k][s.constraint])
	}
	return max(score, 1e-3)
}

func (b *byteGNN) fits(k int, members []uint32) bool {
	for c := range b.loads.constraints {
		if w := b.weigh(c, members); w > 0 && b.loads.weight[k][c]+w > b.loads.limit[c] {
			return false
		}
	}
	return true
}

func (b *byteGNN) fillOf(k int, members []uint32) float64 {
	full := 0.0
	for c := range b.loads.constraints {
		if w := b.weigh(c, members); w > 0 {
			full = max(full, float64(b.loads.weight[k][c]+w)*b.loads.inverse[c])
		}
	}
	return full
}

// weigh is what a block weighs under constraint c.
func (b *byteGNN) weigh(c int, members []uint32) int64 {
	var sum int64
	for _, v := range members {
		sum += b.loads.constraints[c].Of(int(v))
	}
	return sum
}
