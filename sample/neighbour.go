package sample

import (
	"fmt"
	"slices"

	"starling/graph"
	"starling/rng"
)

// All is the fanout that takes every neighbour.
const All = -1

// Neighbour is the sampling of GraphSAGE (Hamilton, Ying and Leskovec, NeurIPS
// 2017, alg. 2): every destination of a layer draws up to fanout of its d
// in-edges. The draws of a vertex are keyed by its layer and itself.
//
//	distinct (default)   any fanout of the d, equally likely; an edge counts d/fanout
//	Replace              fanout independent draws; an edge counts d/fanout
//	Weighted             by weight, distinct: priority sampling, see choose.go
//	Weighted, Replace    independent draws in proportion to weights, which add up
//	                     to W; an edge counts W/fanout
//
// The weighted sum over the edges drawn is then an unbiased estimate of the sum over
// all, and their mean that of the mean.
type Neighbour struct {
	Graph *graph.CSR
	// SeedVertices are the training vertices, Size how many make a batch.
	SeedVertices []uint32
	Size         int
	// Fanouts are per layer, from the last one, which has the seeds, to the first;
	// All takes every neighbour.
	Fanouts  []int
	Replace  bool
	Weighted bool
	// ByID leaves the ids of the first block's sources as they are.
	ByID bool
	Seed uint64
	// Types, of a typed graph, gives every relation a fanout of its own; nil: the graph has no types.
	Types *Types
	// IDs are the dataset's ids of the graph's rows, and Order its order of their entries,
	// where the graph is a part: draws then equal the dataset's. nil: it is the dataset's.
	IDs   []uint32
	Order *graph.RowOrder

	order *Order
}

// Prepare checks the settings and makes the method ready.
func (n *Neighbour) Prepare() (Method, error) {
	for _, f := range n.Fanouts {
		if f < 1 && f != All {
			return nil, fmt.Errorf("fanout %d: it must be at least 1, or %d for all neighbours", f, All)
		}
	}
	if n.Weighted {
		if err := CheckWeights(n.Graph); err != nil {
			return nil, err
		}
	}
	if n.Types != nil {
		if err := n.Types.check(n); err != nil {
			return nil, err
		}
	}
	n.order = NewOrder(n.SeedVertices, n.Size, n.Seed)
	return n, nil
}

// CheckWeights refuses a graph whose edges cannot be drawn by weight.
func CheckWeights(g *graph.CSR) error {
	if g.Weights == nil {
		return fmt.Errorf("the graph has no weights to draw by")
	}
	for _, w := range g.Weights {
		if !(w >= 0) {
			return fmt.Errorf("an edge of weight %g: drawing by weight needs weights that are not negative", w)
		}
	}
	return nil
}

func (n *Neighbour) Batches() int { return n.order.Batches() }

// chunk is how many destinations each loop processes: their cache misses then
// overlap.
const chunk = 64

// neighbours is a sampler of n.
type neighbours struct {
	of     *Neighbour
	choose chooser
	table  *table
	first  [chunk]int64
	degree [chunk]int64
	picked []int64
	// without are edges that are never drawn, as if the graph did not have them.
	without without
	// excluded are the same of a typed graph, by relation.
	excluded excluded
	guided   guided
	// fanouts are of relations that have their own; arrange is of typed batches.
	fanouts []int
	arrange Arranger
}

func (n *Neighbour) Sampler() Sampler { return n.sampler() }

func (n *Neighbour) sampler() *neighbours {
	s := &neighbours{of: n, choose: chooser{g: n.Graph, order: n.Order}, table: newTable(n.Graph.Nodes())}
	if n.Types != nil {
		s.arrange.TypeOf = n.Types.TypeOf
	}
	return s
}

// SeedSampler draws batches of given seed vertices, which are distinct.
type SeedSampler interface {
	SampleSeeds(b *Batch, seeds []uint32, epoch, number int)
	// Guide has the next batches drawn by a guide, whose sources are ids; nil: by none.
	Guide(g *Guide)
}

func (s *neighbours) Guide(g *Guide) { s.guided.of = g }

func (s *neighbours) SampleSeeds(b *Batch, seeds []uint32, epoch, number int) {
	s.blocks(b, seeds, epoch, number)
}

func (s *neighbours) Sample(b *Batch, epoch, number int) {
	s.blocks(b, s.of.order.Batch(epoch, number), epoch, number)
	b.Scale = 1 / float64(s.of.order.size)
}

// Begin empties b for a batch whose edges are drawn elsewhere, and returns its seeds.
func (n *Neighbour) Begin(b *Batch, epoch, number int) (seeds []uint32) {
	seeds = n.order.Batch(epoch, number)
	b.Reset(epoch, number, len(n.Fanouts))
	b.FirstSeeds(len(seeds))
	b.Scale = 1 / float64(n.order.size)
	return seeds
}

// Keys are what the edges of a batch's layers are drawn by.
func (n *Neighbour) Keys(epoch, number int) (keys []uint64) {
	key := BatchKey(n.Seed, epoch, number)
	for layer := range n.Fanouts {
		keys = append(keys, uint64(key.Fold(uint64(layer))))
	}
	return keys
}

// blocks fills b with the blocks of the given seeds, which are distinct.
func (s *neighbours) blocks(b *Batch, seeds []uint32, epoch, number int) {
	layers := len(s.of.Fanouts)
	b.Reset(epoch, number, layers)
	s.table.begin()
	for _, v := range seeds {
		_, b.Vertices = s.table.add(b.Vertices, v)
	}
	b.FirstSeeds(len(seeds))
	key := BatchKey(s.of.Seed, epoch, number)
	for hop, fanout := range s.of.Fanouts {
		layer := layers - 1 - hop
		if s.of.Types != nil {
			s.fanouts = s.of.Types.Of(hop)
		}
		s.block(b, layer, fanout, key.Fold(uint64(layer)))
		if s.of.Types != nil {
			s.arrange.Arrange(b, layer, s.table.move)
		}
	}
}

// block draws the edges of one layer for all vertices of the batch so far.
func (s *neighbours) block(b *Batch, layer, fanout int, key rng.Key) {
	x := &b.Blocks[layer]
	x.Dst, x.ByID = len(b.Vertices), s.of.ByID && layer == 0
	x.Indptr = slices.Grow(x.Indptr, x.Dst)
	if fanout != All {
		x.Indices = slices.Grow(x.Indices, x.Dst*min(fanout, 64))
		x.RowWeights = slices.Grow(x.RowWeights, x.Dst)
	}
	for lo := 0; lo < x.Dst; lo += chunk {
		dst := b.Vertices[lo:min(lo+chunk, x.Dst)]
		s.locate(dst)
		s.pick(x, dst, fanout, key)
		if x.ByID {
			s.copyIDs(x)
		} else {
			s.relabel(b, x)
		}
	}
	x.Src = len(b.Vertices)
}

// locate reads where the destinations' edges are.
func (s *neighbours) locate(dst []uint32) {
	for i, v := range dst {
		s.first[i] = s.of.Graph.Indptr[v]
		s.degree[i] = s.of.Graph.Indptr[v+1] - s.first[i]
	}
}

// pick draws edges of the destinations and counts them.
func (s *neighbours) pick(x *Block, dst []uint32, fanout int, key rng.Key) {
	s.picked = s.picked[:0]
	done := int64(len(x.Indices))
	for i, v := range dst {
		first, degree, from := s.first[i], int(s.degree[i]), len(s.picked)
		if s.of.IDs != nil {
			v = s.of.IDs[v]
		}
		var counts float32
		if s.of.Types != nil {
			s.pickRelations(x, key.Fold(uint64(v)), first, degree, fanout)
		} else if gone := s.without.of(len(x.Indptr) - 1); len(gone) > 0 {
			counts = s.pickOthers(key, v, first, first, degree, fanout, gone)
		} else {
			counts = s.pickOf(x, key, v, first, degree, fanout)
		}
		if s.of.Order != nil {
			for k, e := range s.picked[from:] {
				s.picked[from+k] = first + int64(s.of.Order.At(e))
			}
		}
		if fanout != All && s.of.Types == nil {
			x.RowWeights = append(x.RowWeights, counts)
		}
		x.Indptr = append(x.Indptr, done+int64(len(s.picked)))
	}
	if s.of.Graph.EdgeDim > 0 {
		x.Places = append(x.Places, s.picked...)
	}
	if s.of.Graph.Weights != nil && !s.of.Weighted {
		for _, e := range s.picked {
			x.Weights = append(x.Weights, s.of.Graph.Weights[e])
		}
	}
}

// pickOf draws edges of v and returns what all of them count.
func (s *neighbours) pickOf(x *Block, key rng.Key, v uint32, first int64, degree, fanout int) float32 {
	few := fanout == All || degree <= fanout
	switch {
	case degree == 0:
	case s.of.Weighted && s.of.Replace && fanout != All:
		var total float64
		s.picked, total = s.choose.repeatedByWeight(s.picked, key.Fold(uint64(v)), first, degree, fanout)
		return float32(total / float64(fanout))
	case s.of.Weighted && few:
		s.picked = s.choose.all(s.picked, first, degree)
		x.Weights = append(x.Weights, s.choose.weights(first, degree)...)
	case s.of.Weighted:
		s.picked, x.Weights = s.choose.distinctByWeight(s.picked, x.Weights, key.Fold(uint64(v)), first, degree, fanout)
	case s.of.Replace && fanout != All:
		s.picked = s.choose.repeated(s.picked, key.Fold(uint64(v)), first, degree, fanout)
		return float32(degree) / float32(fanout)
	case few:
		s.picked = s.choose.all(s.picked, first, degree)
	default:
		if !s.pickGuided(key, v, first, degree, fanout) {
			s.picked = s.choose.distinct(s.picked, key.Fold(uint64(v)), first, degree, fanout)
		}
		return float32(degree) / float32(fanout)
	}
	return 1
}

// copyIDs writes the ids of the sources picked.
func (s *neighbours) copyIDs(x *Block) {
	from := len(x.Indices)
	x.Indices = slices.Grow(x.Indices, len(s.picked))[:from+len(s.picked)]
	to, sources := x.Indices[from:], s.of.Graph.Indices
	for i, e := range s.picked {
		to[i] = sources[e]
	}
}

// relabel writes the rows of the sources picked, and gives rows to those that have
// none.
func (s *neighbours) relabel(b *Batch, x *Block) {
	s.copyIDs(x)
	b.Vertices = slices.Grow(b.Vertices, len(s.picked)+1)
	b.Vertices = s.table.addAll(b.Vertices, x.Indices[len(x.Indices)-len(s.picked):])
}
