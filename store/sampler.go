package store

import (
	"context"
	"errors"

	"starling/coflow"
	"starling/sample"
)

// Sampler draws batches as sample.Neighbour does, from owners wherever they are: for the same
// seed vertices and the same key the blocks are equal to the blocks of a sampler that has the whole graph,
// vertices by their numbers in the partition. It is used by one goroutine.
type Sampler struct {
	Fanouts []int // from the last layer to the first
	Seed    uint64

	batch *sample.Batch
	known *Known
	draws draws
	rows  rowTable

	without *exclusions
	masks   uint32

	// Of a typed graph.
	types sample.Arranger
	moved Known
}

// Sampler makes one, with memory of its own.
func (s *Store) Sampler(fanouts []int, seed uint64, opt Options) *Sampler {
	return &Sampler{Fanouts: fanouts, Seed: seed, draws: newDraws(s, opt), types: sample.Arranger{TypeOf: s.Book.TypeOf}}
}

// Exclude has the next batches drawn as if the graph did not have some edges. The list is sorted.
func (m *Sampler) Exclude(list []Excluded) { m.without = newExclusions(list) }

// Guide has the next batches drawn by a version of this worker's masks, which TellMasks has sent; 0:
// by none.
func (m *Sampler) Guide(version uint32) { m.masks = version }

// Sample fills b with the blocks of some seed vertices, which are distinct, and known with
// what was learned.
func (m *Sampler) Sample(ctx context.Context, b *sample.Batch, known *Known, seeds []uint32, epoch, number int) error {
	m.Begin(b, known, seeds, epoch, number)
	for hop := range m.Fanouts {
		if err := m.Ask(hop); err != nil {
			return errors.Join(err, m.Wait(ctx))
		}
		if err := m.Wait(ctx); err != nil {
			return err
		}
		if err := m.Stitch(hop); err != nil {
			return err
		}
	}
	return nil
}

// Begin begins a batch. For each hop Ask, Wait and Stitch follow: Wait only waits for the
// network, the others compute.
func (m *Sampler) Begin(b *sample.Batch, known *Known, seeds []uint32, epoch, number int) {
	m.batch, m.known = b, known
	b.Reset(epoch, number, len(m.Fanouts))
	m.rows.begin()
	known.begin(len(m.Fanouts))
	for _, v := range seeds {
		_, b.Vertices = m.rows.add(b.Vertices, v)
	}
	b.FirstSeeds(len(seeds))
	known.grow(len(seeds))
}

// Ask has the owners of the batch's vertices so far draw their edges of a hop, the first from
// the seed vertices.
func (m *Sampler) Ask(hop int) error {
	id, q := m.query(hop)
	return m.draws.ask(id, m.batch.Vertices, q)
}

// query is what a hop of the batch draws by, and the group that its requests belong to.
func (m *Sampler) query(hop int) (coflow.ID, *query) {
	b, fanout, layer := m.batch, m.Fanouts[hop], len(m.Fanouts)-1-hop
	id := coflow.ID{Epoch: uint32(b.Epoch), Batch: uint32(b.Number), Layer: int16(layer), Type: coflow.Inputs}
	return id, &query{key: sample.LayerKey(m.Seed, b.Epoch, b.Number, layer), fanout: fanout,
		fanouts: m.draws.s.fanoutsOf(m.draws.opt.RelationFanouts, hop), seeds: hop == 0, without: m.without, masks: m.masks,
		typed: m.draws.s.Book.Schema != nil, visits: m.draws.opt.Visits}
}

// Wait waits for what was asked.
func (m *Sampler) Wait(ctx context.Context) error { return m.draws.waitAll(ctx) }

// Stitch makes the hop's block, and adds the vertices that it found.
func (m *Sampler) Stitch(hop int) error {
	if err := m.draws.take(); err != nil {
		return err
	}
	m.stitch(&m.draws, hop, 0, m.batch.Vertices)
	m.end(hop, m.batch.Blocks[len(m.Fanouts)-1-hop].Dst)
	return nil
}

// stitch adds what some destinations of a hop drew to its block, in their order; first is the row of the first of them.
// Those before were added before.
func (m *Sampler) stitch(w *draws, hop, first int, vertices []uint32) {
	b, known, layer := m.batch, m.known, len(m.Fanouts)-1-hop
	x, features := &b.Blocks[layer], known.EdgeFeatures[layer]
	if first == 0 {
		features = features[:0]
	}
	x.Dst = first + len(vertices)
	dim := w.s.Part.In.EdgeDim
	w.each(vertices, func(i int, d *drawn, k int) {
		known.destination(first+i, d, k)
		features = d.appendTo(x, features, k, dim, func(at uint32) uint32 {
			row, longer := m.rows.add(b.Vertices, d.source(at))
			if b.Vertices = longer; int(row) >= len(known.IDs) {
				known.source(row, d, at)
			}
			return row
		})
	})
	known.EdgeFeatures[layer] = features
}

// end ends a hop from some destinations, all of which were stitched.
func (m *Sampler) end(hop, destinations int) {
	layer := len(m.Fanouts) - 1 - hop
	x := &m.batch.Blocks[layer]
	if x.Dst, x.Src = destinations, len(m.batch.Vertices); destinations == 0 {
		m.known.EdgeFeatures[layer] = m.known.EdgeFeatures[layer][:0]
	}
	if m.draws.s.Book.Schema != nil {
		m.arrange(m.batch, m.known, layer)
	}
	if hop == len(m.Fanouts)-1 {
		m.without.takeOut(m.known, m.rows.find)
	}
}
