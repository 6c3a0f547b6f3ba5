package sample

import (
	"fmt"

	"starling/graph"
	"starling/rng"
)

// layerwise is what FastGCN and LADIES share: the sources of a layer are drawn
// together, independently of each other, from a distribution q over vertices, and
// every edge from one of them to a destination is used. The edges of a source drawn c
// times in t draws count c/(t·q): the estimate is unbiased. The destinations themselves
// are sources too, so that a vertex's own row is always available.
type layerwise struct {
	graph   *graph.CSR
	draws   []int // per layer, from the last one, which has the seed vertices, to the first
	seed    uint64
	degrees []float64
	order   *Order
}

func newLayerwise(g *graph.CSR, seeds []uint32, size int, draws []int, seed uint64) (*layerwise, error) {
	for _, t := range draws {
		if t < 1 {
			return nil, fmt.Errorf("fanout %d: a layer needs at least 1 draw", t)
		}
	}
	if g.Weights != nil {
		if err := CheckWeights(g); err != nil {
			return nil, err
		}
	}
	return &layerwise{graph: g, draws: draws, seed: seed, degrees: degrees(g), order: NewOrder(seeds, size, seed)}, nil
}

// layerSampler draws the blocks of a batch for a layer-wise method.
type layerSampler struct {
	of    *layerwise
	rows  *table // of the batch
	place *table // in the sources
	Sources
}

func (l *layerwise) sampler() *layerSampler {
	return &layerSampler{of: l, rows: newTable(l.graph.Nodes()), place: newTable(l.graph.Nodes())}
}

// sample draws the blocks from the last to the first; draw fills the sources for
// the destinations of a layer, after may change the block made of them.
func (s *layerSampler) sample(b *Batch, epoch, number int, draw func(key rng.Key, dst []uint32, t int),
	after func(x *Block, dst []uint32)) {
	layers := len(s.of.draws)
	b.Reset(epoch, number, layers)
	s.rows.begin()
	for _, v := range s.of.order.Batch(epoch, number) {
		_, b.Vertices = s.rows.add(b.Vertices, v)
	}
	b.FirstSeeds(len(b.Vertices))
	key := BatchKey(s.of.seed, epoch, number)
	for hop, t := range s.of.draws {
		layer := layers - 1 - hop
		dst := b.Vertices
		draw(key.Fold(uint64(layer)), dst, t)
		x := &b.Blocks[layer]
		s.connect(b, x, dst)
		after(x, dst)
	}
	b.Scale = 1 / float64(s.of.order.size)
}

// take draws t vertices from q, whose numbers are positions in list (nil: vertices).
func (s *layerSampler) take(key rng.Key, q *Distribution, list []uint32, t int) {
	s.place.begin()
	s.Take(key, q, list, t, s.place.add)
}

// Sources are the vertices that a layer draws, and what edges from them count.
type Sources struct {
	Vertices []uint32 // distinct
	Count    []float32
	times    []int
}

// Take draws t vertices from q, whose numbers are positions in list (nil: vertices). add is the
// place of a vertex in some, at whose end it is put if it was not there.
func (s *Sources) Take(key rng.Key, q *Distribution, list []uint32, t int,
	add func(to []uint32, v uint32) (place uint32, longer []uint32)) {
	s.Vertices, s.times, s.Count = s.Vertices[:0], s.times[:0], s.Count[:0]
	if q.Total() == 0 {
		return
	}
	for i := range t {
		n := q.Draw(key, uint64(i))
		u := n
		if list != nil {
			u = list[n]
		}
		at, longer := add(s.Vertices, u)
		if len(longer) > len(s.Vertices) {
			s.Vertices = longer
			s.times = append(s.times, 0)
			s.Count = append(s.Count, float32(1/(float64(t)*q.Probability(n))))
		}
		s.times[at]++
	}
	for i, n := range s.times {
		s.Count[i] *= float32(n)
	}
}

// connect finds the edges from drawn vertices to destinations.
func (s *layerSampler) connect(b *Batch, x *Block, dst []uint32) {
	g := s.of.graph
	x.Dst = len(dst)
	for _, v := range dst {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			u := g.Indices[e]
			at, ok := s.place.find(u)
			if !ok {
				continue
			}
			var row uint32
			row, b.Vertices = s.rows.add(b.Vertices, u)
			x.Indices = append(x.Indices, row)
			if g.EdgeDim > 0 {
				x.Places = append(x.Places, e)
			}
			x.Weights = append(x.Weights, s.Count[at]*float32(weight(g, e)))
		}
		x.Indptr = append(x.Indptr, int64(len(x.Indices)))
	}
	x.Src = len(b.Vertices)
}
