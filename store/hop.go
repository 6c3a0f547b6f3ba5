package store

import (
	"context"

	"starling/coflow"
	"starling/sample"
)

// Hops draws neighbours one hop at a time, for vertices of the caller's choice, by the keys of Sampler:
// a vertex draws the same edges of a layer for every worker that asks. It is used by one goroutine.
type Hops struct {
	Seed uint64

	draws draws
	at    rowTable
}

// Hops makes one, with memory of its own.
func (s *Store) Hops(seed uint64, opt Options) *Hops {
	return &Hops{Seed: seed, draws: newDraws(s, opt)}
}

// Hop is the edges of a hop. Indices are places in the lists of sources.
type Hop struct {
	sample.Block
	Sources []uint32  // by number in the partition
	IDs     []uint32  // of sources, in the dataset
	NoLoops []float64 // of sources, degrees without loops
	All     []float64 // of destinations, degrees
	// Of destinations, where that was asked for.
	OwnIDs       []uint32
	OwnNoLoops   []float64
	EdgeFeatures []float32
}

// Draw fills h with the edges of some vertices in a hop, whose layer it is given. The vertices of the first hop are
// seeds, whose ids and degrees are not known yet.
func (m *Hops) Draw(ctx context.Context, h *Hop, vertices []uint32, fanout, hop, layer, epoch, number int) error {
	byRelation, seeds := m.draws.s.fanoutsOf(m.draws.opt.RelationFanouts, hop), hop == 0
	id := coflow.ID{Epoch: uint32(epoch), Batch: uint32(number), Layer: int16(layer), Type: coflow.Inputs}
	q := &query{key: sample.LayerKey(m.Seed, epoch, number, layer), fanout: fanout, seeds: seeds, fanouts: byRelation,
		visits: m.draws.opt.Visits}
	if err := m.draws.fetch(ctx, id, vertices, q); err != nil {
		return err
	}
	if m.stitch(h, vertices); m.draws.s.Book.Schema != nil {
		h.arrange(m.draws.s.Book.TypeOf)
	}
	return nil
}

// stitch joins what the parts drew, in the order of the vertices.
func (m *Hops) stitch(h *Hop, vertices []uint32) {
	h.Block = sample.Block{Dst: len(vertices), Indptr: append(h.Indptr[:0], 0), Indices: h.Indices[:0],
		Weights: h.Weights[:0], RowWeights: h.RowWeights[:0], Relations: h.Relations[:0]}
	h.Sources, h.IDs, h.NoLoops, h.All = h.Sources[:0], h.IDs[:0], h.NoLoops[:0], h.All[:0]
	h.OwnIDs, h.OwnNoLoops, h.EdgeFeatures = h.OwnIDs[:0], h.OwnNoLoops[:0], h.EdgeFeatures[:0]
	dim := m.draws.s.Part.In.EdgeDim
	m.at.begin()
	m.draws.each(vertices, func(_ int, d *drawn, k int) {
		h.All = append(h.All, d.all[k])
		if len(d.own) > 0 {
			h.OwnIDs, h.OwnNoLoops = append(h.OwnIDs, d.own[k]), append(h.OwnNoLoops, d.ownNoLoops[k])
		}
		h.EdgeFeatures = d.appendTo(&h.Block, h.EdgeFeatures, k, dim, func(at uint32) uint32 {
			row, longer := m.at.add(h.Sources, d.source(at))
			if h.Sources = longer; len(longer) > len(h.IDs) {
				id, noLoops := d.about(at)
				h.IDs, h.NoLoops = append(h.IDs, id), append(h.NoLoops, noLoops)
			}
			return row
		})
	})
	h.Src = len(h.Sources)
}

// Drawn is what was sent and received, by owner, for the edges drawn since it was last called.
func (m *Hops) Drawn() []Traffic { return m.draws.drawn() }

// Traffic is that, and what pulling the rows of a batch will take.
func (m *Hops) Traffic(b *sample.Batch) []Traffic { return m.draws.traffic(b) }
