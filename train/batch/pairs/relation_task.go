package pairs

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"starling/coflow"
	"starling/exchange"
	"starling/graph"
	"starling/partition"
	"starling/rng"
	"starling/sample"
	"starling/store"
	"starling/train"
	"starling/train/batch"
	"starling/wire"
)

// Batches of pairs of relations on several workers: all together have those of one (sample.RelationBatches), which
// shuffles the pairs of all relations in the order of relation, source and destination. A pair belongs to the owner of
// its source, which knows the source's edges and so draws its negatives. --roots divides a batch's pairs.
//
// Before training workers tell each other how many pairs each of their sources has. In a step a worker pulls the ends
// of all pairs of the batch, since no worker's messages may pass over any of them, has owners draw the negatives of its
// own, and takes all ends of these as seed vertices. Measuring is as over the whole graph: train.RelationLinks.

// relationTask learns from pairs of relations on several workers.
type relationTask struct {
	p        *batch.Pipeline
	of       *train.RelationLinks
	schema   *graph.Schema
	training []train.RelationTraining
	reverse  []int // of each relation of training; -1: none
	offsets  []int64
	seeds    batch.Seeds
	table    store.Table
	perPair  int
	shared   *sample.Shared // negatives that pairs of a batch share; nil: each has perPair
}

// relationPairWidth is a row of a pair: which relation of those that are learnt, and the numbers and ids of both ends.
const relationPairWidth = 20

// mostRelations bounds the relations that are learnt: owners know their ways to draw negatives by a byte.
const mostRelations = 256

// Seeds divides the pairs.
func (t *relationTask) Seeds(p *batch.Pipeline, roots string) (batch.Seeds, error) {
	s := p.Site
	t.p, t.of, t.schema, t.perPair = p, s.RelationLinks(), s.Part.Book.Schema, s.Opt.Pairs.Candidates()
	t.training, t.shared = t.of.Training(), s.Opt.Pairs.Shared
	if len(t.training) > mostRelations {
		return nil, train.Mistake("%d relations to predict; batches learn at most %d", len(t.training), mostRelations)
	}
	for i := range t.training {
		t.reverse = append(t.reverse, sample.Opposite(t.schema, t.training[i].Relation))
	}
	order, err := t.order(p.Setup)
	if err != nil {
		return nil, err
	}
	book := &partition.Book{Parts: s.Part.Book.Parts, Servers: s.Part.Book.Servers, Offsets: t.offsets}
	t.seeds = batch.NewSeeds(roots, book, s.End.Rank(), order, p.Options.Size, s.Opt.Seed)
	return t.seeds, nil
}

// sourcePairs are the pairs of one relation that a source has: numbers from first on.
type sourcePairs struct {
	relation, id uint32
	first, count uint32
}

// order is the numbers of all pairs in the order of one worker. The number of a pair is its place among the pairs of
// all workers, worker by worker, and there relation by relation.
func (t *relationTask) order(s *exchange.Setup) ([]uint32, error) {
	var mine []byte
	for i, list := range t.training {
		for at := 0; at < len(list.U); {
			end := at
			for end < len(list.U) && list.U[end] == list.U[at] {
				end++
			}
			for _, x := range []uint32{uint32(i), list.U[at], uint32(end - at)} {
				mine = binary.LittleEndian.AppendUint32(mine, x)
			}
			at = end
		}
	}
	lists, err := s.TellServer(0, s.W.End.Size(), mine)
	if err != nil {
		return nil, err
	}
	var all []sourcePairs
	number := uint64(0)
	t.offsets = []int64{0}
	for q, b := range lists {
		if len(b)%12 != 0 {
			return nil, fmt.Errorf("worker %d tells of its pairs in %d bytes", q, len(b))
		}
		for x := range slices.Chunk(exchange.Numbers(b), 3) {
			if int(x[0]) >= len(t.training) || number+uint64(x[2]) > 1<<32 {
				return nil, fmt.Errorf("worker %d tells of %d pairs of relation %d of %d", q, x[2], x[0],
					len(t.training))
			}
			all = append(all, sourcePairs{x[0], x[1], uint32(number), x[2]})
			number += uint64(x[2])
		}
		t.offsets = append(t.offsets, int64(number))
	}
	slices.SortFunc(all, func(a, b sourcePairs) int {
		return cmp.Or(cmp.Compare(a.relation, b.relation), cmp.Compare(a.id, b.id))
	})
	order := make([]uint32, 0, number)
	for _, s := range all {
		for k := range s.count {
			order = append(order, s.first+k)
		}
	}
	return order, nil
}

// Join serves the pairs, and draws negatives of own sources.
func (t *relationTask) Join(p *batch.Pipeline) error {
	var rows []byte
	var draws []func(key rng.Key, kept uint32) uint32
	var checks []func(kept, other uint32) bool
	first := uint32(p.Site.Part.Book.Offsets[p.Site.End.Rank()])
	for i, list := range t.training {
		target := t.schema.Relations[list.Relation].Target
		numbers, from := t.of.Numbers(target), uint32(t.schema.Types[target].First)
		for k := range list.U {
			for _, x := range []uint32{uint32(i), first + list.Rows[k], numbers[list.V[k]-from], list.U[k], list.V[k]} {
				rows = binary.LittleEndian.AppendUint32(rows, x)
			}
		}
		draws = append(draws, func(key rng.Key, kept uint32) uint32 {
			return numbers[list.Negatives.ByKey(key, kept-first)]
		})
		checks = append(checks, func(kept, other uint32) bool { return list.Negatives.Takes(kept-first, other) })
	}
	t.table = p.Store.AddRows(&store.Rows{Name: "pairs", Width: relationPairWidth, Offsets: t.offsets,
		Kind: wire.Topology, Data: rows})
	if err := p.Store.ServeNegatives(draws...); err != nil {
		return err
	}
	if t.shared != nil {
		if err := p.Store.ServeChecks(checks...); err != nil {
			return err
		}
	}
	_, err := p.Setup.Share(0) // all have tables to pull from
	return err
}

func (t *relationTask) Seeder(s batch.Seeds) batch.Seeder {
	return &relationDrawer{of: t, share: s, puller: t.p.Store.Puller(), place: map[uint32]int{}}
}

// DrawsByCalls: a batch's own pairs are left out of its messages.
func (t *relationTask) DrawsByCalls() bool { return true }

// Epoch trains on batches of pairs.
func (t *relationTask) Epoch(m *batch.Steps) func(epoch int, lr float64) (float64, error) {
	return (&relationSteps{t.of, m}).epoch
}

// Objective is learning from pairs.
func (t *relationTask) Objective(m *batch.Steps) batch.Objective {
	return (&relationSteps{t.of, m}).objective()
}

// Measure has a loop measure pairs.
func (t *relationTask) Measure(f *train.Loop) { t.of.InBatches(f) }

// relationPair is a pair of a batch.
type relationPair struct {
	relation int
	u, v     uint32          // numbers in the partition
	ids      sample.Positive // by ids
	at       int             // among the batch's pairs of the relation
}

// relationDrawer draws a worker's pairs of batches, with memory of its own that is reused.
type relationDrawer struct {
	of     *relationTask
	share  batch.Seeds // which pairs of a batch are drawn
	puller *store.Puller
	rows   []byte
	place  map[uint32]int // of a pair in the batch

	lists       [][]relationPair    // by relation: this worker's pairs
	pairs       []relationPair      // of the batch
	batch       [][]sample.Positive // by relation: those of all workers
	left, right []uint32            // by number, and then by row
	ranges      []sample.RelationRange
	seeds       []uint32
	excluded    []store.Excluded
}

// Next draws the seed vertices of a batch, and has the sampler leave out its pairs.
func (d *relationDrawer) Next(ctx context.Context, m *store.Sampler, epoch, number int) (*batch.SeedBatch, error) {
	id := coflow.ID{Epoch: uint32(epoch), Batch: uint32(number), Layer: -1, Type: coflow.Inputs}
	if err := d.pull(ctx, id, epoch, number); err != nil {
		return nil, err
	}
	if err := d.drawPairs(ctx, id, epoch, number); err != nil {
		return nil, err
	}
	d.findSeeds()
	m.Exclude(d.excluded)
	return &batch.SeedBatch{Vertices: d.seeds, Complete: d.fill}, nil
}

// pull brings the batch's pairs, and takes those of this worker.
func (d *relationDrawer) pull(ctx context.Context, id coflow.ID, epoch, number int) error {
	t := d.of
	all := t.seeds.Whole(epoch, number)
	d.rows = slices.Grow(d.rows[:0], relationPairWidth*len(all))[:relationPairWidth*len(all)]
	if err := d.puller.Rows(ctx, id, t.table, d.rows, all); err != nil {
		return err
	}
	d.excluded, d.lists = d.excluded[:0], slices.Grow(d.lists[:0], len(t.training))[:len(t.training)]
	d.batch, d.pairs = slices.Grow(d.batch[:0], len(t.training))[:len(t.training)], d.pairs[:0]
	for i := range d.lists {
		d.lists[i], d.batch[i] = d.lists[i][:0], d.batch[i][:0]
	}
	clear(d.place)
	for i, n := range all {
		d.place[n] = i
		p, err := d.pair(i, epoch)
		if err != nil {
			return err
		}
		p.at = len(d.batch[p.relation])
		d.batch[p.relation], d.pairs = append(d.batch[p.relation], p.ids), append(d.pairs, p)
		relation, reverse := t.training[p.relation].Relation, t.reverse[p.relation]
		d.excluded = append(d.excluded, store.Excluded{Vertex: p.v, Source: p.u, Relation: relation})
		if reverse >= 0 {
			d.excluded = append(d.excluded, store.Excluded{Vertex: p.u, Source: p.v, Relation: reverse})
		}
	}
	for _, n := range d.share.Seeds(epoch, number) {
		p := d.pairs[d.place[n]]
		d.lists[p.relation] = append(d.lists[p.relation], p)
	}
	return nil
}

// pair is one of the batch's rows.
func (d *relationDrawer) pair(i, epoch int) (p relationPair, err error) {
	var x [5]uint32
	for k := range x {
		x[k] = binary.LittleEndian.Uint32(d.rows[i*relationPairWidth+4*k:])
	}
	t, book := d.of, d.of.p.Site.Part.Book
	p = relationPair{relation: int(x[0]), u: x[1], v: x[2]}
	if p.relation < len(t.training) && int64(p.u) < book.Nodes && int64(p.v) < book.Nodes {
		list := &t.training[p.relation]
		r := &t.schema.Relations[list.Relation]
		if book.TypeOf(p.u) == r.Source && book.TypeOf(p.v) == r.Target {
			p.ids = sample.Positive{Kept: x[3], Other: x[4], Key: list.Negatives.Key(epoch, x[3], x[4])}
			return p, nil
		}
	}
	return p, fmt.Errorf("a pair of vertices %d and %d of relation %d, which are of other types", p.u, p.v, p.relation)
}

// drawPairs lists the pairs relation by relation, those of this worker and then their negatives.
func (d *relationDrawer) drawPairs(ctx context.Context, id coflow.ID, epoch, number int) error {
	d.left, d.right, d.ranges = d.left[:0], d.right[:0], d.ranges[:0]
	for r, pairs := range d.lists {
		for _, p := range pairs {
			d.left, d.right = append(d.left, p.u), append(d.right, p.v)
		}
		var err error
		if d.of.shared != nil {
			err = d.drawShared(ctx, id, r, epoch, number, pairs)
		} else {
			err = d.drawNegatives(ctx, id, r, pairs)
		}
		if err != nil {
			return err
		}
		d.ranges = append(d.ranges, sample.RelationRange{Positives: len(pairs), End: len(d.left)})
	}
	return nil
}

// drawNegatives has owners draw the negatives of each of this worker's pairs of a relation.
func (d *relationDrawer) drawNegatives(ctx context.Context, id coflow.ID, r int, pairs []relationPair) error {
	t, each := d.of, d.of.perPair
	from, list := len(d.right), make([]store.Negative, len(pairs))
	for i, p := range pairs {
		list[i] = store.Negative{Kept: p.u, Key: p.ids.Key, Count: each}
		for range each {
			d.left, d.right = append(d.left, p.u), append(d.right, 0)
		}
	}
	target, err := t.schema.Relations[t.training[r].Relation].Target, error(nil)
	asked := t.p.Store.Negatives(ctx, id, r, list, func(i int, numbers []uint32) {
		for _, v := range numbers {
			if t.p.Site.Part.Book.TypeOf(v) != target {
				err = fmt.Errorf("vertex %d is drawn as a destination of relation %d, and is of another type", v,
					t.training[r].Relation)
			}
		}
		copy(d.right[from+i*each:], numbers)
	})
	return cmp.Or(asked, err)
}

// findSeeds lists the distinct ends by type, and puts pairs by their places there.
func (d *relationDrawer) findSeeds() {
	book := d.of.p.Site.Part.Book
	d.seeds = append(append(d.seeds[:0], d.left...), d.right...)
	compare := func(a, b uint32) int {
		return cmp.Or(cmp.Compare(book.TypeOf(a), book.TypeOf(b)), cmp.Compare(a, b))
	}
	slices.SortFunc(d.seeds, compare)
	d.seeds = slices.Compact(d.seeds)
	for _, list := range [][]uint32{d.left, d.right} {
		for i, v := range list {
			at, _ := slices.BinarySearchFunc(d.seeds, v, compare)
			list[i] = uint32(at)
		}
	}
}

// fill puts the pairs into a batch of their seeds.
func (d *relationDrawer) fill(b *sample.Batch) {
	b.Left, b.Right = append(b.Left[:0], d.left...), append(b.Right[:0], d.right...)
	b.Relations, b.Positives, b.Scale = append(b.Relations[:0], d.ranges...), 0, d.of.seeds.Scale()
	for _, list := range d.ranges {
		b.Positives += list.Positives
	}
}
