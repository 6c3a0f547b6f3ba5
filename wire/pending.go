package wire

import (
	"context"
	"sync/atomic"
	"time"
)

// Pending is a message on its way.
type Pending struct {
	ending atomic.Bool
	// done is nil until Done asks for the channel: most waits end in polling, and
	// a channel for each message would cost as much as sending a small one.
	done atomic.Pointer[signal]
	err  error
	at   time.Time
	// bytes is how long a message is that was asked for, once it has come.
	bytes int

	// For the error of who waits for what.
	endpoint *endpoint
	what     string
	peer     int
	key      Key
	kind     Kind
	call     *Reply // nil: it is a message
}

type signal struct{ c chan struct{} }

// ended is the signal of everything that is done.
var ended = func() *signal {
	s := &signal{make(chan struct{})}
	close(s.c)
	return s
}()

// Settled is a Pending that is done: of a message in a dry run.
func Settled() *Pending {
	p := &Pending{}
	p.ending.Store(true)
	p.done.Store(ended)
	return p
}

// Done is closed when the message has left (its buffer is free) or has arrived, or failed.
func (p *Pending) Done() <-chan struct{} {
	if p.done.Load() == nil {
		p.done.CompareAndSwap(nil, &signal{make(chan struct{})})
	}
	return p.done.Load().c
}

// Err is the failure of a Pending that is done.
func (p *Pending) Err() error { return p.err }

// At is when a Pending that is done ended, on the endpoint's clock.
func (p *Pending) At() time.Time { return p.at }

// Bytes is how long the message is of a receive that is done and has not failed.
func (p *Pending) Bytes() int { return p.bytes }

// Peer is the rank that the message goes to or comes from.
func (p *Pending) Peer() int { return p.peer }

// IsDone is Done without waiting.
func (p *Pending) IsDone() bool { return p.done.Load() == ended }

// Wait returns when the message has left or arrived. No wait is for ever: where
// ctx has no deadline the endpoint's timeout holds. The buffer of a wait that
// timed out still belongs to the wire, until the endpoint is closed.
func (p *Pending) Wait(ctx context.Context) error {
	if p.IsDone() || p.endpoint.poll(Awaited{one: p}) {
		return p.err
	}
	n := p.endpoint
	start := n.clock.Now()
	n.waits.begin(p, start)
	defer n.waits.end(p)
	var late <-chan struct{}
	if _, ok := ctx.Deadline(); !ok {
		due, timer := Alarm(n.clock, n.opt.Timeout)
		defer timer.Stop()
		late = due
	}
	select {
	case <-p.Done():
		return p.err
	case <-late:
	case <-ctx.Done():
		if cause := context.Cause(ctx); cause != context.DeadlineExceeded {
			return cause
		}
	}
	return p.timeout(start)
}

// Poll takes in what is ready, as far as that takes no time. It is for callers that will
// not wait soon: Wait does more.
func (p *Pending) Poll() {
	if p.endpoint.poller != nil && !p.IsDone() {
		p.endpoint.poller.Hasten(p.peer)
	}
}

// timeout is the error of a wait that began at start and was in vain.
func (p *Pending) timeout(start time.Time) error {
	n := p.endpoint
	t := &Timeout{Rank: n.rank, Peer: p.peer, PeerAddr: n.addr(p.peer), What: p.what, Key: p.key, Kind: p.kind,
		Waited: Since(n.clock, start)}
	if p.call != nil {
		t.Service = p.call.call.Service
		t.What, t.detail = p.call.blocked()
	}
	return t
}

// finish ends the wait. Only the first call counts.
func (p *Pending) finish(err error) {
	if !p.ending.CompareAndSwap(false, true) {
		return
	}
	p.err, p.at = err, p.endpoint.clock.Now()
	if s := p.done.Swap(ended); s != nil {
		close(s.c)
	}
}
