package store

import (
	"sync"

	"starling/graph"
	"starling/partition"
	"starling/sample"
)

// Owner is a part that is here.
type Owner struct {
	part    *partition.Part
	first   uint32 // number of its first vertex
	degrees []float64
	drawers sync.Pool
	replace bool        // edges are drawn with replacement
	counts  *walkCounts // nil: walks were not counted
	guides  guides
	past    func() *sample.Past // made when it is first asked for
	// Of edges that are kept (kept.go): numbers of all vertices, and their places; nil: the part has them.
	numbers []uint32
	at      *places
}

func newOwner(p *partition.Part, opt Options) (*Owner, error) {
	if p.DatasetOrder == nil {
		return nil, &graph.InputError{File: p.Dir, Field: "dataset_order.npy", Found: "no such file",
			Want: "the order that the dataset has edges in, which draws depend on", Fix: "make the partition again " +
				"with starling partition"}
	}
	o := &Owner{part: p, first: uint32(p.Book.Offsets[p.Meta.Part]), degrees: weightedDegrees(p.In),
		replace: opt.Replace}
	n := &sample.Neighbour{Graph: p.In, IDs: p.IDs, Order: p.DatasetOrder, Replace: opt.Replace, Weighted: opt.Weighted}
	if opt.Weighted {
		if err := sample.CheckWeights(p.In); err != nil {
			return nil, err
		}
	}
	o.past = sync.OnceValue(func() *sample.Past { return sample.NewPast(p.In, p.SeenFrom, p.DatasetOrder) })
	o.drawBy(n, p.Book.Schema)
	return o, nil
}

// drawBy has edges drawn as n does; schema is nil of a graph without types.
func (o *Owner) drawBy(n *sample.Neighbour, schema *graph.Schema) {
	if schema != nil {
		n.Types = &sample.Types{Schema: schema}
	}
	o.drawers.New = func() any { return n.Drawer() }
}

// weightedDegrees sums the weights of in-edges; nil: all are one.
func weightedDegrees(g *graph.CSR) []float64 {
	if g.Weights == nil {
		return nil
	}
	d := make([]float64, g.Nodes())
	for v := range d {
		for _, w := range g.Weights[g.Indptr[v]:g.Indptr[v+1]] {
			d[v] += float64(w)
		}
	}
	return d
}

// number is a local vertex's in the partition.
func (o *Owner) number(local uint32) uint32 {
	if o.numbers != nil {
		return o.numbers[local]
	}
	if core := uint32(o.part.Core()); local >= core {
		return o.part.Halo[local-core]
	}
	return o.first + local
}

// local turns numbers into the part's own, and refuses vertices of others.
func (o *Owner) local(numbers []uint32) error { return o.rows("vertices").local(numbers) }
