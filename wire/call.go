package wire

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"starling/coflow"
	"starling/event"
	"starling/wire/calls"
)

// Call is a request to a service of a peer, and where its response goes.
type Call struct {
	// Service is the name of what the peer serves.
	Service string
	// Coflow orders the request among what leaves here, and the response among what leaves there.
	Coflow coflow.ID
	// Kind of the request, for the ledger; the server chooses the response's.
	Kind Kind
	// Request must not change until the Reply is done.
	Request []byte
	// Limit is the most bytes that the response may have; 0: what the service allows.
	Limit int
	// Into, if set, returns the buffer for a response of that length, which then arrives without
	// a copy. It may be called from any goroutine, and must not block.
	Into func(bytes int) []byte
	// Each, if set, is given the response part by part, for callers that keep it in several places:
	// an offset and bytes, which are only there during the call. Parts come in any order,
	// from any goroutine, and perhaps several at once; offsets are multiples of 8.
	Each func(offset int64, part []byte)
}

// Reply is a call under way.
type Reply struct {
	call    Call
	pending Pending
	message Message // the request
	receive receive // of the response
	calls   *endpointCalls
	remote  *remote
	queued  turn

	// free counts what the wire still uses: the request's buffer, and the response's.
	free     atomic.Int32
	answered atomic.Bool // the outcome is known
	body     []byte
	err      error

	// Guarded by the lock of calls.
	number  uint32
	service uint16
	limit   int // of the response
	state   callState
	giveUp  error // why it is to be cancelled when it was sent
}

// callState is how far a call has come.
type callState uint8

const (
	callWaits   callState = iota // for the service, or its window
	callLeaves                   // the transport is taking it
	callSent                     // its answer is to come
	callDropped                  // likewise, but it is not waited for
	callOver
)

// remote is a service of a peer. It is guarded by the lock of calls.
type remote struct {
	name     string
	peer     int
	known    bool // it is served
	number   uint16
	limits   calls.Limits
	underWay int
	waiting  urgency[*Reply]
}

// CallError is the error of a call that the peer did not answer with a response.
type CallError struct {
	Rank, Peer int
	PeerAddr   string
	Service    string
	Cause      error
}

func (e *CallError) Error() string {
	return fmt.Sprintf("%s did not answer %q for rank %d: %v", name(e.Peer, e.PeerAddr), e.Service, e.Rank, e.Cause)
}

func (e *CallError) Unwrap() error { return e.Cause }

func (r *Reply) turn() *turn { return &r.queued }

// Done is closed when the call has ended and the wire uses none of its buffers any more.
func (r *Reply) Done() <-chan struct{} { return r.pending.Done() }

// Pending is the call's, for WaitAny.
func (r *Reply) Pending() *Pending { return &r.pending }

// Wait returns the response. When ctx ends before, or, if it has no deadline, after the
// endpoint's timeout, the call is cancelled. Then the buffers of request and response may
// still be in use until Done is closed.
func (r *Reply) Wait(ctx context.Context) ([]byte, error) {
	if err := r.pending.Wait(ctx); err != nil && !r.pending.IsDone() {
		r.calls.cancel(r, err)
		return nil, err
	}
	return r.body, r.pending.err
}

// errCancelled is the cause of a call that its caller has cancelled.
var errCancelled = errors.New("the call was cancelled")

// errNoPlace is the cause of a call whose caller has no buffer for the response.
var errNoPlace = errors.New("there is no buffer for a response of this length")

// Cancel ends the call, if it has not ended.
func (r *Reply) Cancel() { r.calls.cancel(r, errCancelled) }

func (e *endpoint) Call(to int, call Call) *Reply {
	r := &Reply{call: call, calls: e.calls}
	r.free.Store(2)
	r.pending.call = r
	if !e.begin(&r.pending, "", to, Key{Coflow: call.Coflow}, call.Kind) {
		return r
	}
	if err := call.check(); err != nil {
		r.unsent(err)
		return r
	}
	e.calls.start(r)
	return r
}

func (c *Call) check() error {
	switch {
	case c.Service == "" || len(c.Service) > calls.MaxName:
		return fmt.Errorf("wire: a call of %q, expected a name of 1 to %d bytes", c.Service, calls.MaxName)
	case len(c.Request) > calls.MaxBody || c.Limit < 0:
		return fmt.Errorf("wire: a call of %q with %s and a limit of %d, expected at most %d bytes", c.Service,
			event.Tally(len(c.Request), "byte"), c.Limit, calls.MaxBody)
	case c.Into != nil && c.Each != nil:
		return fmt.Errorf("wire: a call of %q with both Into and Each", c.Service)
	}
	return nil
}

// start queues a call and sends what may be sent.
func (c *endpointCalls) start(r *Reply) {
	to, name := r.pending.peer, r.call.Service
	c.mu.Lock()
	p := c.peer(to)
	if err := cmp.Or(c.mu.failed, p.gone); err != nil {
		c.mu.Unlock()
		r.unsent(err)
		return
	}
	m, known := p.remotes[name]
	if !known {
		m = &remote{name: name, peer: to}
		m.waiting.order = c.endpoint.opt.Order
		p.remotes[name] = m
	}
	r.remote = m
	m.waiting.put(r, r.call.Coflow)
	c.mu.Unlock()
	if !known {
		c.sendControl(to, Header{Frame: FrameWant}, []byte(name))
	}
	c.sendNext(m)
}

// sendNext sends the calls of a service that its window allows.
func (c *endpointCalls) sendNext(m *remote) {
	for r, err := c.next(m); r != nil; r, err = c.next(m) {
		if err != nil {
			r.unsent(err)
			continue
		}
		c.send(r)
	}
}

// next takes a call that may be sent, and gives it a number; or, with an error, one that is
// too long.
func (c *endpointCalls) next(m *remote) (*Reply, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.peer(m.peer)
	if !m.known || m.waiting.empty() || m.underWay >= m.limits.Window {
		return nil, nil
	}
	if r := m.waiting.first(); len(r.call.Request) > m.limits.MaxRequest {
		r.state = callOver
		return m.waiting.take(), fmt.Errorf("wire: a request of %s to %q of rank %d, which takes at most %d",
			event.Tally(len(r.call.Request), "byte"), m.name, m.peer, m.limits.MaxRequest)
	}
	if p.caller.Full() {
		return nil, nil
	}
	r := m.waiting.take()
	r.number = p.caller.Begin(r)
	r.state, r.service, r.limit = callLeaves, m.number, m.limits.MaxResponse
	if r.call.Limit > 0 {
		r.limit = min(r.limit, r.call.Limit)
	}
	m.underWay++
	return r, nil
}

// send posts the receive of the response and sends the request.
func (c *endpointCalls) send(r *Reply) {
	e, m := c.endpoint, r.remote
	r.receive = receive{call: r, pending: &r.pending, limit: r.limit}
	e.inbox.postResponse(m.peer, r.number, &r.receive)
	e.ledger.add(true, r.call.Kind, e.links[m.peer], r.pending.key, len(r.call.Request))
	h := Header{Frame: FrameRequest, Kind: r.call.Kind, From: e.rank, To: m.peer, Service: r.service,
		Limit: uint32(r.limit),
		Key:   Key{r.call.Coflow, r.number}, Length: int64(len(r.call.Request))}
	r.message = Message{head: h, payload: r.call.Request, owner: (*requestOwner)(r)}
	e.carry(&r.message)
	c.mu.Lock()
	cause := r.giveUp
	if r.state == callLeaves {
		r.state = callSent
	}
	c.mu.Unlock()
	if cause != nil {
		c.cancel(r, cause)
	}
}

// requestOwner is notified when a request has left.
type requestOwner Reply

func (o *requestOwner) left(err error) {
	r := (*Reply)(o)
	if err != nil {
		r.calls.endpoint.inbox.endResponse(r.remote.peer, r.number, err)
	}
	r.release()
}

// release records that one of the call's buffers is no longer used.
func (r *Reply) release() {
	if r.free.Add(-1) == 0 {
		r.pending.bytes = len(r.body)
		r.pending.finish(r.err)
	}
}

// ended is the outcome of a call whose response the wire does not write any more. The
// first counts.
func (r *Reply) ended(body []byte, err error) {
	if r.answered.CompareAndSwap(false, true) {
		r.body, r.err = body, err
		r.release()
	}
}

// unsent is the outcome of a call whose request never left.
func (r *Reply) unsent(err error) {
	r.ended(nil, err)
	r.release()
}

// cancel ends a call whose outcome is not waited for. What is still to come is dropped.
func (c *endpointCalls) cancel(r *Reply, cause error) {
	c.mu.Lock()
	was, number := r.state, r.number
	switch was {
	case callWaits:
		if r.remote == nil || !r.remote.waiting.remove(r) {
			was = callOver // it has ended already
		}
		r.state = callOver
	case callLeaves:
		r.giveUp = cause
	case callSent:
		r.state = callDropped
	}
	c.mu.Unlock()
	switch was {
	case callWaits:
		r.unsent(cause)
	case callSent:
		c.endpoint.inbox.dropResponse(r.remote.peer, number, cause)
		c.sendControl(r.remote.peer, Header{Frame: FrameCancel, Key: callKey(number)}, nil)
	}
}

// over frees a call's place in the window. It returns the services whose next calls may
// leave: where the peer had no slot left, any.
func (c *endpointCalls) over(r *Reply) []*remote {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, next := r.remote, []*remote{r.remote}
	p := c.peer(m.peer)
	if p.caller.Full() {
		next = slices.Collect(maps.Values(p.remotes))
	}
	p.caller.End(r.number)
	m.underWay--
	r.state = callOver
	return next
}

// responded ends a call whose response has come whole.
func (c *endpointCalls) responded(r *Reply, body []byte, err error) {
	next := c.over(r)
	r.ended(body, err)
	for _, m := range next {
		c.sendNext(m)
	}
}

// served takes in the announcement of a peer's service.
func (c *endpointCalls) served(h *Header, text []byte) error {
	l, name, err := calls.ParseLimits(text)
	if err != nil {
		return err
	}
	c.mu.Lock()
	m := c.peer(h.From).remotes[name]
	if m == nil || m.known || h.Service == 0 {
		c.mu.Unlock()
		return badCall("service %.20q, which was not wanted", name)
	}
	m.known, m.number, m.limits = true, h.Service, l
	c.mu.Unlock()
	c.sendNext(m)
	return nil
}

// Refusals begin with a byte that reports whether the service is served at all.
const (
	refusedCall    = 0
	refusedService = 1
)

// refused takes in that there is no response to a call.
func (c *endpointCalls) refused(h *Header, text []byte) error {
	if len(text) == 0 || text[0] > refusedService {
		return badCall("a refusal without a reason")
	}
	r := c.underWay(h.From, h.Key.Step)
	if r == nil || !c.endpoint.inbox.takeResponse(h.From, h.Key.Step) {
		return badCall("a refusal of call %d, which is not under way", h.Key.Step)
	}
	if text[0] == refusedService {
		c.forget(r.remote)
	}
	e := c.endpoint
	c.responded(r, nil, &CallError{Rank: e.rank, Peer: h.From, PeerAddr: e.addr(h.From), Service: r.call.Service,
		Cause: causeOf(text[1:])})
	return nil
}

// underWay is the call of a number that was sent to a peer, or nil.
func (c *endpointCalls) underWay(peer int, number uint32) *Reply {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.peer(peer).caller.UnderWay(number)
}

// forget makes a service wanted again that the peer serves no longer.
func (c *endpointCalls) forget(m *remote) {
	c.mu.Lock()
	was := m.known
	m.known = false
	c.mu.Unlock()
	if was {
		c.sendControl(m.peer, Header{Frame: FrameWant}, []byte(m.name))
	}
}

// blocked describes what a call waits for.
func (r *Reply) blocked() (what, detail string) {
	r.calls.mu.Lock()
	defer r.calls.mu.Unlock()
	switch m := r.remote; {
	case r.state != callWaits || m == nil:
		return "for an answer from", fmt.Sprintf("%q, %v (%v)", r.call.Service, r.call.Kind, r.call.Coflow)
	case !m.known:
		return "for a service of", fmt.Sprintf("%q is not served there", r.call.Service)
	default:
		return "for a call to end with", fmt.Sprintf("%s of %q under way", event.Tally(m.underWay, "call"),
			r.call.Service)
	}
}
