package exchange

import (
	"slices"
	"time"

	"starling/event"
	"starling/tensor"
	"starling/wire"
)

// Arrival is an exchange in flight. Wait returns when its rows are there, Done when its
// buffers are free.
type Arrival interface {
	Wait()
	Done()
}

// Transfer is one all-to-all of rows in flight. It belongs to the pass it began in.
type Transfer struct {
	Tag     Tag
	In, Out tensor.Matrix // what is received, what is sent, by peer
	Arrived func()        // is called when all of In is there

	rows     *Rows
	key      wire.Key
	training bool
	slots    *Slots // where rows of Out find their residuals; nil: in order
	owned    []tensor.Matrix
	arriving []*wire.Pending
	leaving  []*wire.Pending
	start    time.Time

	// Where rows travel in another form than they are in: see codec.go and sparse.go.
	encodedIn, encodedOut encoding
	sparse                *sparse

	// Where devices read each other's rows: see link.go.
	link    tensor.Linker // nil: they do not
	loan    loan
	fetches []fetch
}

// Transfer begins one. Nothing is received or sent yet.
func (r *Rows) Transfer(t Tag, in, out tensor.Matrix) *Transfer {
	z := r.newSparse(t, in, out)
	return &Transfer{Tag: t, In: in, Out: out, rows: r, key: r.key(t), training: r.Training, sparse: z,
		owned: z.owned(), start: r.W.Now()}
}

// Receive asks each peer for its rows, at ptr[peer] to ptr[peer+1] of In.
func (x *Transfer) Receive(ptr []int64) {
	for q := range x.rows.W.End.Size() {
		if lo, hi := int(ptr[q]), int(ptr[q+1]); lo < hi {
			x.ReceiveFrom(q, lo, hi)
		}
	}
}

// ReceiveFrom asks a peer for rows lo to hi of In.
func (x *Transfer) ReceiveFrom(peer, lo, hi int) {
	if x.linked(peer, lo, hi, x.In) {
		x.receiveRef(peer, lo, hi)
		return
	}
	x.arriving = append(x.arriving, x.Ask(peer, x.key, lo, hi))
}

// Ask asks a peer for rows lo to hi of In, by a key of the caller's.
func (x *Transfer) Ask(peer int, key wire.Key, lo, hi int) *wire.Pending {
	if x.sparse != nil && !x.sparse.known {
		return x.rows.W.End.RecvAtMost(peer, key, x.Tag.Kind, x.inBytes(lo, hi))
	}
	return x.rows.W.End.Recv(peer, key, x.Tag.Kind, x.inBytes(lo, hi))
}

// Send sends each peer its rows, at ptr[peer] to ptr[peer+1] of Out.
func (x *Transfer) Send(ptr []int64) {
	if x.link != nil {
		x.lend(ptr)
	} else if x.sparse == nil && x.Out.HostBytes() == nil {
		x.encode(0, x.Out.Rows) // a device with memory of its own is waited for once
	}
	x.sendAs(ptr, x.Bytes)
}

// sendAs sends rows as given bytes.
func (x *Transfer) sendAs(ptr []int64, bytes func(lo, hi int) []byte) {
	w := x.rows.W
	for _, q := range append(w.Peers(), w.End.Rank()) {
		if lo, hi := int(ptr[q]), int(ptr[q+1]); lo < hi && !x.linked(q, lo, hi, x.Out) {
			x.leaving = append(x.leaving, w.End.Send(q, x.key, x.Tag.Kind, bytes(lo, hi)))
		}
	}
}

// SendTo sends a peer rows lo to hi of Out.
func (x *Transfer) SendTo(peer, lo, hi int) {
	if lo < hi {
		x.leaving = append(x.leaving, x.rows.W.End.Send(peer, x.key, x.Tag.Kind, x.Bytes(lo, hi)))
	}
}

// Bytes are rows lo to hi of Out as they travel.
func (x *Transfer) Bytes(lo, hi int) []byte {
	if x.inPlace(x.Out) {
		return x.Out.Slice(lo, hi).HostBytes()
	}
	return x.encode(lo, hi)
}

// inBytes is where rows lo to hi of In arrive.
func (x *Transfer) inBytes(lo, hi int) []byte {
	if x.inPlace(x.In) {
		return x.In.Slice(lo, hi).HostBytes()
	}
	return x.encodedRows(lo, hi)
}

// inPlace reports whether rows travel as they are, from or to where they are.
func (x *Transfer) inPlace(m tensor.Matrix) bool {
	return x.sparse == nil && x.rows.codec(x.Tag, m.Type(), m.Cols, x.training) == tensor.Unpacked &&
		m.HostBytes() != nil
}

func (x *Transfer) Wait() {
	if err := x.rows.W.await(x.Tag.String(), x.start, x.coming()); err != nil {
		x.rows.Fail(err)
	} else {
		x.fetch()
	}
	x.decodeAll()
	if x.Arrived != nil {
		x.Arrived()
	}
}

// Done waits until the rows sent have left and gives buffers back.
func (x *Transfer) Done() {
	w := x.rows.W
	start, waits := w.Now(), slices.ContainsFunc(x.leaving, func(p *wire.Pending) bool { return !p.IsDone() })
	for _, p := range x.leaving {
		if err := p.Wait(w.Ctx); err != nil {
			x.rows.Fail(err)
		}
	}
	if waits && x.rows.Err() == nil {
		w.Events.On(event.Span{Name: x.Tag.String() + " to leave", Kind: "wait", Start: start, Dur: w.Now().Sub(start)})
	}
	x.keepLoan()
	x.Free()
}

// Free gives buffers back. REQUIRES: all that was sent has left.
func (x *Transfer) Free() {
	for _, m := range x.owned {
		x.rows.W.Dev.Free(m)
	}
}

// allDone reports whether all messages have left or arrived.
func allDone(list []*wire.Pending) bool {
	for _, p := range list {
		select {
		case <-p.Done():
		default:
			return false
		}
	}
	return true
}
