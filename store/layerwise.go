package store

import (
	"context"

	"starling/coflow"
	"starling/sample"
)

// LayerSampler draws batches as sample.FastGCN or sample.LADIES do, from owners wherever they are:
// for the same seed vertices and the same key the blocks are equal to the blocks of a sampler that has the whole
// graph. It is used by one goroutine.
//
// FastGCN's distribution is known to all workers. Owners are sent the sources that were drawn, and
// answer with the edges from these.
//
// LADIES' probabilities are of all destinations of a batch's layer, whichever worker they belong to.
// So every worker asks for the in-edges of all destinations of the global batch, adds up the
// probabilities in the order of the destinations, and keeps the blocks of its own seeds.
type LayerSampler struct {
	Draws []int // per layer, from the last to the first
	Seed  uint64

	q       *sample.Distribution // FastGCN's, by id; nil: LADIES
	numbers []uint32             // by id

	draws      draws
	rows       rowTable
	place      rowTable // in the sources drawn
	among      rowTable // in neighbours
	sources    sample.Sources
	neighbours []uint32
	norms      []float64
	restrict   restriction
	lengths    [][]int64 // of the lists of each layer's destinations
	// Edges that LADIES asked for, and how many of them destinations of its own seeds have.
	asked, needed int64
}

// FastGCN makes a sampler over norms that were shared, with a distribution of NewFastGCN.
func (s *Store) FastGCN(v *Vertices, q *sample.Distribution, draws []int, seed uint64) *LayerSampler {
	return &LayerSampler{Draws: draws, Seed: seed, q: q, numbers: v.Number, draws: newDraws(s, Options{})}
}

// LADIES makes a sampler.
func (s *Store) LADIES(draws []int, seed uint64) *LayerSampler {
	return &LayerSampler{Draws: draws, Seed: seed, draws: newDraws(s, Options{}), lengths: make([][]int64, len(draws))}
}

// Sample fills b with the blocks of some seed vertices, which are distinct, and known with what was
// learned. LADIES takes all seeds of the global batch, and leaves the blocks of those marked; nil:
// of all.
func (m *LayerSampler) Sample(ctx context.Context, b *sample.Batch, known *Known, seeds []uint32, mine []bool, epoch,
	number int) error {
	b.Reset(epoch, number, len(m.Draws))
	m.rows.begin()
	known.begin(len(m.Draws))
	for _, v := range seeds {
		_, b.Vertices = m.rows.add(b.Vertices, v)
	}
	b.FirstSeeds(len(seeds))
	known.grow(len(seeds))
	for hop, t := range m.Draws {
		if err := m.hop(ctx, b, known, hop, t); err != nil {
			return err
		}
	}
	if mine != nil {
		m.restrict.restrict(b, known, mine, len(m.Draws), m.draws.s.Part.In.EdgeDim)
		m.countShared(b)
	}
	return nil
}

// countShared counts the edges that were asked for, and the edges of destinations that are left.
func (m *LayerSampler) countShared(b *sample.Batch) {
	for l, lengths := range m.lengths {
		for _, n := range lengths {
			m.asked += n
		}
		for _, old := range m.restrict.Rows[:b.Blocks[l].Dst] {
			m.needed += lengths[old]
		}
	}
}

// Shared is how many in-edges LADIES asked for to know its probabilities, since it was last called,
// and how many of them its own destinations have.
func (m *LayerSampler) Shared() (asked, needed int64) {
	asked, needed, m.asked, m.needed = m.asked, m.needed, 0, 0
	return asked, needed
}

func (m *LayerSampler) hop(ctx context.Context, b *sample.Batch, known *Known, hop, t int) error {
	layer := len(m.Draws) - 1 - hop
	key := sample.LayerKey(m.Seed, b.Epoch, b.Number, layer)
	q := &query{key: key, fanout: sample.All, seeds: hop == 0}
	m.place.begin()
	if m.q != nil {
		m.sources.Take(key, m.q, m.numbers, t, m.place.add)
		q.only = append([]uint32{}, m.sources.Vertices...)
	}
	id := coflow.ID{Epoch: uint32(b.Epoch), Batch: uint32(b.Number), Layer: int16(layer), Type: coflow.Inputs}
	if err := m.draws.fetch(ctx, id, b.Vertices, q); err != nil {
		return err
	}
	if m.q == nil {
		m.probabilities(b.Vertices, known, layer)
		m.sources.Take(key, sample.NewDistribution(m.norms), m.neighbours, t, m.place.add)
	}
	m.connect(b, known, layer)
	return nil
}

// probabilities are LADIES': of each neighbour of the destinations, the sum of Â(v,u)².
func (m *LayerSampler) probabilities(dst []uint32, known *Known, layer int) {
	m.neighbours, m.norms = m.neighbours[:0], m.norms[:0]
	m.among.begin()
	m.lengths[layer] = m.lengths[layer][:0]
	m.draws.each(dst, func(i int, d *drawn, k int) {
		m.lengths[layer] = append(m.lengths[layer], d.Indptr[k+1]-d.Indptr[k])
		own := known.NoLoops[i]
		if len(d.own) > 0 {
			own = d.ownNoLoops[k]
		}
		for e := d.Indptr[k]; e < d.Indptr[k+1]; e++ {
			at, longer := m.among.add(m.neighbours, d.source(d.Indices[e]))
			if len(longer) > len(m.neighbours) {
				m.neighbours, m.norms = longer, append(m.norms, 0)
			}
			w := float64(d.weight(e))
			_, noLoops := d.about(d.Indices[e])
			m.norms[at] += w * w / ((own + 1) * (noLoops + 1))
		}
	})
}

// weight is an edge's.
func (d *drawn) weight(e int64) float32 {
	if len(d.Weights) == 0 {
		return 1
	}
	return d.Weights[e]
}

// connect makes a layer's block of the edges from the sources drawn.
func (m *LayerSampler) connect(b *sample.Batch, known *Known, layer int) {
	x, dim := &b.Blocks[layer], m.draws.s.Part.In.EdgeDim
	x.Dst = len(b.Vertices)
	features := known.EdgeFeatures[layer][:0]
	m.draws.each(b.Vertices[:x.Dst], func(i int, d *drawn, k int) {
		known.destination(i, d, k)
		all, from := 0.0, len(x.Weights)
		for e := d.Indptr[k]; e < d.Indptr[k+1]; e++ {
			u, number := d.Indices[e], d.source(d.Indices[e])
			all += float64(d.weight(e))
			at, ok := m.place.find(number)
			if !ok {
				continue
			}
			var row uint32
			row, b.Vertices = m.rows.add(b.Vertices, number)
			known.source(row, d, u)
			x.Indices, x.Weights = append(x.Indices, row), append(x.Weights, m.sources.Count[at]*d.weight(e))
			features = append(features, d.features[int(e)*dim:(int(e)+1)*dim]...)
		}
		if m.q == nil {
			sample.SumTo(x.Weights[from:], all)
		}
		x.Indptr = append(x.Indptr, int64(len(x.Indices)))
	})
	x.Src = len(b.Vertices)
	known.EdgeFeatures[layer] = features
}
