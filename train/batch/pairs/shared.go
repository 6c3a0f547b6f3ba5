package pairs

import (
	"context"

	"starling/coflow"
	"starling/rng"
	"starling/sample"
	"starling/store"
)

// Negatives that the pairs of a batch share (sample.Shared), on several workers. A worker knows all pairs of a batch,
// or follows all of its walks, and so draws what one worker does; the owners of the ends that are kept say which of
// these are edges, and they are left out.

// drawShared adds negatives that pairs share.
func (d *pairDrawer) drawShared(ctx context.Context, id coflow.ID, epoch, number int) error {
	b := d.of
	if err := d.wholeBatch(ctx, id, epoch, number); err != nil {
		return err
	}
	joint := func(chunk int) rng.Key { return b.negatives.JointKey(epoch, number, chunk) }
	var drawn []uint32 // ids
	var checks []store.Checked
	for i, edge := range d.edge {
		drawn = b.opt.Shared.Of(d.batch, d.at[edge], joint, b.negatives.Any, drawn[:0])
		for _, w := range drawn {
			checks = append(checks, store.Checked{Kept: d.left[i], Other: w})
		}
	}
	var linked []bool
	if b.opt.Avoid {
		var err error
		if linked, err = b.store.Linked(ctx, id, 0, checks); err != nil {
			return err
		}
	}
	for i, c := range checks {
		if linked == nil || !linked[i] {
			d.left, d.right = append(d.left, c.Kept), append(d.right, b.parts.vertices.numbers[c.Other])
		}
	}
	return nil
}

// wholeBatch lists the positives of the batch by ids, in the order of one worker, and where each is.
func (d *pairDrawer) wholeBatch(ctx context.Context, id coflow.ID, epoch, number int) error {
	b, ids := d.of, d.of.parts.vertices.ids
	d.batch = d.batch[:0]
	if d.at == nil {
		d.at = map[uint32]int{}
	}
	clear(d.at)
	add := func(kept, other, edge uint32) {
		d.at[edge] = len(d.batch)
		d.batch = append(d.batch, sample.Positive{Kept: ids[kept], Other: ids[other],
			Key: b.negatives.Key(epoch, number, int(edge))})
	}
	if b.opt.Walks > 0 {
		return b.meet(ctx, id, b.seeds.Whole(epoch, number), epoch, func(start, met uint32, k int) {
			add(start, met, ids[start]*uint32(b.opt.Walks)+uint32(k))
		})
	}
	for rows := d.rows; len(rows) > 0; rows = rows[pairWidth:] {
		r := pairRowOf(rows)
		kept, other := sample.KeptOfEdge(b.seed, epoch, int(r.index), r.u, r.v)
		add(kept, other, r.index)
	}
	return nil
}

// drawShared adds the negatives that this worker's pairs of a relation share with the batch's others.
func (d *relationDrawer) drawShared(ctx context.Context, id coflow.ID, r, epoch, number int,
	pairs []relationPair) error {
	t := d.of
	list := &t.training[r]
	n, target := list.Negatives, &t.schema.Types[t.schema.Relations[list.Relation].Target]
	numbers := t.of.Numbers(t.schema.Relations[list.Relation].Target)
	joint := func(chunk int) rng.Key { return n.JointKey(epoch, number, chunk) }
	var drawn []uint32 // ids
	var checks []store.Checked
	for i := range pairs {
		drawn = t.shared.Of(d.batch[r], pairs[i].at, joint, n.Any, drawn[:0])
		for _, w := range drawn {
			checks = append(checks, store.Checked{Kept: pairs[i].u, Other: w})
		}
	}
	var linked []bool
	if n.Avoids() {
		var err error
		if linked, err = t.p.Store.Linked(ctx, id, r, checks); err != nil {
			return err
		}
	}
	for i, c := range checks {
		if linked == nil || !linked[i] {
			d.left, d.right = append(d.left, c.Kept), append(d.right, numbers[c.Other-uint32(target.First)])
		}
	}
	return nil
}
