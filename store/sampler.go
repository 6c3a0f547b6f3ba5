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
	b, fanout, layer := m.batch, m.Fanouts[hop], len(m.Fanouts)-1-hop
	id := coflow.ID{Epoch: uint32(b.Epoch), Batch: uint32(b.Number), Layer: int16(layer), Type: coflow.Inputs}
	return m.draws.ask(id, b.Vertices, &query{key: sample.LayerKey(m.Seed, b.Epoch, b.Number, layer), fanout: fanout,
		fanouts: m.draws.s.fanoutsOf(m.draws.opt.RelationFanouts, hop), seeds: hop == 0, without: m.without, masks: m.masks,
		typed: m.draws.s.Book.Schema != nil})
}

// Wait waits for what was asked.
func (m *Sampler) Wait(ctx context.Context) error { return m.draws.wait(ctx) }

// Stitch makes the hop's block, and adds the vertices that it found.
func (m *Sampler) Stitch(hop int) error {
	if err := m.draws.take(); err != nil {
		return err
	}
	layer := len(m.Fanouts) - 1 - hop
	if m.stitch(m.batch, m.known, layer); m.draws.s.Book.Schema != nil {
		m.arrange(m.batch, m.known, layer)
	}
	if hop == len(m.Fanouts)-1 {
		m.without.takeOut(m.known, m.rows.find)
	}
	return nil
}

// stitch makes a layer's block of what the parts drew, in the order of its destinations.
func (m *Sampler) stitch(b *sample.Batch, known *Known, layer int) {
	x, w := &b.Blocks[layer], &m.draws
	x.Dst = len(b.Vertices)
	features := known.EdgeFeatures[layer][:0]
	dim := w.s.Part.In.EdgeDim
	w.each(b.Vertices, func(i int, d *drawn, k int) {
		known.destination(i, d, k)
		features = d.appendTo(x, features, k, dim, func(at uint32) uint32 {
			row, longer := m.rows.add(b.Vertices, d.source(at))
			if b.Vertices = longer; int(row) >= len(known.IDs) {
				known.source(row, d, at)
			}
			return row
		})
	})
	x.Src = len(b.Vertices)
	known.EdgeFeatures[layer] = features
}
