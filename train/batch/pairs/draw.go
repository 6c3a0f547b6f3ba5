package pairs

import (
	"context"
	"encoding/binary"
	"math"
	"sync"

	"starling/coflow"
	"starling/partition"
	"starling/rng"
	"starling/sample"
	"starling/store"
	"starling/train"
	"starling/train/batch"
	"starling/wire"
)

// pairBatches divides batches of pairs over the workers as --roots does seed vertices: a pair
// belongs to the owner of the row that it is found in. A worker's seed vertices are the ends of its pairs and
// of their negatives:
//
//	seed       numbers of the batch's pairs, from their order
//	positive   their ends, pulled from owners; those of walks step by step
//	negative   drawn by the owner of the end that is kept, which knows all of its edges
//
// All draws are as sample.PairBatches has them, by the dataset's ids, so that all workers together
// have the pairs of one. Every worker pulls the ends of all pairs of the batch, since no
// worker's messages may pass over any of them.
type pairBatches struct {
	opt   *train.PairOptions
	parts *linkParts
	seeds batch.Seeds
	store *store.Store
	// others are the pairs of all workers, where seeds' batches are this worker's alone; nil: they are not.
	others func() []batch.Seeds
	table  store.Table // of training pairs
	seed   uint64
	// negatives of all vertices by id, and of this worker's by local number.
	negatives, local *sample.Negatives
}

// pairWidth is a row of a training pair: its ends, its position, the weights of both directions.
const pairWidth = 28

// Methods of store.Negatives.
const (
	trainNegatives = iota
	rankNegatives
)

// newPairBatches makes batches of a worker's pairs. Its store must have been opened on l's part.
func newPairBatches(l *linkParts, s *train.Site, size int, roots string) *pairBatches {
	b := &pairBatches{opt: s.Opt.Pairs, parts: l, seed: s.Opt.Seed}
	book := &partition.Book{Parts: l.part.Book.Parts, Servers: l.part.Book.Servers}
	var order []uint32
	if w := b.opt.Walks; w > 0 {
		for _, first := range l.part.Book.Offsets {
			book.Offsets = append(book.Offsets, first*int64(w))
		}
		for _, n := range l.vertices.numbers {
			for k := range w {
				order = append(order, n*uint32(w)+uint32(k))
			}
		}
	} else {
		book.Offsets, order = l.offsets(sample.TrainEdges), l.order()
	}
	of := func(rank int) batch.Seeds { return batch.NewSeeds(roots, book, rank, order, size, b.seed) }
	b.seeds = of(s.End.Rank())
	if roots == "local" {
		b.others = sync.OnceValue(func() (all []batch.Seeds) {
			for rank := range book.Parts {
				all = append(all, of(rank))
			}
			return all
		})
	}
	return b
}

// whole is the batch of all workers.
func (b *pairBatches) whole(epoch, number int) (all []uint32) {
	if b.others == nil {
		return b.seeds.Whole(epoch, number)
	}
	for _, s := range b.others() {
		all = append(all, s.Seeds(epoch, number)...)
	}
	return all
}

// serve has the store serve what the pairs of other workers need.
func (b *pairBatches) serve(s *store.Store) error {
	b.store = s
	l, first := b.parts, b.parts.part.Book.Offsets[b.parts.rank]
	if b.opt.Walks == 0 {
		b.table = s.AddRows(&store.Rows{Name: "pairs", Width: pairWidth, Offsets: l.offsets(sample.TrainEdges),
			Kind: wire.Topology, Data: l.pairs[sample.TrainEdges].bytes()})
	}
	ids := l.vertices.ids
	var taken func(u, w uint32) bool // by ids, u of an own vertex
	if b.opt.Avoid {
		taken = b.taken(true)
	}
	degree := func(id uint32) int { return int(l.vertices.degrees[l.vertices.numbers[id]]) }
	b.negatives = sample.NegativesOf(len(ids), b.opt.Power, degree, taken, b.seed)
	if core := l.part.Core(); b.opt.Local && core > 0 {
		var ownTaken func(u, w uint32) bool // u by number, w by local number
		if b.opt.Avoid {
			ownTaken = func(u, w uint32) bool { return u == uint32(first)+w || l.linked(w, ids[u], true) }
		}
		b.local = sample.NegativesOf(core, b.opt.Power, func(v uint32) int { return l.part.In.Degree(v) }, ownTaken,
			b.seed)
	}
	ranked := sample.NegativesOf(len(ids), 0, nil, b.taken(false), b.seed)
	by := func(n *sample.Negatives) func(rng.Key, uint32) uint32 {
		return func(key rng.Key, kept uint32) uint32 { return l.vertices.numbers[n.ByKey(key, ids[kept])] }
	}
	if b.opt.Shared != nil && b.opt.Avoid {
		if err := s.ServeChecks(func(kept, other uint32) bool { return taken(ids[kept], other) }); err != nil {
			return err
		}
	}
	return s.ServeNegatives(by(b.negatives), by(ranked))
}

// taken reports which vertices are no negatives of an own one, by ids.
func (b *pairBatches) taken(trained bool) func(u, w uint32) bool {
	l := b.parts
	first := uint32(l.part.Book.Offsets[l.rank])
	return func(u, w uint32) bool { return u == w || l.linked(l.vertices.numbers[u]-first, w, trained) }
}

// bytes are rows of the table of pairs.
func (o *ownPairs) bytes() []byte {
	b := make([]byte, 0, pairWidth*len(o.u))
	for i := range o.u {
		for _, x := range []uint32{o.u[i], o.v[i], o.index[i]} {
			b = binary.LittleEndian.AppendUint32(b, x)
		}
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(o.uv[i]))
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(o.vu[i]))
	}
	return b
}

// pairRow is a row of the table.
type pairRow struct {
	u, v, index uint32
	uv, vu      float64
}

func pairRowOf(b []byte) pairRow {
	number := func(at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
	weight := func(at int) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b[at:])) }
	return pairRow{number(0), number(4), number(8), weight(12), weight(20)}
}

// pairDrawer draws a worker's pairs of batches, with memory of its own that is reused.
type pairDrawer struct {
	of     *pairBatches
	share  batch.Seeds // which pairs of a batch are drawn
	puller *store.Puller
	rows   []byte
	place  map[uint32]uint32 // of a seed vertex in seeds; of a pair in the batch

	// What was drawn: pairs, by number in the partition, positives first.
	left, right []uint32
	edge        []uint32 // of positives: the position in the list of one worker
	seeds       []uint32
	empty       bool // no worker has a positive
	excluded    []store.Excluded

	// Of a batch whose pairs share negatives: its positives by ids, and where each is.
	batch []sample.Positive
	at    map[uint32]int
}

func (b *pairBatches) drawer(share batch.Seeds) *pairDrawer {
	return &pairDrawer{of: b, share: share, puller: b.store.Puller(), place: map[uint32]uint32{}}
}

// draw draws this worker's pairs of a batch and their negatives.
func (d *pairDrawer) draw(ctx context.Context, epoch, number int) error {
	b := d.of
	id := coflow.ID{Epoch: uint32(epoch), Batch: uint32(number), Layer: -1, Type: coflow.Inputs}
	d.reset()
	mine := d.share.Seeds(epoch, number)
	positives := d.edges
	if b.opt.Walks > 0 {
		positives = d.walks
	}
	if err := positives(ctx, id, mine, epoch, number); err != nil {
		return err
	}
	if err := d.negatives(ctx, id, epoch, number); err != nil {
		return err
	}
	d.findSeeds()
	return nil
}

// reset forgets the last batch.
func (d *pairDrawer) reset() {
	d.left, d.right, d.edge, d.excluded, d.empty = d.left[:0], d.right[:0], d.edge[:0], d.excluded[:0], false
	d.seeds = d.seeds[:0]
}

// negatives adds the negatives of the positives drawn.
func (d *pairDrawer) negatives(ctx context.Context, id coflow.ID, epoch, number int) error {
	if d.of.opt.Shared != nil {
		return d.drawShared(ctx, id, epoch, number)
	}
	return d.drawNegatives(ctx, id, epoch, number)
}

// edges pulls the batch's pairs, and takes those of this worker.
func (d *pairDrawer) edges(ctx context.Context, id coflow.ID, mine []uint32, epoch, number int) error {
	b := d.of
	all := b.seeds.Whole(epoch, number)
	if need := pairWidth * len(all); cap(d.rows) < need {
		d.rows = make([]byte, need)
	}
	d.rows = d.rows[:pairWidth*len(all)]
	if err := d.puller.Rows(ctx, id, b.table, d.rows, all); err != nil {
		return err
	}
	clear(d.place)
	for i, n := range all {
		d.place[n] = uint32(i)
		r := pairRowOf(d.rows[i*pairWidth:])
		d.exclude(r.v, r.u, r.uv)
		d.exclude(r.u, r.v, r.vu)
	}
	for _, n := range mine {
		r := pairRowOf(d.rows[int(d.place[n])*pairWidth:])
		kept, other := sample.KeptOfEdge(b.seed, epoch, int(r.index), r.u, r.v)
		d.left, d.right, d.edge = append(d.left, kept), append(d.right, other), append(d.edge, r.index)
	}
	return nil
}

func (d *pairDrawer) exclude(vertex, source uint32, weight float64) {
	if weight != 0 {
		d.excluded = append(d.excluded, store.Excluded{Vertex: vertex, Source: source, Weight: weight})
	}
}

// walks takes this worker's pairs whose walks end elsewhere than they start. A worker that has none follows
// all walks of the batch: whether any worker has one decides whether there is a step, and all decide alike.
func (d *pairDrawer) walks(ctx context.Context, id coflow.ID, mine []uint32, epoch, number int) error {
	b, per := d.of, uint32(d.of.opt.Walks)
	err := b.meet(ctx, id, mine, epoch, func(start, met uint32, k int) {
		d.left, d.right = append(d.left, start), append(d.right, met)
		d.edge = append(d.edge, b.parts.vertices.ids[start]*per+uint32(k))
	})
	if err != nil || len(d.left) > 0 {
		return err
	}
	d.empty = true
	return b.meet(ctx, id, b.whole(epoch, number), epoch, func(uint32, uint32, int) { d.empty = false })
}

// meet gives found the walks of some numbers that end elsewhere than they start.
func (b *pairBatches) meet(ctx context.Context, id coflow.ID, walks []uint32, epoch int,
	found func(start, met uint32, k int)) error {
	per := uint32(b.opt.Walks)
	start, k := make([]uint32, len(walks)), make([]int, len(walks))
	for i, n := range walks {
		start[i], k[i] = n/per, int(n%per)
	}
	met, err := b.walk(ctx, id, epoch, start, k)
	if err != nil {
		return err
	}
	for i := range walks {
		if met[i] != start[i] {
			found(start[i], met[i], k[i])
		}
	}
	return nil
}

// walk is where the k-th walks from some vertices end.
func (b *pairBatches) walk(ctx context.Context, id coflow.ID, epoch int, start []uint32, k []int) ([]uint32, error) {
	keys, steps := make([]rng.Key, len(start)), make([]int, len(start))
	for i, v := range start {
		keys[i] = sample.WalkKey(b.seed, epoch, b.parts.vertices.ids[v], k[i])
		steps[i] = sample.WalkSteps(keys[i], b.opt.WalkLength)
	}
	return b.store.Walks(ctx, id, start, keys, steps)
}

// drawNegatives is the same where pairs do not share them.
func (d *pairDrawer) drawNegatives(ctx context.Context, id coflow.ID, epoch, number int) error {
	b, each := d.of, d.of.opt.Candidates()
	positives := len(d.left)
	for i := range positives * each {
		d.left = append(d.left, d.left[i/each])
	}
	d.right = append(d.right, make([]uint32, positives*each)...)
	key := func(i int) rng.Key { return b.negatives.Key(epoch, number, int(d.edge[i])) }
	if b.local == nil && b.negatives.Avoids() {
		list := make([]store.Negative, positives)
		for i := range list {
			list[i] = store.Negative{Kept: d.left[i], Key: key(i), Count: each}
		}
		return b.store.Negatives(ctx, id, trainNegatives, list, func(i int, numbers []uint32) {
			copy(d.right[positives+i*each:], numbers)
		})
	}
	first := uint32(b.parts.part.Book.Offsets[b.parts.rank])
	for i := range positives {
		for k := range each {
			to := &d.right[positives+i*each+k]
			if b.local != nil {
				*to = first + b.local.ByKey(key(i).Fold(uint64(k)), d.left[i])
			} else {
				*to = b.parts.vertices.numbers[b.negatives.ByKey(key(i).Fold(uint64(k)), 0)]
			}
		}
	}
	return nil
}

// findSeeds numbers the distinct ends, those of positives first, and puts pairs by these numbers.
func (d *pairDrawer) findSeeds() {
	clear(d.place)
	d.seeds = d.seeds[:0]
	row := func(v uint32) uint32 {
		at, ok := d.place[v]
		if !ok {
			at = uint32(len(d.seeds))
			d.place[v], d.seeds = at, append(d.seeds, v)
		}
		return at
	}
	for i := range d.left {
		d.left[i], d.right[i] = row(d.left[i]), row(d.right[i])
	}
}

// Next draws the seed vertices of a batch, and has the sampler leave out its pairs.
func (d *pairDrawer) Next(ctx context.Context, m *store.Sampler, epoch, number int) (*batch.SeedBatch, error) {
	if err := d.draw(ctx, epoch, number); err != nil {
		return nil, err
	}
	m.Exclude(d.excluded)
	return &batch.SeedBatch{Vertices: d.seeds, Empty: d.empty, Complete: d.fill}, nil
}

// fill puts the pairs into a batch of their seeds.
func (d *pairDrawer) fill(b *sample.Batch) {
	b.Left, b.Right = append(b.Left[:0], d.left...), append(b.Right[:0], d.right...)
	b.Positives, b.Scale = len(d.edge), d.of.seeds.Scale()
}
