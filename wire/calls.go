package wire

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"

	"starling/coflow"
)

// calls are those of one endpoint, in both directions.
//
// A caller first wants a service; the server answers when it serves it, with the service's
// number and limits. From then on the caller has at most Window calls of it under way;
// further ones wait at the caller, the most urgent first. So whatever callers do, a server
// has memory for every request that arrives, and no reader of a connection ever waits for
// a handler. Every request is answered once, by a response or a refusal, also one that was
// cancelled: that frees the caller's place in the window.
type calls struct {
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
	slots   []callSlot
	free    []int // of the slots

	// Calls from the peer:
	seen  []seenSlot
	loads map[*service]*load
	wants map[string]bool
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

// The number of a call is that of a slot and its generation. A slot has one call at a time,
// so both sides know of every number whether it is of the call under way, of one before,
// or of the next, and the tables are bounded.
const (
	slotBits = 12
	maxCalls = 1 << slotBits // under way per peer
)

// callSlot is the caller's.
type callSlot struct {
	generation uint32
	reply      *Reply // nil: none is under way
}

// seenSlot is the server's.
type seenSlot struct {
	generation uint32
	request    *inbound // nil: it has not come whole, or was answered
	arriving   *service // nil: likewise, or there is the request
	cancelled  bool     // the next, or the one that arrives
}

func newCalls(e *endpoint) *calls {
	c := &calls{endpoint: e}
	c.life, c.endLife = context.WithCancelCause(context.Background())
	c.mu.peers, c.mu.services = map[int]*callPeer{}, map[string]*service{}
	return c
}

// peer is what is known of a peer.
// REQUIRES: mu held.
func (c *calls) peer(rank int) *callPeer {
	p := c.mu.peers[rank]
	if p == nil {
		p = &callPeer{remotes: map[string]*remote{}, loads: map[*service]*load{}, wants: map[string]bool{}}
		c.mu.peers[rank] = p
	}
	return p
}

// tell sends a frame that is no message.
func (c *calls) tell(to int, h Header, text []byte) {
	h.From, h.To, h.Length = c.endpoint.rank, to, int64(len(text))
	c.endpoint.carry(&Message{head: h, payload: text})
}

// control takes in a frame of calls that is no message. An error ends the endpoint.
func (c *calls) control(h *Header, text []byte) error {
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
func (c *calls) violation(peer int, err error) error {
	if err == nil {
		return nil
	}
	return c.endpoint.lost(peer, err)
}

// badCall is a violation.
func badCall(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrFrame}, args...)...)
}

// fail ends all calls, and the handlers' contexts.
func (c *calls) fail(cause error) {
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
func (c *calls) endPeer(peer int, cause error) {
	c.mu.Lock()
	p := c.peer(peer)
	p.gone = cause
	var waiting []*Reply
	for _, r := range p.remotes {
		waiting = append(waiting, r.waiting.clear()...)
	}
	var requests []*inbound
	for i := range p.seen {
		if in := p.seen[i].request; in != nil && c.unqueue(in) {
			requests = append(requests, in)
		} else if in != nil {
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
func (c *calls) wait() {
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

// limits are what a server tells of a service.
type limits struct{ maxRequest, maxResponse, window int }

const limitsSize = 12

func (s *service) limits() []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, uint32(s.MaxRequest))
	b = le.AppendUint32(b, uint32(s.MaxResponse))
	b = le.AppendUint32(b, uint32(s.Window))
	return append(b, s.Name...)
}

func parseLimits(b []byte) (l limits, name string, err error) {
	if len(b) <= limitsSize || len(b) > limitsSize+maxServiceName {
		return l, "", badCall("limits of %d bytes", len(b))
	}
	le := binary.LittleEndian
	request, response, window := le.Uint32(b), le.Uint32(b[4:]), le.Uint32(b[8:])
	if request > maxBody || response > maxBody || window < 1 || window > maxCalls {
		return l, "", badCall("limits of %d and %d bytes and %d calls", request, response, window)
	}
	return limits{int(request), int(response), int(window)}, string(b[limitsSize:]), nil
}

// callKey names a request or response among what arrives.
func callKey(number uint32) Key { return Key{Coflow: coflow.ID{}, Step: number} }
