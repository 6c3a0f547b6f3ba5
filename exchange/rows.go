package exchange

import (
	"starling/nn"
	"starling/tensor"
	"starling/wire"
)

// Rows moves every row of a halo in every pass: one message per peer, layer and direction.
// It is the policy of exact strategies, and what other policies move rows with.
type Rows struct {
	W        *Worker
	Epoch    int
	Training bool

	batch     int
	failure   error
	residuals map[Tag]tensor.Matrix  // what rounding took: see codec.go
	bits      map[forwardKey]*sparse // whose gradients are to come: see sparse.go
	lent      []loan                 // rows that others may still read: see link.go
}

// NewRows moves rows for a worker.
func NewRows(w *Worker) *Rows { return &Rows{W: w} }

func (r *Rows) Begin(epoch, batch int, training bool) {
	r.Epoch, r.batch, r.Training = epoch, batch, training
}

func (r *Rows) Err() error    { return r.failure }
func (r *Rows) Finish() error { return r.failure }

// Fail keeps the first failure; the rows computed after it mean nothing.
func (r *Rows) Fail(err error) {
	if r.failure == nil {
		r.failure = err
	}
}

// Exchange gathers the rows that peers need and sends them, and receives halo rows: into
// holds them when the arrival has been waited for.
func (r *Rows) Exchange(t Tag, h *Halo, into, src tensor.Matrix) Arrival {
	if h.Relay != nil {
		return r.relayed(t, h, into, src)
	}
	return r.direct(t, h, into, src)
}

// direct is the exchange of rows with the workers that compute them.
func (r *Rows) direct(t Tag, h *Halo, into, src tensor.Matrix) *Transfer {
	link := r.linkFor(t, src.Type(), src.Cols)
	x := r.Transfer(t, into, r.outgoing(link, src.Type(), int(h.SendPtr[len(h.SendPtr)-1]), src.Cols))
	if x.slots, x.link = h.SendSlots, link; link != nil {
		x.loan.rows = x.Out
	} else {
		x.owned = append(x.owned, x.Out)
	}
	x.Receive(h.HaloPtr)
	r.W.Dev.GatherRows(x.Out, src, h.Send)
	x.Send(h.SendPtr)
	return x
}

// Reverse sends the gradients of halo rows to the owners of these. When the arrival has
// been waited for, those that peers sent have been added to dst, the gradients of local
// rows.
func (r *Rows) Reverse(t Tag, h *Halo, grads, dst tensor.Matrix) Arrival {
	x := r.BeginReverse(t, h, grads, func(theirs tensor.Matrix) { r.AddReturned(h, dst, theirs) })
	x.Leave()
	return x
}

// BeginReverse is a reverse exchange whose gradients use is called with when they have
// arrived, in the order of h.Send. It has left already, unless rows were relayed: then it
// waits for gradients of the other workers of the server, and Leave lets it go.
func (r *Rows) BeginReverse(t Tag, h *Halo, grads tensor.Matrix, use func(theirs tensor.Matrix)) *Reversal {
	if h.Relay != nil {
		return r.relayedReverse(t, h, grads, use)
	}
	x := &Reversal{Transfer: r.takeBack(t, h, grads, use), haloPtr: h.HaloPtr}
	x.Leave()
	return x
}

// takeBack receives the gradients of local rows; the gradients of halo rows have not left.
func (r *Rows) takeBack(t Tag, h *Halo, grads tensor.Matrix, use func(theirs tensor.Matrix)) *Transfer {
	x := r.Transfer(t, r.W.Dev.Scratch(grads.Type(), int(h.SendPtr[len(h.SendPtr)-1]), grads.Cols), grads)
	x.slots, x.owned, x.link = h.HaloSlots, append(x.owned, x.In), r.linkFor(t, grads.Type(), grads.Cols)
	x.Receive(h.SendPtr)
	x.Arrived = func() { use(x.In) }
	return x
}

// AddReturned adds the gradients that peers computed for local rows, in rank order: theirs are by peer, and rows are
// added in the order they are listed in.
func (r *Rows) AddReturned(h *Halo, dst, theirs tensor.Matrix) {
	if n := int(h.SendPtr[len(h.SendPtr)-1]); n > 0 {
		r.W.Dev.ScatterAdd(dst, theirs.Slice(0, n), h.Send.Slice(0, n))
	}
}

// Reversal is gradients of halo rows on their way to the owners of these.
type Reversal struct {
	*Transfer
	haloPtr []int64
	inside  *Transfer // gradients of relayed rows, which are added first; nil: none
	left    bool
}

// Ready reports whether Leave would return at once.
func (x *Reversal) Ready() bool { return x.left || x.inside == nil || allDone(x.inside.arriving) }

// Leave lets the gradients go, once the gradients of relayed rows have been added.
func (x *Reversal) Leave() {
	if x.left {
		return
	}
	x.left = true
	if x.inside != nil {
		x.inside.Wait()
	}
	x.Send(x.haloPtr)
}

func (x *Reversal) Wait() {
	x.Leave()
	x.Transfer.Wait()
}

func (x *Reversal) Done() {
	if x.inside != nil {
		x.inside.Done()
	}
	x.Transfer.Done()
}

// RowsTo is how many rows leave for a peer.
func (r *Rows) RowsTo(t Tag, h *Halo, peer, _ int, _ bool) int64 {
	ptr := h.SendPtr
	if t.Backward {
		ptr = h.HaloPtr
	}
	n := ptr[peer+1] - ptr[peer]
	if h.Relay != nil {
		n += r.RowsTo(t, h.Relay.halo(), peer, 0, true)
	}
	return n
}

// RowBytes is what a row takes on the wire.
func (r *Rows) RowBytes(t Tag, numbers tensor.DType, cols int, training bool) int64 {
	if r.skipsZeros(t) {
		return int64((&sparse{known: t.Backward}).most(numbers, cols))
	}
	if f := r.codec(t, numbers, cols, training); f != tensor.Unpacked {
		return int64(f.RowBytes(cols))
	}
	return int64(numbers.Size() * cols)
}

// Save lists the residuals.
func (r *Rows) Save() []SavedRows { return SavedByName(r.residuals, residualName) }

// EpochBytes is what a halo row of a layer takes on the wire in an epoch, both ways.
func (r *Rows) EpochBytes(t nn.Traffic) (bytes int64) {
	for _, w := range []struct {
		nn.Width
		Tag
	}{{t.Forward, Tag{Layer: t.Layer, Kind: wire.Activation}}, {t.Backward,
		Tag{Layer: t.Layer, Backward: true, Kind: wire.Gradient}}} {
		if w.Width.Rows > 0 {
			bytes += r.RowBytes(w.Tag, r.W.Dev.RowType(r.W.Rows), w.Width.Rows, true)
		}
		if w.Tag.Scores = true; w.Width.Scores > 0 {
			bytes += r.RowBytes(w.Tag, r.W.Dev.Type(), w.Width.Scores, true)
		}
	}
	return bytes
}
