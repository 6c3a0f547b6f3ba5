package wire

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"starling/coflow"
	"starling/wire/calls"
)

// endpointCalls are the calls of one endpoint, in both directions; package calls has their protocol.
type endpointCalls struct {
	endpoint *endpoint
	life     context.Context // of all handlers
	endLife  context.CancelCauseFunc
	started  atomic.Uint32 // goroutines of handlers, so far

	mu struct {
		sync.Mutex
		failed   error
		peers    map[int]*callPeer
		services map[string]*service
		numbered []*service // by number, from 1
		handlers int        // that run
		idle     chan struct{}
	}
}

// callPeer is one direction or both of the calls with a peer.
type callPeer struct {
	gone error // nothing more comes from it

	// Calls to the peer:
	remotes map[string]*remote
	caller  calls.Caller[Reply]

	// Calls from the peer:
	server calls.Server[service, inbound]
	loads  map[*service]*load
	wants  map[string]bool
}

// load is what a peer makes of a service.
type load struct {
	underWay int
	bytes    int64      // of responses that have not left, or may come
	parked   []*inbound // requests that wait for those to leave
}

// of is the load of a service.
func (p *callPeer) of(s *service) *load {
	l := p.loads[s]
	if l == nil {
		l = &load{}
		p.loads[s] = l
	}
	return l
}

func newCalls(e *endpoint) *endpointCalls {
	c := &endpointCalls{endpoint: e}
	c.life, c.endLife = context.WithCancelCause(context.Background())
	c.mu.peers, c.mu.services = map[int]*callPeer{}, map[string]*service{}
	return c
}

// peer is what is known of a peer.
// REQUIRES: mu held.
func (c *endpointCalls) peer(rank int) *callPeer {
	p := c.mu.peers[rank]
	if p == nil {
		p = &callPeer{remotes: map[string]*remote{}, loads: map[*service]*load{}, wants: map[string]bool{}}
		c.mu.peers[rank] = p
	}
	return p
}

// sendControl sends a frame without a body.
func (c *endpointCalls) sendControl(to int, h Header, text []byte) {
	h.From, h.To, h.Length = c.endpoint.rank, to, int64(len(text))
	c.endpoint.carry(&Message{head: h, payload: text})
}

// control takes in a frame of calls without a body. An error ends the endpoint.
func (c *endpointCalls) control(h *Header, text []byte) error {
	var err error
	switch h.Frame {
	case FrameWant:
		err = c.wanted(h.From, string(text))
	case FrameServed:
		err = c.served(h, text)
	case FrameCancel:
		err = c.cancelled(h.From, h.Key.Step)
	case FrameRefusal:
		err = c.refused(h, text)
	default:
		err = fmt.Errorf("%w: of type %d", ErrFrame, h.Frame)
	}
	return c.violation(h.From, err)
}

// violation is the error of a peer that does not keep to the protocol.
func (c *endpointCalls) violation(peer int, err error) error {
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, ErrFrame):
		err = badCall("%w", err)
	}
	return c.endpoint.lost(peer, err)
}

// badCall is a violation.
func badCall(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrFrame}, args...)...)
}

// fail ends all calls, and the handlers' contexts.
func (c *endpointCalls) fail(cause error) {
	c.mu.Lock()
	c.mu.failed = cause
	var waiting []*Reply
	var requests []*inbound
	for _, p := range c.mu.peers {
		for _, r := range p.remotes {
			waiting = append(waiting, r.waiting.clear()...)
		}
		for _, l := range p.loads {
			requests = append(requests, l.parked...)
			l.parked = nil
		}
	}
	for _, s := range c.mu.numbered {
		requests = append(requests, s.ready.clear()...)
	}
	c.mu.Unlock()
	c.endLife(cause)
	for _, r := range waiting {
		r.unsent(cause)
	}
	for _, in := range requests {
		in.free(cause)
	}
}

// endPeer ends the calls with a peer from which nothing more comes.
func (c *endpointCalls) endPeer(peer int, cause error) {
	c.mu.Lock()
	p := c.peer(peer)
	p.gone = cause
	var waiting []*Reply
	for _, r := range p.remotes {
		waiting = append(waiting, r.waiting.clear()...)
	}
	var requests []*inbound
	for in := range p.server.Requests() {
		if c.unqueue(in) {
			requests = append(requests, in)
		} else {
			in.cancel(cause)
		}
	}
	c.mu.Unlock()
	for _, r := range waiting {
		r.unsent(cause)
	}
	for _, in := range requests {
		in.free(cause)
	}
}

// wait returns when no handler runs any more, or after a while.
func (c *endpointCalls) wait() {
	c.mu.Lock()
	idle := c.mu.idle
	if idle == nil && c.mu.handlers > 0 {
		idle = make(chan struct{})
		c.mu.idle = idle
	}
	running := c.mu.handlers > 0
	c.mu.Unlock()
	if !running {
		return
	}
	late, timer := Alarm(c.endpoint.clock, c.endpoint.opt.Linger)
	defer timer.Stop()
	select {
	case <-idle:
	case <-late:
	}
}

// callKey names a request or response among what arrives.
func callKey(number uint32) Key { return Key{Coflow: coflow.ID{}, Step: number} }
