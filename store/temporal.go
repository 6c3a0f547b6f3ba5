package store

import (
	"context"

	"starling/coflow"
	"starling/sample"
)

// Draws of a temporal batch: the time of a row travels with the request, and the owner of its vertex leaves out the
// edges that cannot be seen then. A reply is as of other draws, with degrees at the rows' times. Edges of a reply
// have
// the time of the row that drew them, so that no time comes back.

// timesFrom reads n times.
func timesFrom(r *reader, n int) []int64 { return listOf[int64](r.take(n, 8)) }

// drawAsOf has some vertices of the part draw from what each sees at its time.
func (o *Owner) drawAsOf(d *drawn, local []uint32, q *query) {
	drawer := sample.PastDrawer{Past: o.past(), IDs: o.part.IDs, Recent: q.recent}
	d.all = drawer.Draw(&d.Block, d.all, local, q.times, q.fanout, q.key)
}

// TemporalSampler draws batches as sample.Temporal does, from owners wherever they are. It is used by one goroutine.
type TemporalSampler struct {
	Fanouts []int // from the last layer to the first
	Recent  bool
	Seed    uint64

	draws draws
	rows  sample.Moments
}

// TemporalSampler makes one, with memory of its own.
func (s *Store) TemporalSampler(fanouts []int, recent bool, seed uint64) *TemporalSampler {
	return &TemporalSampler{Fanouts: fanouts, Recent: recent, Seed: seed, draws: newDraws(s, Options{})}
}

// Sample fills b with the blocks of some seed vertices, each as of a time, and known with what was learned. No two
// seeds
// are of the same vertex and time.
func (m *TemporalSampler) Sample(ctx context.Context, b *sample.Batch, known *Known, seeds []uint32, times []int64,
	epoch, number int) error {
	b.Reset(epoch, number, len(m.Fanouts))
	known.begin(len(m.Fanouts))
	m.rows.Begin(b)
	for i, v := range seeds {
		m.rows.Add(b, v, times[i])
	}
	b.FirstSeeds(len(seeds))
	known.grow(len(seeds))
	for hop, fanout := range m.Fanouts {
		layer := len(m.Fanouts) - 1 - hop
		id := coflow.ID{Epoch: uint32(epoch), Batch: uint32(number), Layer: int16(layer), Type: coflow.Inputs}
		q := &query{key: sample.LayerKey(m.Seed, epoch, number, layer), fanout: fanout, seeds: hop == 0,
			times: append([]int64{}, b.Times...), recent: m.Recent}
		if err := m.draws.fetch(ctx, id, b.Vertices, q); err != nil {
			return err
		}
		m.stitch(b, known, layer)
	}
	return nil
}

// stitch makes a layer's block of what the parts drew: sources are as of the time of the row that drew them.
func (m *TemporalSampler) stitch(b *sample.Batch, known *Known, layer int) {
	x, w := &b.Blocks[layer], &m.draws
	x.Dst = len(b.Vertices)
	features := known.EdgeFeatures[layer][:0]
	w.each(b.Vertices[:x.Dst], func(i int, d *drawn, k int) {
		known.destination(i, d, k)
		if i == len(b.Degrees) {
			b.Degrees = append(b.Degrees, d.all[k])
		}
		features = d.appendTo(x, features, k, w.s.Part.In.EdgeDim, func(at uint32) uint32 {
			row := m.rows.Add(b, d.source(at), b.Times[i])
			if int(row) >= len(known.IDs) {
				known.source(row, d, at)
			}
			return row
		})
	})
	x.Src = len(b.Vertices)
	known.EdgeFeatures[layer] = features
}

// Drawn is what was sent and received, by owner, for the edges drawn since it was last called; Traffic that, and what
// the batch's rows will take.
func (m *TemporalSampler) Drawn() []Traffic { return m.draws.drawn() }
func (m *TemporalSampler) Traffic(b *sample.Batch) []Traffic {
	out := m.draws.drawn()
	vertices, _ := b.Distinct(nil, nil)
	m.draws.s.AddFeatures(out, vertices)
	return out
}
