package sample

import (
	"slices"

	"starling/rng"
)

// LayerKey returns the key of all draws of a layer of a batch.
func LayerKey(seed uint64, epoch, number, layer int) rng.Key {
	return BatchKey(seed, epoch, number).Fold(uint64(layer))
}

// Drawer draws in-edges of rows of a graph, as a layer of Neighbour does.
type Drawer struct{ n neighbours }

// Drawer makes one, with memory of its own. Of n only Graph, IDs, Order, Replace, Weighted and whether it has Types
// matter.
func (n *Neighbour) Drawer() *Drawer {
	return &Drawer{neighbours{of: n, choose: chooser{g: n.Graph, order: n.Order}}}
}

// RelatedEdge is an edge of a relation of a typed graph, or all of its repeats: its destination's row in a batch, and its
// source.
type RelatedEdge struct {
	Row, Relation int
	Source        uint32
}

// ByRelation has the next draws of a typed graph take the fanouts of relations that have their own, and leave out some
// edges; nil: none.
func (d *Drawer) ByRelation(fanouts []int, without []RelatedEdge) {
	d.n.fanouts = fanouts
	d.n.excluded.reset()
	for _, e := range without {
		d.n.excluded.add(e.Row, e.Relation, e.Source)
	}
}

// Draw fills x with the edges that rows draw, from sources as the graph numbers them. It draws as
// if the graph had none of the edges without: row<<32 | source, ascending. guide, if any, says which
// sources are preferred.
func (d *Drawer) Draw(x *Block, rows []uint32, fanout int, key rng.Key, without []uint64, guide *Guide) {
	d.n.guided.of = guide
	if d.n.without.reset(); len(without) > 0 {
		d.n.without.fill(without)
	}
	*x = Block{Dst: len(rows), ByID: true, Indptr: append(x.Indptr[:0], 0), Indices: x.Indices[:0],
		Weights: x.Weights[:0], RowWeights: x.RowWeights[:0], Places: x.Places[:0],
		Relations: x.Relations[:0]}
	x.Indptr = slices.Grow(x.Indptr, x.Dst)
	for lo := 0; lo < len(rows); lo += chunk {
		some := rows[lo:min(lo+chunk, len(rows))]
		d.n.locate(some)
		d.n.pick(x, some, fanout, key)
		d.n.copyIDs(x)
	}
}
