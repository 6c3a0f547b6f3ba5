package exchange

import "starling/tensor"

// A row that several workers of a server need from another server travels between the two
// once: to one of those workers, which relays it to the others. The halo rows of a layer
// are then direct ones, by the worker that computes them, and relayed ones, by the worker
// that relays them:
//
//	z_halo = [ z_direct ; z_relayed ]        z_relayed: rows of others' z_direct
//
// In the reverse exchange gradients of relayed rows go to the worker that relayed them,
// which adds them to its own and returns the sum. Each half is a transfer as any other.
type Relay struct {
	Rows             []uint32     // direct rows that are relayed, by peer
	Send             tensor.Index // the same
	SendPtr, HaloPtr []int64
	HaloSlots        *Slots // of a part of another

	sendHolders, haloHolders []int // who computes the rows
}

// RelayPlan is the part of a Relay that needs no device.
type RelayPlan struct {
	Send             []uint32
	SendPtr, HaloPtr []int64

	sendHolders, haloHolders []int
}

// halo is the second half of an exchange as a halo of its own.
func (r *Relay) halo() *Halo {
	return &Halo{Send: r.Send, SendPtr: r.SendPtr, HaloPtr: r.HaloPtr, HaloSlots: r.HaloSlots,
		sendHolders: r.sendHolders, haloHolders: r.haloHolders}
}

// relayed is an exchange in two halves, between servers and inside them.
func (r *Rows) relayed(t Tag, h *Halo, into, src tensor.Matrix) Arrival {
	relay, n := h.Relay, h.DirectRows()
	x := &relaying{first: r.direct(t, h, into.Slice(0, n), src), relay: relay, sent: make(chan struct{})}
	t.relayed = true
	x.second = r.Transfer(t, into.Slice(n, into.Rows), r.W.Dev.Scratch(src.Type(), len(relay.Rows), src.Cols))
	x.second.owned = append(x.second.owned, x.second.Out)
	x.second.Receive(relay.HaloPtr)
	from := x.first.travelling(&x.first.encodedIn, x.first.In)
	to := x.second.travelling(&x.second.encodedOut, x.second.Out)
	go x.forward(from, to)
	return x
}

// relaying is an exchange whose direct rows are relayed when they have arrived.
type relaying struct {
	first, second *Transfer
	relay         *Relay
	sent          chan struct{} // closed when they are
}

// forward relays rows in the form they arrived in, beside what the worker computes
// meanwhile: others wait for them.
func (x *relaying) forward(from, to []byte) {
	defer close(x.sent)
	for _, p := range x.first.arriving {
		if <-p.Done(); p.Err() != nil {
			return // which the worker meets too
		}
	}
	if x.first.sparse != nil {
		x.forwardSparse()
		return
	}
	copyRows(to, from, x.relay.Rows)
	each := len(to) / max(len(x.relay.Rows), 1)
	x.second.sendAs(x.relay.SendPtr, func(lo, hi int) []byte { return to[lo*each : hi*each] })
}

// forwardSparse relays rows that arrived without their zeros.
func (x *relaying) forwardSparse() {
	arrived := make([]sparseRow, x.first.In.Rows)
	for i, p := range x.first.arriving {
		r := &x.first.encodedIn.rows[i]
		if _, err := x.first.bitsIn(r.bytes[:p.Bytes()], r.hi-r.lo); err != nil {
			return // which the worker meets too
		}
		copy(arrived[r.lo:], x.first.arrivedRows(r.lo, r.hi))
	}
	x.second.sendAs(x.relay.SendPtr, func(lo, hi int) []byte {
		return x.second.relaySparse(lo, hi, func(k int) sparseRow { return arrived[x.relay.Rows[k]] })
	})
}

// copyRows fills to with some rows of from.
func copyRows(to, from []byte, rows []uint32) {
	each := len(to) / max(len(rows), 1)
	for i, row := range rows {
		copy(to[i*each:(i+1)*each], from[int(row)*each:])
	}
}

// RelayBytes are rows lo to hi of Out as they leave, which are some rows of In, in the form
// these arrived in: in one message, rows first to last-1.
func (x *Transfer) RelayBytes(lo, hi int, rows []uint32, first, last int) []byte {
	if x.sparse != nil {
		x.travelling(&x.encodedOut, x.Out)
		arrived := x.arrivedRows(first, last)
		return x.relaySparse(lo, hi, func(k int) sparseRow { return arrived[int(rows[k-lo])-first] })
	}
	out := x.travelling(&x.encodedOut, x.Out)
	each := len(out) / x.Out.Rows
	out = out[lo*each : hi*each]
	copyRows(out, x.travelling(&x.encodedIn, x.In), rows)
	return out
}

// SkipsZeros reports whether rows travel without their zeros.
func (x *Transfer) SkipsZeros() bool { return x.sparse != nil }

func (x *relaying) Wait() {
	x.first.Wait()
	<-x.sent
	x.second.Wait()
}

func (x *relaying) Done() {
	x.first.Done()
	x.second.Done()
}

// relayedReverse is a reverse exchange that waits for gradients of relayed rows.
func (r *Rows) relayedReverse(t Tag, h *Halo, grads tensor.Matrix, use func(theirs tensor.Matrix)) *Reversal {
	n, inside := h.DirectRows(), t
	inside.relayed = true
	direct := grads.Slice(0, n)
	second := h.Relay.halo()
	x := &Reversal{Transfer: r.takeBack(t, h, direct, use), haloPtr: h.HaloPtr}
	x.inside = r.takeBack(inside, second, grads.Slice(n, grads.Rows),
		func(theirs tensor.Matrix) { r.AddReturned(second, direct, theirs) })
	x.inside.Send(second.HaloPtr)
	return x
}
