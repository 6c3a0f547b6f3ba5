package sample

import (
	"fmt"
	"slices"

	"starling/graph"
)

// Temporal is the sampling of Neighbour on a graph whose edges have times: a seed vertex has a time, and all that its
// batch shows it is from before that (Rossi et al., "Temporal Graph Networks", 2020, §4.2; PyG's NeighborLoader with
// time_attr). A vertex is drawn for a time:
//
//	row (v, t)    v as seen at t; draws up to fanout of the in-edges of v whose time is before t
//	sources       rows (u, t) of the same t: what a seed is shown does not depend on other seeds
//
// Rows of two seeds are the same only if both vertex and time are, and then so is all below them: batches are
// disjoint
// by time. An edge counts d/(edges drawn), with d the edges of v from before t, and degrees are d: what is drawn
// tells
// nothing of later edges.
type Temporal struct {
	Graph *graph.CSR
	Past  *Past
	// Times are of vertices: when each is a seed.
	Times []int64
	// SeedVertices are the training vertices, Size how many make a batch.
	SeedVertices []uint32
	Size         int
	// Fanouts are per layer, from the last one to the first; All takes every edge from before.
	Fanouts []int
	// Recent takes the latest edges, instead of any.
	Recent bool
	Seed   uint64

	order *Order
}

// Prepare checks the settings and makes the method ready.
func (n *Temporal) Prepare() (Method, error) {
	for _, f := range n.Fanouts {
		if f < 1 && f != All {
			return nil, fmt.Errorf("fanout %d: it must be at least 1, or %d for all neighbours", f, All)
		}
	}
	if len(n.Times) != n.Graph.Nodes() {
		return nil, fmt.Errorf("%d times for %d vertices", len(n.Times), n.Graph.Nodes())
	}
	n.order = NewOrder(n.SeedVertices, n.Size, n.Seed)
	return n, nil
}

func (n *Temporal) Batches() int { return n.order.Batches() }

func (n *Temporal) Sampler() Sampler { return n.TemporalSampler() }

// TemporalSampler is Sampler, which also draws batches of given seeds.
func (n *Temporal) TemporalSampler() *TemporalSampler {
	return &TemporalSampler{of: n, drawer: PastDrawer{Past: n.Past, Recent: n.Recent, choose: chooser{g: n.Graph}}}
}

// TemporalSampler draws batches of a Temporal.
type TemporalSampler struct {
	of     *Temporal
	drawer PastDrawer
	rows   Moments
	block  Block
	times  []int64
	counts []float64
}

func (s *TemporalSampler) Sample(b *Batch, epoch, number int) {
	seeds := s.of.order.Batch(epoch, number)
	s.times = s.times[:0]
	for _, v := range seeds {
		s.times = append(s.times, s.of.Times[v])
	}
	s.SampleAt(b, seeds, s.times, epoch, number)
	b.Scale = 1 / float64(s.of.order.size)
}

// SampleAt fills b with the blocks of some seeds, each at a time. A seed that is listed again is the same row.
func (s *TemporalSampler) SampleAt(b *Batch, seeds []uint32, times []int64, epoch, number int) {
	layers := len(s.of.Fanouts)
	b.Reset(epoch, number, layers)
	s.rows.Begin(b)
	for i, v := range seeds {
		s.rows.Add(b, v, times[i])
	}
	b.FirstSeeds(len(b.Vertices))
	for hop, fanout := range s.of.Fanouts {
		layer := layers - 1 - hop
		x := &b.Blocks[layer]
		s.counts = s.drawer.Draw(&s.block, s.counts, b.Vertices, b.Times, fanout, LayerKey(s.of.Seed, epoch, number,
			layer))
		b.Degrees = append(b.Degrees, s.counts[len(b.Degrees):]...)
		dst := len(b.Vertices)
		to := Block{Dst: dst, Indptr: x.Indptr, Indices: x.Indices, RowWeights: x.RowWeights, Weights: x.Weights,
			Places: x.Places, Relations: x.Relations}
		for i := range dst {
			for _, u := range s.block.Indices[s.block.Indptr[i]:s.block.Indptr[i+1]] {
				to.Indices = append(to.Indices, s.rows.Add(b, u, b.Times[i]))
			}
			to.Indptr = append(to.Indptr, int64(len(to.Indices)))
		}
		to.RowWeights, to.Weights = append(to.RowWeights, s.block.RowWeights...), append(to.Weights,
			s.block.Weights...)
		to.Places, to.Src = append(to.Places, s.block.Places...), len(b.Vertices)
		*x = to
	}
}

// Moments number the rows of a temporal batch, vertices as of times, in the order they are first added.
type Moments struct{ rows map[moment]uint32 }

type moment struct {
	vertex uint32
	time   int64
}

// Begin forgets all rows, of a batch that was reset.
func (m *Moments) Begin(b *Batch) {
	if m.rows == nil {
		m.rows = map[moment]uint32{}
	}
	clear(m.rows)
	b.Temporal = true
}

// Add is the row of a vertex as of a time, which is put at the end of the batch's if it was not there.
func (m *Moments) Add(b *Batch, vertex uint32, time int64) uint32 {
	at := moment{vertex, time}
	row, ok := m.rows[at]
	if !ok {
		row = uint32(len(b.Vertices))
		m.rows[at] = row
		b.Vertices, b.Times = append(b.Vertices, vertex), append(b.Times, time)
	}
	return row
}

// Distinct are the different vertices of a batch's rows, and of each row its place among them, in memory of to and
// at.
func (b *Batch) Distinct(to, at []uint32) (vertices, place []uint32) {
	if !b.Temporal {
		return b.Vertices, nil
	}
	seen := make(map[uint32]uint32, len(b.Vertices))
	vertices, place = to[:0], slices.Grow(at[:0], len(b.Vertices))
	for _, v := range b.Vertices {
		p, ok := seen[v]
		if !ok {
			p = uint32(len(vertices))
			seen[v], vertices = p, append(vertices, v)
		}
		place = append(place, p)
	}
	return vertices, place
}
