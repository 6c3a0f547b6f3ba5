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
	// Roots are the training vertices, Size how many make a batch.
	Roots []uint32
	Size  int
	// Fanouts are those of the layers from the last one, the roots', to the first;
	// All takes every neighbour.
	Fanouts  []int
	Replace  bool
	Weighted bool
	// ByID leaves the ids of the first block's sources as they are.
	ByID bool
	Seed uint64

	order *order
}

// Prepare checks the settings and makes the method ready.
func (n *Neighbour) Prepare() (Method, error) {
	for _, f := range n.Fanouts {
		if f < 1 && f != All {
			return nil, fmt.Errorf("fanout %d: it must be at least 1, or %d for all neighbours", f, All)
		}
	}
	if n.Weighted {
		if err := checkWeights(n.Graph); err != nil {
			return nil, err
		}
	}
	n.order = newOrder(n.Roots, n.Size, n.Seed)
	return n, nil
}

func checkWeights(g *graph.CSR) error {
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

func (n *Neighbour) Batches() int { return n.order.batches() }

// chunk is how many destinations go through each step together: their loads then
// overlap, where one destination after the other would wait for each.
const chunk = 64

// neighbours is a sampler of n.
type neighbours struct {
	*Neighbour
	chooser
	table  *table
	first  [chunk]int64
	degree [chunk]int32
	picked []uint32
	// without are edges that are not drawn, as if they were not in the graph.
	without without
}

func (n *Neighbour) Sampler() Sampler { return n.sampler() }

func (n *Neighbour) sampler() *neighbours {
	return &neighbours{Neighbour: n, chooser: chooser{g: n.Graph}, table: newTable(n.Graph.Nodes())}
}

func (s *neighbours) Sample(b *Batch, epoch, number int) {
	s.blocks(b, s.order.batch(epoch, number), epoch, number)
	b.Scale = 1 / float64(s.order.size)
}

// blocks fills b with the blocks of the given roots, which are distinct.
func (s *neighbours) blocks(b *Batch, roots []uint32, epoch, number int) {
	layers := len(s.Fanouts)
	b.reset(epoch, number, layers)
	s.table.begin()
	for _, v := range roots {
		_, b.Vertices = s.table.add(b.Vertices, v)
	}
	b.firstRoots(len(roots))
	key := batchKey(s.Seed, epoch, number)
	for hop, fanout := range s.Fanouts {
		layer := layers - 1 - hop
		s.block(b, layer, fanout, key.Fold(uint64(layer)))
	}
}

// block draws the edges of one layer for all vertices there are so far.
func (s *neighbours) block(b *Batch, layer, fanout int, key rng.Key) {
	x := &b.Blocks[layer]
	x.Dst, x.ByID = len(b.Vertices), s.ByID && layer == 0
	x.Indptr = slices.Grow(x.Indptr, x.Dst)
	if fanout != All {
		x.Indices = slices.Grow(x.Indices, x.Dst*min(fanout, 64))
		x.RowWeights = slices.Grow(x.RowWeights, x.Dst)
	}
	for lo := 0; lo < x.Dst; lo += chunk {
		dst := b.Vertices[lo:min(lo+chunk, x.Dst)]
		s.look(dst)
		s.pick(x, dst, fanout, key)
		if x.ByID {
			s.copyIDs(x)
		} else {
			s.relabel(b, x)
		}
	}
	x.Src = len(b.Vertices)
}

// look reads where the destinations' edges are.
func (s *neighbours) look(dst []uint32) {
	for i, v := range dst {
		s.first[i] = s.Graph.Indptr[v]
		s.degree[i] = int32(s.Graph.Indptr[v+1] - s.first[i])
	}
}

// pick draws edges of the destinations and counts them.
func (s *neighbours) pick(x *Block, dst []uint32, fanout int, key rng.Key) {
	s.picked = s.picked[:0]
	done := int64(len(x.Indices))
	for i, v := range dst {
		first, degree := s.first[i], int(s.degree[i])
		var counts float32
		if gone := s.without.of(len(x.Indptr) - 1); len(gone) > 0 {
			counts = s.pickOthers(key, v, first, degree, fanout, gone)
		} else {
			counts = s.pickOf(x, key, v, first, degree, fanout)
		}
		if fanout != All {
			x.RowWeights = append(x.RowWeights, counts)
		}
		x.Indptr = append(x.Indptr, done+int64(len(s.picked)))
	}
	if s.Graph.EdgeDim > 0 {
		x.Places = append(x.Places, s.picked...)
	}
	if s.Graph.Weights != nil && !s.Weighted {
		for _, e := range s.picked {
			x.Weights = append(x.Weights, s.Graph.Weights[e])
		}
	}
}

// pickOf draws edges of v and returns what all of them count.
func (s *neighbours) pickOf(x *Block, key rng.Key, v uint32, first int64, degree, fanout int) float32 {
	few := fanout == All || degree <= fanout
	switch {
	case degree == 0:
	case s.Weighted && s.Replace && fanout != All:
		var total float64
		s.picked, total = s.repeatedByWeight(s.picked, key.Fold(uint64(v)), first, degree, fanout)
		return float32(total / float64(fanout))
	case s.Weighted && few:
		s.picked = s.all(s.picked, first, degree)
		x.Weights = append(x.Weights, s.Graph.Weights[first:first+int64(degree)]...)
	case s.Weighted:
		s.picked, x.Weights = s.distinctByWeight(s.picked, x.Weights, key.Fold(uint64(v)), first, degree, fanout)
	case s.Replace && fanout != All:
		s.picked = s.repeated(s.picked, key.Fold(uint64(v)), first, degree, fanout)
		return float32(degree) / float32(fanout)
	case few:
		s.picked = s.all(s.picked, first, degree)
	default:
		s.picked = s.distinct(s.picked, key.Fold(uint64(v)), first, degree, fanout)
		return float32(degree) / float32(fanout)
	}
	return 1
}

// copyIDs writes the ids of the sources picked.
func (s *neighbours) copyIDs(x *Block) {
	from := len(x.Indices)
	x.Indices = slices.Grow(x.Indices, len(s.picked))[:from+len(s.picked)]
	to, sources := x.Indices[from:], s.Graph.Indices
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
