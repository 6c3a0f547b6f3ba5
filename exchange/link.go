package exchange

import (
	"slices"

	"starling/tensor"
	"starling/wire"
)

// Rows between workers of one host whose devices can read each other's memory (tensor.Linker: GPUs) do not go through
// the wire. The sender lends them; what travels is a reference, and back a message without bytes when they were read:
//
//	sender    gather into lent memory, wait, send references         …  when all have read: free
//	receiver                                  copy, device to device, then notify the sender
//
// The ledger counts the rows where a message of them would have been counted, and references as overhead. Rows that
// travel in fewer bits, without their zeros or by way of another worker go through the wire as ever.

// loan is rows that others read.
type loan struct {
	rows tensor.Matrix
	read []*wire.Pending // notifications of the readers
}

// fetch is rows lo to hi of In that are read from a peer's device.
type fetch struct {
	peer, lo, hi int
	ref          []byte
	arriving     *wire.Pending
}

// linkFor is what lends the rows of a transfer; nil: they go through the wire. All workers decide alike.
func (r *Rows) linkFor(t Tag, numbers tensor.DType, cols int) tensor.Linker {
	link, ok := r.W.Dev.(tensor.Linker)
	if !ok || r.W.Alone || r.W.Relayed || t.relayed || r.skipsZeros(t) ||
		r.codec(t, numbers, cols, r.Training) != tensor.Unpacked ||
		!slices.ContainsFunc(r.W.Peers(), link.Met) {
		return nil
	}
	return link
}

// readKey is the key of the notification that rows were read.
func readKey(k wire.Key) wire.Key {
	k.Step |= 1 << 31
	return k
}

// linked reports whether rows lo to hi of a side go to or come from a peer's device.
func (x *Transfer) linked(peer, lo, hi int, side tensor.Matrix) bool {
	return x.link != nil && peer != x.rows.W.End.Rank() && x.link.Met(peer) &&
		rowBytes(side, lo, hi) > tensor.ReferenceBytes
}

func rowBytes(m tensor.Matrix, lo, hi int) int { return (hi - lo) * m.Cols * m.Type().Size() }

// outgoing is memory for rows that leave.
func (r *Rows) outgoing(link tensor.Linker, t tensor.DType, rows, cols int) tensor.Matrix {
	if link == nil {
		return r.W.Dev.Scratch(t, rows, cols)
	}
	r.reap()
	return link.Lend(t, rows, cols)
}

// reap frees what has been read. A loan whose notifications failed stays until the device is closed: a peer may still
// be reading it.
func (r *Rows) reap() {
	r.lent = slices.DeleteFunc(r.lent, func(l loan) bool {
		if !allDone(l.read) || slices.ContainsFunc(l.read, func(p *wire.Pending) bool { return p.Err() != nil }) {
			return false
		}
		r.W.Dev.Free(l.rows)
		return true
	})
}

// lend sends references to the peers that read rows of Out by themselves.
func (x *Transfer) lend(ptr []int64) {
	w := x.rows.W
	peers := slices.DeleteFunc(w.Peers(), func(q int) bool {
		return !x.linked(q, int(ptr[q]), int(ptr[q+1]), x.Out)
	})
	if len(peers) == 0 {
		return
	}
	if x.loan.rows.IsZero() { // they are where others cannot read
		x.loan.rows = x.rows.outgoing(x.link, x.Out.Type(), x.Out.Rows, x.Out.Cols)
		w.Dev.Copy(x.loan.rows, x.Out)
	}
	w.Dev.Sync()
	if err := w.Dev.Err(); err != nil {
		x.rows.Fail(err)
		w.End.Fail(err)
		return
	}
	for _, q := range peers {
		lo, hi := int(ptr[q]), int(ptr[q+1])
		x.leaving = append(x.leaving, w.End.Send(q, x.key, x.Tag.Kind, x.link.Refer(x.loan.rows.Slice(lo, hi))))
		w.End.Ledger().Stand(true, x.Tag.Kind, w.End.Link(q), x.key, tensor.ReferenceBytes, rowBytes(x.Out, lo, hi))
		x.loan.read = append(x.loan.read, w.End.Recv(q, readKey(x.key), wire.Control, nil))
	}
}

// receiveRef asks a peer for a reference to rows lo to hi of In.
func (x *Transfer) receiveRef(peer, lo, hi int) {
	f := fetch{peer: peer, lo: lo, hi: hi, ref: make([]byte, tensor.ReferenceBytes)}
	f.arriving = x.rows.W.End.Recv(peer, x.key, x.Tag.Kind, f.ref)
	x.fetches = append(x.fetches, f)
}

// coming is all that a transfer waits for.
func (x *Transfer) coming() []*wire.Pending {
	all := slices.Clone(x.arriving)
	for _, f := range x.fetches {
		all = append(all, f.arriving)
	}
	return all
}

// fetch reads the rows whose references have come, and notifies their owners when they were read.
func (x *Transfer) fetch() {
	if len(x.fetches) == 0 {
		return
	}
	end, key := x.rows.W.End, readKey(x.key)
	for _, f := range x.fetches {
		if err := x.link.Fetch(x.In.Slice(f.lo, f.hi), f.peer, f.ref); err != nil {
			x.rows.Fail(err)
			end.Fail(err)
			return
		}
		end.Ledger().Stand(false, x.Tag.Kind, end.Link(f.peer), x.key, tensor.ReferenceBytes,
			rowBytes(x.In, f.lo, f.hi))
	}
	from := x.fetches
	x.link.After(func() {
		for _, f := range from {
			end.Send(f.peer, key, wire.Control, nil)
		}
	})
}

// keepLoan keeps rows that others still read, to be freed by a later transfer.
func (x *Transfer) keepLoan() {
	if !x.loan.rows.IsZero() {
		x.rows.lent = append(x.rows.lent, x.loan)
		x.loan = loan{}
	}
}
