package store

import (
	"context"

	"starling/coflow"
	"starling/sample"
)

// Expansion draws batches as sample.Expand does, from owners wherever they are. It is used by one
// goroutine.
type Expansion struct {
	Hops, Fanout int

	pick  sample.Expansion
	draws draws
	rows  rowTable
}

// Expansion makes a sampler that goes at most the given hops beyond seeds, and takes at most fanout neighbours of each
// vertex.
func (s *Store) Expansion(hops, fanout int) *Expansion {
	return &Expansion{Hops: hops, Fanout: fanout, draws: newDraws(s, Options{})}
}

// Sample fills b with the expansion of some seed vertices, which are distinct, and known with what was
// learned.
func (m *Expansion) Sample(ctx context.Context, b *sample.Batch, known *Known, seeds []uint32, epoch,
	number int) error {
	b.Reset(epoch, number, 1)
	known.begin(1)
	m.rows.begin()
	m.pick.Begin()
	add := func(list []uint32) {
		m.pick.Selected(list)
		for _, v := range list {
			_, b.Vertices = m.rows.add(b.Vertices, v)
		}
	}
	add(seeds)
	b.FirstSeeds(len(seeds))
	id := coflow.ID{Epoch: uint32(epoch), Batch: uint32(number), Type: coflow.Inputs}
	last := append([]uint32{}, b.Vertices...)
	for range m.Hops {
		if err := m.draws.fetch(ctx, id, last, &query{fanout: sample.All}); err != nil {
			return err
		}
		last = m.expand(last)
		add(last)
	}
	known.grow(len(b.Vertices))
	q := &query{fanout: sample.All, seeds: true, only: append([]uint32{}, b.Vertices...)}
	if err := m.draws.fetch(ctx, id, b.Vertices, q); err != nil {
		return err
	}
	x := &b.Blocks[0]
	visit := func(f func(i int, d *drawn, at int)) { m.draws.each(b.Vertices, f) }
	known.induced(b, m.draws.s.Part.In.EdgeDim, visit, &m.rows, func(d *drawn, at int) {
		kept := 0.0
		for e := d.Indptr[at]; e < d.Indptr[at+1]; e++ {
			kept += float64(d.weight(e))
		}
		x.RowWeights = append(x.RowWeights, sample.KeptWeight(d.all[at], kept))
	})
	return nil
}

// expand picks neighbours of the vertices whose edges were drawn.
func (m *Expansion) expand(last []uint32) []uint32 {
	m.draws.each(last, func(i int, d *drawn, k int) {
		for _, at := range d.Indices[d.Indptr[k]:d.Indptr[k+1]] {
			if u := d.source(at); u != last[i] {
				m.pick.Link(u)
			}
		}
	})
	clear(m.draws.next)
	return m.pick.Pick(len(last), m.Fanout, func(i int, add func(sample.Candidate)) {
		q := m.draws.partOf(last[i])
		d, k := &m.draws.parts[q], m.draws.next[q]
		m.draws.next[q]++
		for _, at := range d.Indices[d.Indptr[k]:d.Indptr[k+1]] {
			id, noLoops := d.about(at)
			add(sample.Candidate{Vertex: d.source(at), ID: id, Degree: noLoops})
		}
	})
}

// Drawn is what was sent and received, by owner, for the edges drawn since it was last called.
func (m *Expansion) Drawn() []Traffic { return m.draws.drawn() }

// Traffic is what a batch costs by owner, with the rows that it needs.
func (m *Expansion) Traffic(b *sample.Batch) []Traffic { return m.draws.traffic(b) }
