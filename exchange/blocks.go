package exchange

import (
	"starling/nn"
	"starling/partition"
	"starling/tensor"
)

// Blocks moves whole blocks of rows: every worker's to every other, whatever edges need,
// over a ring: see ring.go.
type Blocks struct {
	*Rows
	ring *ring
	all  []bool
}

// NewBlocks moves blocks for a worker.
func NewBlocks(w *Worker) *Blocks {
	b := &Blocks{NewRows(w), newRing(w), make([]bool, w.End.Size())}
	for q := range b.all {
		b.all[q] = true
	}
	return b
}

// Exchange sends the block in place: gathering would copy it.
func (b *Blocks) Exchange(t Tag, h *Halo, into, src tensor.Matrix) Arrival {
	x := b.Broadcast(t, h, into, src)
	x.Receive(b.all)
	x.Leave()
	return x
}

// Reverse adds what all others have for the own block to dst.
func (b *Blocks) Reverse(t Tag, h *Halo, grads, dst tensor.Matrix) Arrival {
	return b.Reduce(t, h, grads, b.all, func(sum tensor.Matrix) { b.W.Dev.Combine(dst, 1, dst, 1, sum) })
}

// RowsTo is how many rows leave for a peer if all blocks travel.
func (b *Blocks) RowsTo(t Tag, _ *Halo, peer, _ int, _ bool) int64 {
	return b.RowsOf(t, peer, func(int) bool { return true })
}

// RowsOf is how many rows leave for a peer if the blocks of some owners travel.
func (b *Blocks) RowsOf(t Tag, peer int, travels func(owner int) bool) int64 {
	return b.ring.rowsTo(peer, t.Backward, travels)
}

// PartBlocks is the plan of a partition in which the halo is all vertices of other
// workers, in order of their numbers. Rows leave as a block, so that Send lists none.
func PartBlocks(p *partition.Part) *HaloPlan {
	me, core, all := p.Meta.Part, p.Meta.Core, int(p.Book.Nodes)
	l := &HaloPlan{Src: int(core), IDs: make([]uint32, all), SendPtr: []int64{0}, Schema: p.Book.Schema}
	for q, at := range p.Book.Offsets {
		if q > me {
			at -= core
		}
		l.HaloPtr = append(l.HaloPtr, at)
	}
	for q := range p.Book.Parts {
		if l.SendPtr = append(l.SendPtr, l.SendPtr[q]); q != me {
			l.SendPtr[q+1] += core
		}
	}
	place := blockPlaces(p)
	in := *p.In
	in.Indices = make([]uint32, len(p.In.Indices))
	l.In = &in
	for e, u := range p.In.Indices {
		l.In.Indices[e] = place[u]
	}
	l.Degrees = &nn.Degrees{All: make([]float64, all)}
	if p.GCNDegrees != nil {
		l.Degrees.NoLoops = make([]float64, all)
	}
	// Vertices outside the part's halo have no edge to this worker, so their ids
	// and degrees are not requested; they stay 0.
	for u, at := range place {
		l.IDs[at], l.Degrees.All[at] = p.IDs[u], float64(p.Degrees[u])
		if p.GCNDegrees != nil {
			l.Degrees.NoLoops[at] = p.GCNDegrees[u]
		}
	}
	return l
}

// blockPlaces says for each core and halo vertex which row it is: the core keeps its
// numbers, and all others follow it.
func blockPlaces(p *partition.Part) []uint32 {
	core, end := uint32(p.Meta.Core), uint32(p.Book.Offsets[p.Meta.Part+1])
	place := make([]uint32, 0, int(core)+len(p.Halo))
	for v := range core {
		place = append(place, v)
	}
	for _, g := range p.Halo {
		if g < end { // of a worker before this one
			g += core
		}
		place = append(place, g)
	}
	return place
}
