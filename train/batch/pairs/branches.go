package pairs

import (
	"context"
	"errors"

	"starling/coflow"
	"starling/store"
	"starling/train/batch"
)

// The seed vertices of a batch of pairs come in branches, each of which can be drawn from while the next are found:
//
//	edges   the ends that are kept, and the others, once the pairs were pulled; then the negatives
//	walks   the vertices where walks begin, at once; then where they end, and the negatives, which come side by side
//
// The pairs are Next's, and so are all ends of them. A vertex all of whose walks end where they begin is a seed too.

// Branches gives add the seed vertices of a batch, of each branch those that no branch before had, and has the sampler
// leave out its pairs.
func (d *pairDrawer) Branches(ctx context.Context, m *store.Sampler, epoch, number int,
	add func(branch []uint32)) (*batch.SeedBatch, error) {
	b := d.of
	id := coflow.ID{Epoch: uint32(epoch), Batch: uint32(number), Layer: -1, Type: coflow.Inputs}
	d.reset()
	mine := d.share.Seeds(epoch, number)
	var err error
	switch {
	case b.opt.Walks == 0:
		err = d.edgeBranches(ctx, m, id, mine, epoch, number, add)
	case b.opt.Shared != nil:
		if err = d.walks(ctx, id, mine, epoch, number); err == nil {
			err = d.pairBranches(ctx, id, epoch, number, add)
		}
	default:
		err = d.walkBranches(ctx, id, mine, epoch, number, add)
	}
	if err != nil {
		return nil, err
	}
	for _, list := range [][]uint32{d.left, d.right} {
		for i, v := range list {
			list[i] = d.place[v]
		}
	}
	return &batch.SeedBatch{Vertices: d.seeds, Empty: d.empty, Complete: d.fill}, nil
}

// branch are the seed vertices of some ends, those that are new.
func (d *pairDrawer) branch(ends []uint32) []uint32 {
	from := len(d.seeds)
	for _, v := range ends {
		if _, ok := d.place[v]; !ok {
			d.place[v] = uint32(len(d.seeds))
			d.seeds = append(d.seeds, v)
		}
	}
	return d.seeds[from:len(d.seeds):len(d.seeds)]
}

// edgeBranches finds the branches of pairs that are edges.
func (d *pairDrawer) edgeBranches(ctx context.Context, m *store.Sampler, id coflow.ID, mine []uint32, epoch,
	number int, add func([]uint32)) error {
	if err := d.edges(ctx, id, mine, epoch, number); err != nil {
		return err
	}
	m.Exclude(d.excluded)
	return d.pairBranches(ctx, id, epoch, number, add)
}

// pairBranches finds the branches of positives that are known.
func (d *pairDrawer) pairBranches(ctx context.Context, id coflow.ID, epoch, number int, add func([]uint32)) error {
	clear(d.place)
	positives := len(d.left)
	add(d.branch(d.left))
	add(d.branch(d.right))
	if err := d.negatives(ctx, id, epoch, number); err != nil {
		return err
	}
	add(d.branch(d.right[positives:]))
	return nil
}

// walkBranches finds the branches of walks. Where they end is found while the owners of where they begin draw
// negatives.
func (d *pairDrawer) walkBranches(ctx context.Context, id coflow.ID, mine []uint32, epoch, number int,
	add func([]uint32)) error {
	b, per := d.of, d.of.opt.Walks
	start, k := make([]uint32, len(mine)), make([]int, len(mine))
	for i, n := range mine {
		start[i], k[i] = n/uint32(per), int(n)%per
		d.edge = append(d.edge, b.parts.vertices.ids[start[i]]*uint32(per)+uint32(k[i]))
	}
	clear(d.place)
	add(d.branch(start))
	var met []uint32
	walked := make(chan error, 1)
	go func() {
		var err error
		met, err = b.walk(ctx, id, epoch, start, k)
		walked <- err
	}()
	d.left, d.right = append(d.left, start...), append(d.right, start...)
	err := d.negatives(ctx, id, epoch, number)
	if err = errors.Join(err, <-walked); err != nil {
		return err
	}
	copy(d.right, met)
	d.leaveMet(len(mine))
	positives := len(d.edge)
	add(d.branch(d.right[:positives]))
	add(d.branch(d.right[positives:]))
	if positives > 0 {
		return nil
	}
	d.empty = true
	return b.meet(ctx, id, b.whole(epoch, number), epoch, func(uint32, uint32, int) { d.empty = false })
}

// leaveMet leaves the pairs whose ends are two vertices, and their negatives, which follow all pairs.
func (d *pairDrawer) leaveMet(pairs int) {
	each := (len(d.left) - pairs) / max(pairs, 1)
	var left, right, edge []uint32
	for i := range pairs {
		if d.right[i] != d.left[i] {
			left, right, edge = append(left, d.left[i]), append(right, d.right[i]), append(edge, d.edge[i])
		}
	}
	for i := range pairs {
		if d.right[i] != d.left[i] {
			from, to := pairs+i*each, pairs+(i+1)*each
			left, right = append(left, d.left[from:to]...), append(right, d.right[from:to]...)
		}
	}
	d.left, d.right, d.edge = append(d.left[:0], left...), append(d.right[:0], right...), append(d.edge[:0], edge...)
}
