package collective

import (
	"context"
	"fmt"

	"starling/coflow"
	"starling/wire"
)

// Comm makes collectives over an endpoint. Its methods may be called from any
// goroutine, also several at once, if calls of one coflow are made in the same
// order on all ranks. A coflow that is used here is not also used on the endpoint
// directly.
//
// Blocking calls return when this rank's part is done. Calls that begin with Start
// return at once, with a Handle to wait on later; until then the buffers belong to
// the call. A wait without a deadline ends after the endpoint's timeout.
type Comm struct {
	ep    wire.Endpoint
	steps counters
	pool  pool
}

// New is a Comm over an endpoint.
func New(ep wire.Endpoint) *Comm { return &Comm{ep: ep} }

// Rank of this worker.
func (c *Comm) Rank() int { return c.ep.Rank() }

// Size is how many workers there are.
func (c *Comm) Size() int { return c.ep.Size() }

// Endpoint is what the messages go over.
func (c *Comm) Endpoint() wire.Endpoint { return c.ep }

// begin is a new call of a coflow.
func (c *Comm) begin(name opName, id coflow.ID, kind wire.Kind) (*call, error) {
	number, err := c.steps.take(id, 1)
	if err != nil {
		return nil, &Error{Op: name.String(), Rank: c.ep.Rank(), Coflow: id, Err: err}
	}
	return c.numbered(number, name, id, kind), nil
}

// numbered is a call whose number was taken before.
func (c *Comm) numbered(number uint32, name opName, id coflow.ID, kind wire.Kind) *call {
	l := c.pool.take()
	l.reset(c.ep.Rank(), c.ep.Size())
	l.name, l.id, l.kind, l.number = name, id, kind, number
	return l
}

// runOrFail drives a call that could begin.
func (c *Comm) runOrFail(ctx context.Context, l *call, err error) error {
	if err != nil {
		return err
	}
	return c.drive(ctx, l)
}

// startOrFail starts a call that could begin.
func (c *Comm) startOrFail(ctx context.Context, l *call, err error) *Handle {
	if err != nil {
		return failed(err)
	}
	return c.start(ctx, l)
}

// Barrier returns when all ranks have called it.
func (c *Comm) Barrier(ctx context.Context, id coflow.ID) error {
	l, err := c.begin(opName{op: "barrier"}, id, wire.Control)
	if err != nil {
		return err
	}
	l.barrier()
	l.bufs = append(l.bufs, nil)
	c.load(l)
	return c.drive(ctx, l)
}

// Broadcast fills buf on all ranks with that of the root. All have the same length.
func (c *Comm) Broadcast(ctx context.Context, id coflow.ID, kind wire.Kind, root int, buf []byte) error {
	l, err := c.broadcastCall(id, kind, root, buf)
	return c.runOrFail(ctx, l, err)
}

func (c *Comm) broadcastCall(id coflow.ID, kind wire.Kind, root int, buf []byte) (*call, error) {
	name := opName{op: "broadcast", bytes: len(buf)}
	if root < 0 || root >= c.Size() {
		return nil, c.mistake(name, id, "root is rank %d, expected 0 to %d", root, c.Size()-1)
	}
	l, err := c.begin(name, id, kind)
	if err == nil {
		l.broadcast(root, len(buf))
		l.bufs = append(l.bufs, buf)
		c.load(l)
	}
	return l, err
}

// AllGather fills blocks[r], on all ranks, with what rank r has in its blocks[r].
// Blocks may differ in size, but all ranks give the same sizes.
func (c *Comm) AllGather(ctx context.Context, id coflow.ID, kind wire.Kind, blocks [][]byte) error {
	l, err := c.gatherCall(id, kind, blocks)
	return c.runOrFail(ctx, l, err)
}

// StartAllGather is AllGather, to be waited for later.
func (c *Comm) StartAllGather(ctx context.Context, id coflow.ID, kind wire.Kind, blocks [][]byte) *Handle {
	l, err := c.gatherCall(id, kind, blocks)
	return c.startOrFail(ctx, l, err)
}

func (c *Comm) gatherCall(id coflow.ID, kind wire.Kind, blocks [][]byte) (*call, error) {
	name := opName{op: "all-gather", bytes: totalBytes(blocks)}
	if len(blocks) != c.Size() {
		return nil, c.mistake(name, id, "there are %d blocks, expected one for each of %d ranks", len(blocks), c.Size())
	}
	l, err := c.begin(name, id, kind)
	if err == nil {
		l.sizes = lengths(l.sizes[:0], blocks)
		l.allGather(l.sizes)
		l.bufs = append(l.bufs, blocks...)
		c.load(l)
	}
	return l, err
}

// AllToAll sends send[q] to every rank q, and fills recv[q] with what q sends here.
// Sizes may all differ, if the two ends of a pair agree; empty ones do not travel.
func (c *Comm) AllToAll(ctx context.Context, id coflow.ID, kind wire.Kind, send, recv [][]byte) error {
	l, err := c.allToAllCall(id, kind, send, recv)
	return c.runOrFail(ctx, l, err)
}

// StartAllToAll is AllToAll, to be waited for later.
func (c *Comm) StartAllToAll(ctx context.Context, id coflow.ID, kind wire.Kind, send, recv [][]byte) *Handle {
	l, err := c.allToAllCall(id, kind, send, recv)
	return c.startOrFail(ctx, l, err)
}

func (c *Comm) allToAllCall(id coflow.ID, kind wire.Kind, send, recv [][]byte) (*call, error) {
	name := opName{op: "all-to-all", bytes: totalBytes(send)}
	n, r := c.Size(), c.Rank()
	switch {
	case len(send) != n || len(recv) != n:
		return nil, c.mistake(name, id, "there are %d buffers to send and %d to receive, expected one for each of "+
			"%d ranks", len(send), len(recv), n)
	case len(send[r]) != len(recv[r]):
		return nil, c.mistake(name, id, "this rank sends itself %d bytes and expects %d", len(send[r]), len(recv[r]))
	}
	l, err := c.begin(name, id, kind)
	if err == nil {
		l.sizes = lengths(lengths(l.sizes[:0], send), recv)
		l.allToAll(l.sizes[:n], l.sizes[n:])
		l.bufs = append(append(l.bufs, send...), recv...)
		c.load(l)
	}
	return l, err
}

// mistake is an error of a caller.
func (c *Comm) mistake(name opName, id coflow.ID, format string, args ...any) error {
	return &Error{Op: name.String(), Rank: c.Rank(), Coflow: id, Err: fmt.Errorf(format, args...)}
}

func lengths(sizes []int, bufs [][]byte) []int {
	for _, b := range bufs {
		sizes = append(sizes, len(b))
	}
	return sizes
}

func totalBytes(bufs [][]byte) (sum int) {
	for _, b := range bufs {
		sum += len(b)
	}
	return sum
}
