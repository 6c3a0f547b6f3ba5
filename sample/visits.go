package sample

import (
	"cmp"
	"fmt"
	"slices"

	"starling/graph"
	"starling/rng"
)

// Visits says which neighbours PinSAGE's destinations have (Ying et al., "Graph Convolutional Neural Networks for
// Web-Scale Recommender Systems", KDD 2018, §3.1): those that random walks from a destination visit most often, with
// how often they are visited as their importance.
//
//	Walks walks begin at v; after each step one goes back to v, that is, ends, with probability Restart, and after
//	Length steps always. Of the vertices visited, other than v, the fanout most often visited are v's neighbours, and
//	u counts d(v) · visits(u) / Σ visits of those taken
//
// so that a mean over neighbours is their mean by importance, and a sum is of the size of v's own. Every walk is drawn
// by a key of the batch, the layer, v and its number alone; so are ties.
type Visits struct {
	Walks, Length int
	Restart       float64
}

// Check refuses what no walk can be drawn by.
func (w *Visits) Check() error {
	if w.Walks < 1 || w.Length < 1 || !(w.Restart >= 0 && w.Restart < 1) {
		return fmt.Errorf("%d walks of %d steps that restart with probability %g: they need 1 walk, 1 step and a "+
			"probability from 0 to below 1", w.Walks, w.Length, w.Restart)
	}
	return nil
}

// Keys of a walk's restarts, and of ties.
var (
	useRestart = hash("restart")
	useTies    = hash("ties of visits")
)

// Walk returns the key of walk k of a destination, whose key of the layer is given, and its number of steps.
func (w *Visits) Walk(destination rng.Key, k int) (key rng.Key, steps int) {
	key = destination.Fold(uint64(k))
	stop := key.Fold(useRestart)
	for steps = 1; steps < w.Length && stop.Float64(uint64(steps)) >= w.Restart; {
		steps++
	}
	return key, steps
}

// Visited is a vertex that walks visit.
type Visited struct {
	Vertex uint32
	ID     uint32 // in the dataset, which ties go by
	Times  int
	tie    uint64
}

// Top leaves of the visits of a destination's walks, each given once, the fanout (All: all) most frequent vertices,
// the most frequent first, and returns the sum of their visits. It overwrites the list.
func Top(visits []Visited, destination rng.Key, fanout int) (top []Visited, sum int) {
	slices.SortFunc(visits, func(a, b Visited) int { return cmp.Compare(a.ID, b.ID) })
	ties := destination.Fold(useTies)
	for _, x := range visits {
		if n := len(top); n > 0 && top[n-1].ID == x.ID {
			top[n-1].Times++
			continue
		}
		top = append(visits[:len(top)], Visited{Vertex: x.Vertex, ID: x.ID, Times: 1, tie: ties.Uint64(uint64(x.ID))})
	}
	slices.SortFunc(top, func(a, b Visited) int {
		return cmp.Or(cmp.Compare(b.Times, a.Times), cmp.Compare(a.tie, b.tie))
	})
	if fanout != All {
		top = top[:min(fanout, len(top))]
	}
	for _, x := range top {
		sum += x.Times
	}
	return top, sum
}

// PinSAGE is the sampler by visits of a graph that is all here.
type PinSAGE struct {
	Visits
	of *Neighbour
}

// NewPinSAGE draws batches of size of the seed vertices, with fanouts from the last layer to the first.
func NewPinSAGE(g *graph.CSR, seeds []uint32, size int, fanouts []int, v Visits, seed uint64) (*PinSAGE, error) {
	if err := v.Check(); err != nil {
		return nil, err
	}
	n := &Neighbour{Graph: g, SeedVertices: seeds, Size: size, Fanouts: fanouts, Seed: seed}
	if _, err := n.Prepare(); err != nil {
		return nil, err
	}
	return &PinSAGE{Visits: v, of: n}, nil
}

func (p *PinSAGE) Batches() int { return p.of.Batches() }

func (p *PinSAGE) Sampler() Sampler {
	return &visitSampler{of: p, rows: newTable(p.of.Graph.Nodes())}
}

type visitSampler struct {
	of     *PinSAGE
	rows   *table
	visits []Visited
}

func (s *visitSampler) Sample(b *Batch, epoch, number int) {
	n := s.of.of
	seeds := n.order.Batch(epoch, number)
	b.Reset(epoch, number, len(n.Fanouts))
	s.rows.begin()
	for _, v := range seeds {
		_, b.Vertices = s.rows.add(b.Vertices, v)
	}
	b.FirstSeeds(len(seeds))
	b.Scale = 1 / float64(n.order.size)
	for hop, fanout := range n.Fanouts {
		layer := len(n.Fanouts) - 1 - hop
		x, key := &b.Blocks[layer], LayerKey(n.Seed, epoch, number, layer)
		x.Dst = len(b.Vertices)
		for _, v := range b.Vertices[:x.Dst] {
			own := key.Fold(uint64(v))
			top, sum := Top(s.visit(v, own), own, fanout)
			AppendVisits(x, top, sum, degree(n.Graph, v), func(u uint32) (row uint32) {
				row, b.Vertices = s.rows.add(b.Vertices, u)
				return row
			})
		}
		x.Src = len(b.Vertices)
	}
}

// degree is a vertex's, by weight.
func degree(g *graph.CSR, v uint32) (sum float64) {
	if g.Weights == nil {
		return float64(g.Degree(v))
	}
	for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
		sum += float64(g.Weights[e])
	}
	return sum
}

// visit walks from a destination.
func (s *visitSampler) visit(v uint32, own rng.Key) []Visited {
	s.visits = s.visits[:0]
	g := s.of.of.Graph
	for k := range s.of.Walks {
		key, steps := s.of.Walk(own, k)
		at := v
		for step := range steps {
			next := g.Neighbors(at)
			if len(next) == 0 {
				break
			}
			if at = next[WalkStep(key, step, len(next))]; at != v {
				s.visits = append(s.visits, Visited{Vertex: at, ID: at})
			}
		}
	}
	return s.visits
}

// AppendVisits appends a destination's neighbours to a block. row is the row of a vertex.
func AppendVisits(x *Block, top []Visited, sum int, degree float64, row func(u uint32) uint32) {
	for _, u := range top {
		x.Indices = append(x.Indices, row(u.Vertex))
		x.Weights = append(x.Weights, float32(degree*float64(u.Times)/float64(sum)))
	}
	x.Indptr = append(x.Indptr, int64(len(x.Indices)))
}
