package exchange

import (
	"sync"

	"starling/graph"
	"starling/nn"
	"starling/partition"
	"starling/tensor"
)

// HaloPlan says which rows one layer of a worker needs from others, and which it gives.
// It is on the host; NewHalo puts it on a device.
type HaloPlan struct {
	In      *graph.CSR  // in-edges of the dst rows, from local rows and after them halo rows
	Src     int         // local rows
	Degrees *nn.Degrees // of local and halo rows, in the whole graph
	Scales  *nn.Degrees // that dst rows are scaled by; nil: the same
	IDs     []uint32    // dataset ids of local and halo rows
	Halo    []uint32    // halo rows by their numbers in the partition
	Send    []uint32    // local rows that peers need: SendPtr[q] to SendPtr[q+1] are peer q's
	SendPtr []int64
	HaloPtr []int64       // halo rows, by the peer that sends them
	Relay   *RelayPlan    // of halo rows after those; nil: no rows are relayed
	Schema  *graph.Schema // of a typed graph; nil: it has no types
}

// PartHalo is the plan of a partition: a worker's local rows are its core vertices.
func PartHalo(p *partition.Part) *HaloPlan {
	core, all := int(p.Meta.Core), int(p.Meta.Core+p.Meta.Halo)
	return &HaloPlan{In: p.In, Src: core, Degrees: degrees(p, all), IDs: p.IDs[:all], Halo: p.Halo, Send: p.Send,
		SendPtr: p.SendPtr, HaloPtr: p.HaloPtr, Schema: p.Book.Schema}
}

// Halo is a HaloPlan on a device. Rows of y are the first of z_local's: the vertices of
// this worker, and after them replicas of others' that it computes itself, if there are any.
type Halo struct {
	Dst, Src int
	Both     *nn.Topology // edges into dst rows, from local and from halo rows; nil: both makes them
	both     func() *nn.Topology
	split    sync.Once
	parted   func() (local, remote *nn.Topology)
	local    *nn.Topology // made by split
	remote   *nn.Topology
	IDs      tensor.Index // vertex ids of local and halo rows

	Send    tensor.Index
	SendPtr []int64
	HaloPtr []int64
	Relay   *Relay

	// SendSlots and HaloSlots are of a halo that is a part of another.
	SendSlots, HaloSlots *Slots
	// sendHolders and haloHolders are who computes the rows, where others relay them.
	sendHolders, haloHolders []int
}

// Slots say which rows of a whole halo a thinner one has, so that a row finds its
// error-feedback residual again.
type Slots struct {
	At tensor.Index
	Of int // rows of the whole
}

// HaloRows is the number of rows that come from peers.
func (h *Halo) HaloRows() int {
	n := h.DirectRows()
	if h.Relay != nil {
		n += h.Relay.halo().DirectRows()
	}
	return n
}

// DirectRows is the number of rows that come directly from the worker that computes them.
func (h *Halo) DirectRows() int { return int(h.HaloPtr[len(h.HaloPtr)-1]) }

// NewHalo puts a plan on a device.
func NewHalo(dev tensor.Device, p *HaloPlan) *Halo {
	h := &Halo{Dst: p.In.Nodes(), Src: p.Src, Send: tensor.Indices(dev, p.Send), SendPtr: p.SendPtr, HaloPtr: p.HaloPtr,
		IDs: tensor.Indices(dev, p.IDs)}
	if r := p.Relay; r != nil && len(r.Send)+int(r.HaloPtr[len(r.HaloPtr)-1]) > 0 {
		h.Relay = &Relay{Rows: r.Send, Send: tensor.Indices(dev, r.Send), SendPtr: r.SendPtr, HaloPtr: r.HaloPtr,
			sendHolders: r.sendHolders, haloHolders: r.haloHolders}
	}
	all := p.Src + h.HaloRows()
	rows, local, remote := p.Degrees.Slice(0, h.Dst), p.Degrees.Slice(0, p.Src), p.Degrees.Slice(p.Src, all)
	switch {
	case p.Scales != nil:
		rows = p.Scales
	case h.Dst == h.Src:
		rows = local // one scale serves both
	}
	rows = p.weighted(rows)
	h.parted = func() (*nn.Topology, *nn.Topology) {
		fromLocal, fromHalo := p.Split()
		return nn.NewPart(dev, fromLocal, p.Src, rows, local, true),
			nn.NewPart(dev, fromHalo, h.HaloRows(), rows, remote, false)
	}
	h.Both = nn.NewPart(dev, p.In, all, rows, p.Degrees, true)
	if p.Schema != nil {
		h.Both.SetTypes(p.Schema, p.Schema.Runs(p.IDs[:h.Dst]), p.Schema.Runs(p.IDs[:all]))
	}
	return h
}

// Local is the edges into dst rows from local rows. A run that only sums over mini-batches, or over all edges at once,
// never needs its own copy of them, so that it is made when it is first asked for.
func (h *Halo) Local() *nn.Topology {
	h.split.Do(h.part)
	return h.local
}

// Remote is the edges into dst rows from halo rows.
func (h *Halo) Remote() *nn.Topology {
	h.split.Do(h.part)
	return h.remote
}

func (h *Halo) part() { h.local, h.remote = h.parted() }

// Thin makes h a halo of some of another's rows, ascending, with its edges from them; ids are of local and halo rows.
// What is sent and received is the caller's to say.
func (h *Halo) Thin(of *Halo, keep []uint32, ids tensor.Index) {
	h.Free()
	h.Dst, h.Src, h.IDs, h.split = of.Dst, of.Src, ids, sync.Once{}
	h.parted = func() (*nn.Topology, *nn.Topology) { return of.Local(), of.Remote().FromColumns(keep) }
	h.both = func() *nn.Topology {
		all := make([]uint32, of.Src, of.Src+len(keep))
		for v := range all {
			all[v] = uint32(v)
		}
		for _, u := range keep {
			all = append(all, u+uint32(of.Src))
		}
		return of.Both.FromColumns(all)
	}
}

// Free gives back the edges of a halo that is a part of another.
func (h *Halo) Free() {
	if h.remote != nil {
		h.remote.Free()
	}
	if h.Both != nil {
		h.Both.Free()
	}
	h.local, h.remote, h.Both = nil, nil, nil
}

// RemoteAt is the edges from halo rows, with these in other places.
func (p *HaloPlan) RemoteAt(dev tensor.Device, at []uint32) *nn.Topology {
	moved := &nn.Degrees{All: make([]float64, len(at))}
	if p.Degrees.NoLoops != nil {
		moved.NoLoops = make([]float64, len(at))
	}
	for i, place := range at {
		moved.All[place] = p.Degrees.All[p.Src+i]
		if p.Degrees.NoLoops != nil {
			moved.NoLoops[place] = p.Degrees.NoLoops[p.Src+i]
		}
	}
	_, remote := p.Split()
	for e, u := range remote.Indices {
		remote.Indices[e] = at[u]
	}
	return nn.NewPart(dev, remote, len(at), p.weighted(p.Degrees.Slice(0, p.Src)), moved, false)
}

// Edges are all edges of a halo in some form.
func (h *Halo) Edges(f nn.Form) *nn.Edges {
	if h.Both == nil {
		h.Both = h.both()
	}
	e := h.Both.Edges(f)
	e.IDs = h.IDs
	return e
}

// degrees are the degrees of the first n local vertices, in the whole graph.
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

// weighted are degrees of rows whose in-edges have weights: a mean is over weights.
func (p *HaloPlan) weighted(d *nn.Degrees) *nn.Degrees {
	in := p.In
	if in.Weights == nil {
		return d
	}
	out := &nn.Degrees{All: make([]float64, in.Nodes()), NoLoops: d.NoLoops}
	for v := range out.All {
		for _, w := range in.Weights[in.Indptr[v]:in.Indptr[v+1]] {
			out.All[v] += float64(w)
		}
	}
	return out
}

// Split separates the edges from local rows and from halo rows, which are numbered from 0
// again.
func (p *HaloPlan) Split() (local, remote *graph.CSR) {
	g, n, near := p.In, p.In.Nodes(), 0
	for _, u := range g.Indices {
		if int(u) < p.Src {
			near++
		}
	}
	list := func(edges int) *graph.CSR {
		out := &graph.CSR{Indptr: make([]int64, n+1), Indices: make([]uint32, 0, edges)}
		if g.Weights != nil {
			out.Weights = make([]float32, 0, edges)
		}
		return out
	}
	local, remote = list(near), list(len(g.Indices)-near)
	for v := range n {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			to, u := local, g.Indices[e]
			if int(u) >= p.Src {
				to, u = remote, u-uint32(p.Src)
			}
			to.Indices = append(to.Indices, u)
			if g.Weights != nil {
				to.Weights = append(to.Weights, g.Weights[e])
			}
		}
		local.Indptr[v+1], remote.Indptr[v+1] = int64(len(local.Indices)), int64(len(remote.Indices))
	}
	return local, remote
}
