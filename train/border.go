package train

import (
	"starling/graph"
	"starling/nn"
	"starling/partition"
	"starling/tensor"
)

// border is what one layer of a worker needs from elsewhere, and gives. With z the
// rows that the layer sends,
//
//	y = A_near·z_own + A_far·z_far        z_own [src, w], z_far [far, w], y [dst, w]
//
// The far rows are other workers', grouped by worker. Rows of y are the first of
// z_own's: the vertices of this worker, and after them copies of others' that the
// worker computes itself, if its strategy has any.
type border struct {
	dst, src        int
	near, far, both *nn.Topology // dst←own, dst←far, dst←own and far
	ids             tensor.Index // vertex ids of own and far rows

	send    tensor.Index // own rows that peers need, by peer: sendPtr[q] to sendPtr[q+1]
	sendPtr []int64
	farPtr  []int64 // far rows, by peer
	relay   *relay  // far rows after those; nil: there are none

	sendSlots, farSlots     *slots // of a border that is a part of another
	sendHolders, farHolders []int  // who computes the rows, where others pass them on
}

// farRows is the number of rows that come from peers.
func (b *border) farRows() int {
	n := b.straightRows()
	if b.relay != nil {
		n += b.relay.border().straightRows()
	}
	return n
}

// straightRows is the number of those that come straight from whoever computes them.
func (b *border) straightRows() int { return int(b.farPtr[len(b.farPtr)-1]) }

// lists are the parts of a border that need no device.
type lists struct {
	in      *graph.CSR  // in-edges of the dst rows, from own rows and after them far ones
	src     int         // own rows
	degrees *nn.Degrees // of own and far rows, in the whole graph
	rows    *nn.Degrees // that dst rows are scaled by; nil: the same
	ids     []uint32    // of own and far rows
	far     []uint32    // far rows by their numbers in the partition
	send    []uint32
	sendPtr []int64
	farPtr  []int64
	relay   *relayLists // or nil
}

func newBorder(dev tensor.Device, l lists) *border {
	b := &border{dst: l.in.Nodes(), src: l.src, send: dev.Indices(l.send), sendPtr: l.sendPtr, farPtr: l.farPtr, ids: dev.Indices(l.ids)}
	if r := l.relay; r != nil && len(r.send)+int(r.farPtr[len(r.farPtr)-1]) > 0 {
		b.relay = &relay{rows: r.send, send: dev.Indices(r.send), sendPtr: r.sendPtr, farPtr: r.farPtr, sendHolders: r.sendHolders, farHolders: r.farHolders}
	}
	all := l.src + b.farRows()
	rows, own, far := l.degrees.Slice(0, b.dst), l.degrees.Slice(0, l.src), l.degrees.Slice(l.src, all)
	switch {
	case l.rows != nil:
		rows = l.rows
	case b.dst == b.src:
		rows = own // one scale serves both
	}
	if l.in.Weights != nil {
		rows = weighed(l.in, rows)
	}
	near, beyond := splitByColumn(l.in, l.src)
	b.near = nn.NewPart(dev, near, l.src, rows, own, true)
	b.far = nn.NewPart(dev, beyond, b.farRows(), rows, far, false)
	b.both = nn.NewPart(dev, l.in, all, rows, l.degrees, true)
	return b
}

// haloLists are those of a partition: a worker's own rows are its core, and far rows
// its halo.
func haloLists(p *partition.Part) lists {
	core, all := int(p.Meta.Core), int(p.Meta.Core+p.Meta.Halo)
	return lists{in: p.In, src: core, degrees: degrees(p, all), ids: p.IDs[:all], far: p.Halo, send: p.Send, sendPtr: p.SendPtr, farPtr: p.HaloPtr}
}

// degrees are those of the first n local vertices in the whole graph.
func degrees(p *partition.Part, n int) *nn.Degrees {
	d := &nn.Degrees{All: make([]float64, n)}
	for i := range d.All {
		d.All[i] = float64(p.Degrees[i])
	}
	if p.GCNDegrees != nil {
		d.NoLoops = p.GCNDegrees[:n]
	}
	return d
}

// weighed are degrees of rows whose in-edges weigh: a mean is over weights.
func weighed(in *graph.CSR, d *nn.Degrees) *nn.Degrees {
	out := &nn.Degrees{All: make([]float64, in.Nodes()), NoLoops: d.NoLoops}
	for v := range out.All {
		for _, w := range in.Weights[in.Indptr[v]:in.Indptr[v+1]] {
			out.All[v] += float64(w)
		}
	}
	return out
}

// splitByColumn separates the edges from columns below cut and from the others,
// which are numbered from 0 again.
func splitByColumn(g *graph.CSR, cut int) (near, far *graph.CSR) {
	n := g.Nodes()
	near, far = &graph.CSR{Indptr: make([]int64, n+1)}, &graph.CSR{Indptr: make([]int64, n+1)}
	for v := range n {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			to, u := near, g.Indices[e]
			if int(u) >= cut {
				to, u = far, u-uint32(cut)
			}
			to.Indices = append(to.Indices, u)
			if g.Weights != nil {
				to.Weights = append(to.Weights, g.Weights[e])
			}
		}
		near.Indptr[v+1], far.Indptr[v+1] = int64(len(near.Indices)), int64(len(far.Indices))
	}
	return near, far
}
