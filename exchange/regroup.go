package exchange

import (
	"time"

	"starling/event"
	"starling/tensor"
	"starling/wire"
)

// Regrouping is blocks of matrices, of rows and of columns, on their way between workers. Any
// block may go to any peer, under a number that both ends know:
//
//	x.Receive(peer, number, into)    as early as can be
//	x.Send(peer, number, block)      until Done the block must not change
//	x.Wait()                         all that was to be received is there
//	x.Done()                         all has left, and buffers are free
//
// Blocks without numbers do not travel. Nothing is rounded.
type Regrouping struct {
	rows     *Rows
	tag      Tag
	key      wire.Key
	start    time.Time
	arriving []landing
	leaving  []leaving
}

// landing is a block that is to come, in the form in which it does.
type landing struct {
	into    tensor.Matrix
	whole   tensor.Matrix // the block without gaps between rows; into itself where that has none
	staging tensor.Matrix // host memory, where whole is not
	bytes   []byte
	pending *wire.Pending
}

// leaving is a block that has been sent, and what it was sent from.
type leaving struct {
	pending *wire.Pending
	owned   []tensor.Matrix
}

// Regroup begins a regrouping of a layer's rows, or of their gradients.
func (r *Rows) Regroup(t Tag) *Regrouping {
	return &Regrouping{rows: r, tag: t, key: r.key(t), start: r.W.Now()}
}

// numbered is the key of a block.
func (x *Regrouping) numbered(number int) wire.Key {
	key := x.key
	key.Step += FreeSteps * uint32(1+number)
	return key
}

// Receive asks a peer for a block.
func (x *Regrouping) Receive(peer, number int, into tensor.Matrix) {
	if into.Rows*into.Cols == 0 {
		return
	}
	dev, l := x.rows.W.Dev, landing{into: into, whole: into}
	if !into.Contiguous() {
		l.whole = dev.Scratch(into.Type(), into.Rows, into.Cols)
	}
	if l.bytes = l.whole.HostBytes(); l.bytes == nil {
		l.staging, l.bytes = dev.Staging(int(into.Bytes()))
	}
	l.pending = x.rows.W.End.Recv(peer, x.numbered(number), x.tag.Kind, l.bytes)
	x.arriving = append(x.arriving, l)
}

// Send sends a peer a block.
func (x *Regrouping) Send(peer, number int, block tensor.Matrix) { x.send(peer, number, block) }

// Give sends a peer a block and frees it when it has left.
func (x *Regrouping) Give(peer, number int, block tensor.Matrix) { x.send(peer, number, block, block) }

func (x *Regrouping) send(peer, number int, block tensor.Matrix, owned ...tensor.Matrix) {
	dev := x.rows.W.Dev
	if block.Rows*block.Cols == 0 {
		for _, m := range owned {
			dev.Free(m)
		}
		return
	}
	if !block.Contiguous() {
		whole := dev.Scratch(block.Type(), block.Rows, block.Cols)
		dev.Copy(whole, block)
		block, owned = whole, append(owned, whole)
	}
	bytes := block.HostBytes()
	if bytes == nil {
		var staging tensor.Matrix
		staging, bytes = dev.Staging(int(block.Bytes()))
		dev.Pack(bytes, block, tensor.Packing{})
		owned = append(owned, staging)
	}
	x.leaving = append(x.leaving, leaving{x.rows.W.End.Send(peer, x.numbered(number), x.tag.Kind, bytes), owned})
}

// Wait returns when all that was asked for is there. It may be asked for more after.
func (x *Regrouping) Wait() {
	w, pending := x.rows.W, make([]*wire.Pending, len(x.arriving))
	for i, l := range x.arriving {
		pending[i] = l.pending
	}
	if err := w.await(x.tag.String(), x.start, pending); err != nil {
		x.rows.Fail(err)
	}
	for _, l := range x.arriving {
		l.land(w.Dev)
	}
	x.arriving = x.arriving[:0]
}

func (l *landing) land(dev tensor.Device) {
	if !l.staging.IsZero() {
		dev.Unpack(l.whole, l.bytes, tensor.Packing{})
		dev.Free(l.staging)
	}
	if !l.into.Contiguous() {
		dev.Copy(l.into, l.whole)
		dev.Free(l.whole)
	}
}

// Reap frees what has left, and waits until at most some blocks are under way.
func (x *Regrouping) Reap(most int) {
	for len(x.leaving) > most || len(x.leaving) > 0 && x.leaving[0].pending.IsDone() {
		l := x.leaving[0]
		x.leaving = x.leaving[1:]
		if err := l.pending.Wait(x.rows.W.Ctx); err != nil {
			x.rows.Fail(err)
		}
		for _, m := range l.owned {
			x.rows.W.Dev.Free(m)
		}
	}
}

// Done waits until all that was sent has left.
func (x *Regrouping) Done() {
	w := x.rows.W
	start, waits := w.Now(), false
	for _, l := range x.leaving {
		waits = waits || !l.pending.IsDone()
	}
	x.Reap(0)
	if waits && x.rows.Err() == nil {
		w.Events.On(event.Span{Name: x.tag.String() + " to leave", Kind: "wait", Start: start, Dur: w.Now().Sub(start)})
	}
}

// Cut is where piece i of n begins, of whole numbers that are divided as evenly as can be.
func Cut(whole, i, n int) int { return int(int64(whole) * int64(i) / int64(n)) }
