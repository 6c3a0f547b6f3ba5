package train

import (
	"context"

	"starling/coflow"
	"starling/graph"
	"starling/nn"
	"starling/partition"
	"starling/tensor"
	"starling/wire"
)

// Halo is exact full-graph training on many workers. A worker's core vertices
// have in-neighbours elsewhere, its halo. With z the rows a layer sends,
//
//	y = A_near·z_core + A_far·z_halo
//
// the rows z_halo are received from their owners, one message a peer and layer,
// while A_near·z_core is computed. Backwards the gradient of each halo row,
// A_farᵀ·dy, returns to its owner, which adds those of all workers in rank order.
// z_core [core, width], z_halo [halo, width].
//
// An epoch moves, per layer and direction, one row for every (vertex, part that
// needs it): the communication volume of the partition. The sum over constant
// features is computed once, before the first epoch.
type Halo struct {
	dev   tensor.Device
	ctx   context.Context
	part  *partition.Part
	end   wire.Endpoint
	peers Peers

	near, far, both *nn.Topology // core←core, core←halo, core←core and halo
	sends           tensor.Index // core rows that peers need, by peer
	cacheFirst      bool
	cache           map[nn.Reduction]tensor.Matrix

	epoch    int
	training bool
	err      error
}

// NewHalo is the strategy of the worker that holds part.
func NewHalo(ctx context.Context, dev tensor.Device, part *partition.Part, end wire.Endpoint, peers Peers, cacheFirst bool) *Halo {
	h := &Halo{dev: dev, ctx: ctx, part: part, end: end, peers: peers, cacheFirst: cacheFirst,
		sends: dev.Indices(part.Send), cache: map[nn.Reduction]tensor.Matrix{}}
	core := h.core()
	near, far := splitByColumn(part.In, core)
	own, theirs, all := degrees(part, 0, core), degrees(part, core, core+h.halo()), degrees(part, 0, core+h.halo())
	h.near = nn.NewPart(dev, near, core, own, own)
	h.far = nn.NewPart(dev, far, h.halo(), own, theirs)
	h.both = nn.NewPart(dev, part.In, core+h.halo(), own, all)
	return h
}

func (h *Halo) core() int { return int(h.part.Meta.Core) }
func (h *Halo) halo() int { return int(h.part.Meta.Halo) }

// degrees are those of local vertices lo to hi in the whole graph.
func degrees(p *partition.Part, lo, hi int) *nn.Degrees {
	d := &nn.Degrees{All: make([]float64, hi-lo)}
	for i := range d.All {
		d.All[i] = float64(p.Degrees[lo+i])
	}
	if p.GCNDegrees != nil {
		d.NoLoops = p.GCNDegrees[lo:hi]
	}
	return d
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

func (h *Halo) Begin(epoch int, training bool) { h.epoch, h.training = epoch, training }

func (h *Halo) Err() error { return h.err }

// fail keeps the first failure; the rows computed after it mean nothing.
func (h *Halo) fail(err error) {
	if h.err == nil {
		h.err = err
	}
}

func (h *Halo) Rows(int) (dst, src int) { return h.core(), h.core() }

func (h *Halo) Room(int) int { return h.core() + h.halo() }

// The steps of a layer's coflow. Measuring passes are told apart from training ones.
const (
	stepRows uint32 = iota
	stepScores
	stepMeasure // added to the above
)

func (h *Halo) key(layer int, backward bool, step uint32) wire.Key {
	if !h.training {
		step += stepMeasure
	}
	return wire.Key{Step: step, Coflow: coflow.ID{Epoch: uint32(h.epoch), Type: coflow.Rows, Layer: int16(layer), Backward: backward}}
}

func (h *Halo) Sum(layer int, r nn.Reduction, dst, src tensor.Matrix) {
	h.sum(h.key(layer, false, stepRows), wire.Activation, r, dst, src)
}

func (h *Halo) sum(key wire.Key, kind wire.Kind, r nn.Reduction, dst, src tensor.Matrix) {
	rows := h.dev.Scratch(src.Type(), h.halo(), src.Cols)
	x := h.fetch(key, kind, rows, src)
	h.near.Sum(r, dst, src, true, false)
	x.wait(h)
	h.far.Sum(r, dst, rows, false, true)
	x.free(h)
	h.dev.Free(rows)
}

func (h *Halo) SumGrad(layer int, r nn.Reduction, dsrc, ddst tensor.Matrix) {
	rows := h.dev.Scratch(ddst.Type(), h.halo(), ddst.Cols)
	h.far.SumGrad(r, rows, ddst, false)
	x := h.giveBack(h.key(layer, true, stepRows), rows)
	h.near.SumGrad(r, dsrc, ddst, true)
	x.wait(h)
	h.addTheirs(dsrc, x.in)
	x.free(h)
	h.dev.Free(rows)
}

// addTheirs adds the gradients that peers computed for our rows, peer by peer.
func (h *Halo) addTheirs(dst, in tensor.Matrix) {
	for q := range h.end.Size() {
		lo, hi := int(h.part.SendPtr[q]), int(h.part.SendPtr[q+1])
		if lo < hi {
			h.dev.ScatterAdd(dst, in.Slice(lo, hi), h.sends.Slice(lo, hi))
		}
	}
}

func (h *Halo) Constant(r nn.Reduction, src tensor.Matrix) (tensor.Matrix, bool) {
	if !h.cacheFirst {
		return tensor.Matrix{}, false
	}
	sum, ok := h.cache[r]
	if !ok {
		sum = h.dev.Scratch(src.Type(), h.core(), src.Cols)
		key := wire.Key{Step: uint32(len(h.cache)), Coflow: coflow.ID{Type: coflow.Bulk, Layer: -1}}
		h.sum(key, wire.Feature, r, sum, src)
		h.cache[r] = sum
	}
	return sum, true
}

func (h *Halo) Attend(layer int, dst, stat, z, left, right tensor.Matrix, op tensor.Attention) {
	core, all := h.core(), h.core()+h.halo()
	a := h.fetch(h.key(layer, false, stepRows), wire.Activation, z.Slice(core, all), z.Slice(0, core))
	b := h.fetch(h.key(layer, false, stepScores), wire.Activation, left.Slice(core, all), left.Slice(0, core))
	a.wait(h)
	b.wait(h)
	h.both.Attend(dst, stat, z, left, right, h.named(op))
	a.free(h)
	b.free(h)
}

func (h *Halo) AttendGrad(layer int, dz, dleft, dright, z, left, right, stat, dst, ddst tensor.Matrix, op tensor.Attention) {
	core, all := h.core(), h.core()+h.halo()
	h.both.AttendGrad(dz, dleft, dright, z, left, right, stat, dst, ddst, h.named(op))
	a := h.giveBack(h.key(layer, true, stepRows), dz.Slice(core, all))
	b := h.giveBack(h.key(layer, true, stepScores), dleft.Slice(core, all))
	a.wait(h)
	h.addTheirs(dz.Slice(0, core), a.in)
	b.wait(h)
	h.addTheirs(dleft.Slice(0, core), b.in)
	a.free(h)
	b.free(h)
}

// named gives the draws of attention the ids of core and halo.
func (h *Halo) named(op tensor.Attention) tensor.Attention {
	op.SrcIDs = h.dev.Indices(h.part.IDs)
	return op
}

// AddUp adds sums over all workers.
func (h *Halo) AddUp(sums tensor.Matrix) {
	v := make([]float64, sums.Rows*sums.Cols)
	h.dev.Download(v, sums)
	if err := h.peers.AddUp(h.epoch, v); err != nil {
		h.fail(err)
	}
	h.dev.Upload(sums, v)
}

// exchange is one all-to-all of rows under way.
type exchange struct {
	in, out  tensor.Matrix // what is received, what is sent, by peer
	owned    []tensor.Matrix
	arriving []*wire.Pending
	leaving  []*wire.Pending
}

// fetch sends peers the rows of src that they need and receives ours into halo.
func (h *Halo) fetch(key wire.Key, kind wire.Kind, halo, src tensor.Matrix) *exchange {
	x := &exchange{in: halo, out: h.dev.Scratch(src.Type(), len(h.part.Send), src.Cols)}
	x.owned = []tensor.Matrix{x.out}
	x.receive(h, key, kind, h.part.HaloPtr)
	h.dev.GatherRows(x.out, src, h.sends)
	x.send(h, key, kind, h.part.SendPtr)
	return x
}

// giveBack sends the gradients of halo rows to their owners and receives those of ours.
func (h *Halo) giveBack(key wire.Key, halo tensor.Matrix) *exchange {
	x := &exchange{in: h.dev.Scratch(halo.Type(), len(h.part.Send), halo.Cols), out: halo}
	x.owned = []tensor.Matrix{x.in}
	x.receive(h, key, wire.Gradient, h.part.SendPtr)
	x.send(h, key, wire.Gradient, h.part.HaloPtr)
	return x
}

// receive asks each peer for its rows, at ptr[peer] to ptr[peer+1] of in.
func (x *exchange) receive(h *Halo, key wire.Key, kind wire.Kind, ptr []int64) {
	for q := range h.end.Size() {
		if lo, hi := int(ptr[q]), int(ptr[q+1]); lo < hi {
			x.arriving = append(x.arriving, h.end.Recv(q, key, kind, h.dev.Bytes(x.in.Slice(lo, hi))))
		}
	}
}

// send starts with the next rank and goes round, so that not all send to rank 0 first.
func (x *exchange) send(h *Halo, key wire.Key, kind wire.Kind, ptr []int64) {
	n := h.end.Size()
	for i := range n {
		q := (h.end.Rank() + 1 + i) % n
		if lo, hi := int(ptr[q]), int(ptr[q+1]); lo < hi {
			x.leaving = append(x.leaving, h.end.Send(q, key, kind, h.dev.Bytes(x.out.Slice(lo, hi))))
		}
	}
}

// wait returns when all rows have arrived.
func (x *exchange) wait(h *Halo) {
	for _, p := range x.arriving {
		if err := p.Wait(h.ctx); err != nil {
			h.fail(err)
		}
	}
}

// free waits until the rows sent have left and gives buffers back.
func (x *exchange) free(h *Halo) {
	for _, p := range x.leaving {
		if err := p.Wait(h.ctx); err != nil {
			h.fail(err)
		}
	}
	for _, m := range x.owned {
		h.dev.Free(m)
	}
}
