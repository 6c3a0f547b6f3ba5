package collective

import (
	"context"
	"fmt"
	"math/bits"
	"sync"

	"starling/coflow"
	"starling/wire"
)

// Error is a collective that failed on this rank. What it did not wait for is
// still under way: its buffers belong to the wire until the endpoint is closed,
// and the other ranks wait for messages that will not come. So the caller tells
// them why, with wire.Endpoint's Fail.
type Error struct {
	Op     string // such as "all-reduce (ring) of 4096 bytes"
	Rank   int
	Coflow coflow.ID
	Err    error
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%v): %v", e.Op, e.Coflow, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// call is one collective under way: a machine, and what carries its messages.
type call struct {
	machine
	name    opName
	id      coflow.ID
	kind    wire.Kind
	number  uint32 // among the calls of its coflow
	pending []*wire.Pending
	scratch []byte
	sizes   []int // of buffers, for calls that need a list
}

// opName is the name of a call for errors, put together only when there is one.
type opName struct {
	op    string
	alg   Algorithm // Auto: none
	bytes int
}

func (o opName) String() string {
	if o.alg != Auto {
		return fmt.Sprintf("%s (%v) of %d bytes", o.op, o.alg, o.bytes)
	}
	return fmt.Sprintf("%s of %d bytes", o.op, o.bytes)
}

// pool keeps what calls used, for the next ones.
type pool struct {
	mu struct {
		sync.Mutex
		calls   []*call
		scratch [64][][]byte // by the logarithm of its size
	}
}

// scratchKept is how much scratch memory of one size is kept for later calls, in
// bytes, or one buffer if that is more.
const scratchKept = 16 << 20

// take is a call with an empty program.
func (l *pool) take() *call {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := len(l.mu.calls) - 1; k >= 0 {
		c := l.mu.calls[k]
		l.mu.calls = l.mu.calls[:k]
		return c
	}
	return &call{}
}

// scratch is memory, aligned for any number.
func (l *pool) scratch(bytes int) []byte {
	if bytes == 0 {
		return nil
	}
	class := bits.Len(uint(bytes - 1))
	l.mu.Lock()
	defer l.mu.Unlock()
	if free := l.mu.scratch[class]; len(free) > 0 {
		k := len(free) - 1
		l.mu.scratch[class] = free[:k]
		return free[k][:bytes]
	}
	return newRoom(1 << class)[:bytes]
}

// give takes back a call that has ended well, and its scratch memory.
func (l *pool) give(c *call) {
	clear(c.bufs)
	clear(c.pending)
	c.bufs, c.pending = c.bufs[:0], c.pending[:0]
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.scratch != nil {
		class := bits.Len(uint(cap(c.scratch) - 1))
		if free := l.mu.scratch[class]; len(free) == 0 || len(free)<<class < scratchKept {
			l.mu.scratch[class] = append(free, c.scratch)
		}
		c.scratch = nil
	}
	l.mu.calls = append(l.mu.calls, c)
}

// load makes a call whose program is written ready to run.
func (c *Comm) load(l *call) {
	l.machine.load()
	if l.need > 0 {
		l.scratch = c.pool.scratch(l.need)
		l.bufs = append(l.bufs, l.scratch)
	}
	if cap(l.pending) < int(l.ops) {
		l.pending = make([]*wire.Pending, l.ops)
	}
	l.pending = l.pending[:l.ops]
}

// post carries out what the machine wants until it waits, for the message it
// returns, or has ended, with none.
func (c *Comm) post(l *call) int32 {
	for {
		in := l.next()
		switch in.verb {
		case send:
			l.pending[in.op] = c.ep.Send(int(in.peer), l.key(in.nth), l.kind, l.bytes(in.a))
		case recv:
			l.pending[in.op] = c.ep.Recv(int(in.peer), l.key(in.nth), l.kind, l.bytes(in.a))
		case recvAdd:
			l.pending[in.op] = c.ep.RecvAdd(int(in.peer), l.key(in.nth), l.kind, l.bytes(in.a), l.sum)
		case wait:
			return in.op
		case end:
			return none
		}
	}
}

func (l *call) key(nth uint32) wire.Key {
	return wire.Key{Coflow: l.id, Step: step(l.number, nth)}
}

// drive runs a call to its end.
func (c *Comm) drive(ctx context.Context, l *call) error {
	for op := c.post(l); op != none; op = c.post(l) {
		if err := l.pending[op].Wait(ctx); err != nil {
			return &Error{Op: l.name.String(), Rank: c.ep.Rank(), Coflow: l.id, Err: err}
		}
		l.finish(op)
	}
	c.pool.give(l)
	return nil
}

// Handle is a collective that was started.
type Handle struct {
	comm *Comm
	// Where a goroutine drives the rest:
	stop context.CancelCauseFunc
	done chan struct{}
	// Where nothing is left but to wait, and the waiters do it:
	turn sync.Mutex
	rest *call
	err  error
}

// start posts what it can, and leaves the rest to a goroutine that ends when the
// collective does, or fails. Where nothing is left but to wait, as in an
// all-to-all, the goroutine that calls Wait does that, and there is no goroutine.
func (c *Comm) start(ctx context.Context, l *call) *Handle {
	h := &Handle{comm: c}
	switch {
	case c.post(l) == none:
		c.pool.give(l)
	case l.onlyWaits():
		h.rest = l
		for _, p := range l.pending {
			p.Poll()
		}
	default:
		ctx, h.stop = context.WithCancelCause(ctx)
		h.done = make(chan struct{})
		go func() {
			h.err = c.drive(ctx, l)
			h.stop(nil)
			close(h.done)
		}()
	}
	return h
}

// failed is a handle of a call that could not begin.
func failed(err error) *Handle { return &Handle{err: err} }

// Wait returns when the collective has ended. Its buffers may be used then, if
// there is no error. When ctx ends before it, the collective has failed on this
// rank, for good. Wait may be called more than once.
func (h *Handle) Wait(ctx context.Context) error {
	if h.done != nil {
		select {
		case <-h.done:
		case <-ctx.Done():
			h.stop(context.Cause(ctx))
			<-h.done
		}
		return h.err
	}
	h.turn.Lock()
	defer h.turn.Unlock()
	if h.rest != nil {
		h.err = h.comm.drive(ctx, h.rest)
		h.rest = nil
	}
	return h.err
}
