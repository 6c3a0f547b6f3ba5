package wire

import (
	"context"
	"sync/atomic"
	"time"
)

// Pending is a message on its way.
type Pending struct {
	ending atomic.Bool
	// done is nil until somebody asks for the channel: most waits end in looking, and
	// a channel for each message would cost as much as sending a small one.
	done atomic.Pointer[signal]
	err  error
	at   time.Time
	// bytes is how long a message is that was asked for, once it has come.
	bytes int

	// For the error of who waits for what.
	node *node
	what string
	peer int
	key  Key
	kind Kind
}

type signal struct{ c chan struct{} }

// ended is the signal of everything that is done.
var ended = func() *signal {
	s := &signal{make(chan struct{})}
	close(s.c)
	return s
}()

// Settled is a Pending that is done: of a message that exists on paper only.
func Settled() *Pending {
	p := &Pending{at: time.Now()}
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

// At is when a Pending that is done ended.
func (p *Pending) At() time.Time { return p.at }

// Bytes is how long the message is of a receive that is done and has not failed.
func (p *Pending) Bytes() int { return p.bytes }

// Peer is the rank that the message goes to or comes from.
func (p *Pending) Peer() int { return p.peer }

// isDone is Done without waiting.
func (p *Pending) isDone() bool { return p.done.Load() == ended }

// Wait returns when the message has left or arrived. No wait is for ever: where
// ctx has no deadline the endpoint's timeout holds. The buffer of a wait that
// timed out still belongs to the wire, until the endpoint is closed.
func (p *Pending) Wait(ctx context.Context) error {
	if p.isDone() || p.node.spin(sought{one: p}) {
		return p.err
	}
	start := time.Now()
	p.node.waits.begin(p, start)
	defer p.node.waits.end(p)
	var late <-chan time.Time
	if _, ok := ctx.Deadline(); !ok {
		timer := time.NewTimer(p.node.opt.Timeout)
		defer timer.Stop()
		late = timer.C
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

// Poll takes in what lies ready, as far as that takes no time. It is for who will not
// wait soon: who waits does more.
func (p *Pending) Poll() {
	if p.node.hasten != nil && !p.isDone() {
		p.node.hasten(p.peer)
	}
}

// timeout is the error of a wait that began at start and was in vain.
func (p *Pending) timeout(start time.Time) error {
	return &Timeout{Rank: p.node.rank, Peer: p.peer, PeerAddr: p.node.addr(p.peer), What: p.what, Key: p.key, Kind: p.kind, Waited: time.Since(start)}
}

// finish ends the wait. Only the first call counts.
func (p *Pending) finish(err error) {
	if !p.ending.CompareAndSwap(false, true) {
		return
	}
	p.err, p.at = err, time.Now()
	if s := p.done.Swap(ended); s != nil {
		close(s.c)
	}
}
