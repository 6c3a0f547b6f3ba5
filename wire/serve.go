package wire

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"starling/coflow"
	"starling/event"
	"starling/wire/calls"
)

// Service is what an endpoint answers calls with. From its limits follows the memory that
// callers can make a server take: of each peer, Window requests of MaxRequest bytes, and
// Options.ResponseLimit bytes of responses, or one response if that is larger.
type Service struct {
	// Name by which peers call it, at most 64 bytes.
	Name string
	// MaxRequest and MaxResponse are the most bytes that those may have, at most 1 GiB;
	// 0: 1 MiB, and 16 MiB.
	MaxRequest, MaxResponse int
	// Handlers is how many run at once; 0: 4.
	Handlers int
	// Window is how many calls of one peer may be under way; further ones wait at the
	// caller. 0: 32.
	Window int
}

// Handler answers a request. It returns soon after ctx has ended: when the caller does not
// wait any more, or has gone, or the endpoint ends. An error, and a panic, reach the caller
// as an error.
type Handler func(ctx context.Context, r *Request) (Response, error)

// Request is what a handler is called with.
type Request struct {
	From   int // rank
	Coflow coflow.ID
	Kind   Kind
	// Body must not be changed, nor used after the handler has returned.
	Body []byte
}

// Response is what a handler answers.
type Response struct {
	Kind Kind
	// Body must not change until Release is called, if that is set; otherwise never.
	Body []byte
	// Release, if set, is called once, when Body has left, or will not. It may be called from
	// any goroutine, and must not block.
	Release func()
}

const (
	maxServices = 1<<16 - 1
	maxWants    = 256 // services per peer that are wanted and not served
)

// withDefaults fills in what was left at zero, and checks the rest.
func (s Service) withDefaults() (Service, error) {
	for _, d := range []struct {
		of    *int
		value int
	}{{&s.MaxRequest, 1 << 20}, {&s.MaxResponse, 16 << 20}, {&s.Handlers, 4}, {&s.Window, 32}} {
		if *d.of == 0 {
			*d.of = d.value
		}
	}
	switch {
	case s.Name == "" || len(s.Name) > calls.MaxName:
		return s, fmt.Errorf("wire: a service named %q, expected 1 to %d bytes", s.Name, calls.MaxName)
	case s.MaxRequest < 0 || s.MaxRequest > calls.MaxBody || s.MaxResponse < 0 || s.MaxResponse > calls.MaxBody:
		return s, fmt.Errorf("wire: service %q has requests of %d and responses of %d bytes, expected at most %d",
			s.Name, s.MaxRequest, s.MaxResponse, calls.MaxBody)
	case s.Handlers < 1 || s.Window < 1 || s.Window > calls.Max:
		return s, fmt.Errorf("wire: service %q has %s and %s per peer, expected at least 1, and at "+
			"most %d calls",
			s.Name, event.Tally(s.Handlers, "handler"), event.Tally(s.Window, "call"), calls.Max)
	}
	return s, nil
}

// service is one that is served, or was. It is guarded by the lock of calls.
type service struct {
	Service
	number  uint16
	handler Handler
	ready   urgency[*inbound] // requests that no handler has taken yet
	running map[*inbound]bool
	stopped bool
	idle    chan struct{} // closed when it is stopped and no handler runs
}

// inbound is a request of a peer. What the handler does not see is guarded by the lock of calls.
type inbound struct {
	Request
	service *service
	queued  turn
	number  uint32
	limit   int      // of the response
	pool    bool     // the Body is of the inbox's pool
	message *Message // the Body is the caller's own, in this process
	inbox   *Inbox
	ctx     context.Context
	cancel  context.CancelCauseFunc
	reserve int64 // bytes that the response may have
}

func (in *inbound) turn() *turn { return &in.queued }

// free gives back the memory of a request.
func (in *inbound) free(err error) {
	switch {
	case in.message != nil:
		in.message.Left(err)
	case in.pool:
		in.inbox.pool.give(in.Body)
	}
	in.Body = nil
}

func (e *endpoint) Serve(s Service, h Handler) (stop func() error, err error) {
	s, err = s.withDefaults()
	if err != nil {
		return nil, err
	}
	c := e.calls
	c.mu.Lock()
	switch {
	case c.mu.failed != nil:
		err = c.mu.failed
	case c.mu.services[s.Name] != nil:
		err = fmt.Errorf("wire: service %q is served already", s.Name)
	case len(c.mu.numbered) == maxServices:
		err = fmt.Errorf("wire: %d services were served", maxServices)
	}
	if err != nil {
		c.mu.Unlock()
		return nil, err
	}
	svc := &service{Service: s, handler: h, number: uint16(len(c.mu.numbered) + 1), running: map[*inbound]bool{}}
	svc.ready.order = e.opt.Order
	c.mu.services[s.Name], c.mu.numbered = svc, append(c.mu.numbered, svc)
	var waiting []int
	for rank, p := range c.mu.peers {
		if p.wants[s.Name] && p.gone == nil {
			delete(p.wants, s.Name)
			waiting = append(waiting, rank)
		}
	}
	c.mu.Unlock()
	slices.Sort(waiting)
	for _, rank := range waiting {
		c.announce(rank, svc)
	}
	return func() error { return c.stop(svc) }, nil
}

func (c *endpointCalls) announce(to int, s *service) {
	limits := calls.Limits{MaxRequest: s.MaxRequest, MaxResponse: s.MaxResponse, Window: s.Window}
	c.sendControl(to, Header{Frame: FrameServed, Service: s.number}, limits.Append(s.Name))
}

// stop ends a service. It returns when no handler of it runs any more.
func (c *endpointCalls) stop(s *service) error {
	c.mu.Lock()
	if s.stopped {
		c.mu.Unlock()
		return nil
	}
	s.stopped, s.idle = true, make(chan struct{})
	delete(c.mu.services, s.Name)
	refuse := s.ready.clear()
	for _, p := range c.mu.peers {
		refuse = append(refuse, p.of(s).parked...)
		p.of(s).parked = nil
	}
	for in := range s.running {
		in.cancel(errStopped)
	}
	if len(s.running) == 0 {
		close(s.idle)
	}
	c.mu.Unlock()
	for _, in := range refuse {
		c.refuse(in, refusedService, errStopped)
	}
	late, timer := Alarm(c.endpoint.clock, c.endpoint.opt.Timeout)
	defer timer.Stop()
	select {
	case <-s.idle:
		return nil
	case <-late:
		return fmt.Errorf("wire: a handler of %q on rank %d still runs, %v after its context has ended", s.Name,
			c.endpoint.rank, c.endpoint.opt.Timeout)
	}
}

var errStopped = errors.New("it is not served any more")

// wanted takes in that a peer will call a service, which is announced to it once served.
func (c *endpointCalls) wanted(peer int, name string) error {
	if name == "" || len(name) > calls.MaxName {
		return badCall("a service with a name of %s", event.Tally(len(name), "byte"))
	}
	c.mu.Lock()
	s, p := c.mu.services[name], c.peer(peer)
	if s == nil {
		p.wants[name] = true
	}
	many := len(p.wants)
	c.mu.Unlock()
	if many > maxWants {
		return badCall("%s that are not served", event.Tally(many, "service"))
	}
	if s != nil {
		c.announce(peer, s)
	}
	return nil
}

// admit takes in that a request begins to arrive. An error is a violation: a caller knows the
// limits.
func (c *endpointCalls) admit(h *Header) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.peer(h.From)
	if int(h.Service) == 0 || int(h.Service) > len(c.mu.numbered) {
		return badCall("a request to service %d of %d", h.Service, len(c.mu.numbered))
	}
	s := c.mu.numbered[h.Service-1]
	if err := p.server.Check(h.Key.Step); err != nil {
		return err
	}
	switch {
	case h.Length > int64(s.MaxRequest):
		return badCall("a request of %s to %q, which takes at most %d", event.Tally(h.Length, "byte"), s.Name,
			s.MaxRequest)
	case p.of(s).underWay == s.Window:
		return badCall("more than %d calls of %q under way", s.Window, s.Name)
	}
	p.server.Begin(h.Key.Step, s)
	p.of(s).underWay++
	return nil
}

// arrived takes in a request that is whole.
func (c *endpointCalls) arrived(h *Header, in *inbound) {
	in.Request.From, in.Coflow, in.Kind = h.From, h.Key.Coflow, h.Kind
	in.number, in.limit, in.inbox = h.Key.Step, int(h.Limit), c.endpoint.inbox
	c.mu.Lock()
	p := c.peer(h.From)
	s, cancelled := p.server.Arrive(in.number, in)
	in.service = s
	in.ctx, in.cancel = context.WithCancelCause(c.life)
	failed, stopped := c.mu.failed, s.stopped
	if failed == nil && !cancelled && !stopped {
		s.ready.put(in, in.Coflow)
		c.dispatch(s)
	}
	c.mu.Unlock()
	switch {
	case failed != nil:
		in.free(failed)
	case stopped:
		c.refuse(in, refusedService, errStopped)
	case cancelled:
		c.refuse(in, refusedCall, errCancelled)
	}
}

// dispatch starts handlers for the requests of a service, up to its limit.
// REQUIRES: mu held.
func (c *endpointCalls) dispatch(s *service) {
	for len(s.running) < s.Handlers {
		in := c.pick(s)
		if in == nil {
			return
		}
		c.mu.handlers++
		c.started.Add(1)
		go c.handle(in)
	}
}

// pick takes the most urgent request of a service whose response may fit,
// and makes it run. Others wait until responses to their peer have left.
// REQUIRES: mu held.
func (c *endpointCalls) pick(s *service) *inbound {
	for !s.ready.empty() {
		in := s.ready.take()
		l := c.peer(in.From).of(s)
		in.reserve = int64(min(s.MaxResponse, in.limit))
		if l.bytes > 0 && l.bytes+in.reserve > c.endpoint.opt.ResponseLimit {
			l.parked = append(l.parked, in)
			continue
		}
		l.bytes += in.reserve
		s.running[in] = true
		return in
	}
	return nil
}

// unqueue takes out a request that no handler has taken.
// REQUIRES: mu held.
func (c *endpointCalls) unqueue(in *inbound) bool {
	if in.service.ready.remove(in) {
		return true
	}
	l := c.peer(in.From).of(in.service)
	before := len(l.parked)
	l.parked = slices.DeleteFunc(l.parked, func(o *inbound) bool { return o == in })
	return len(l.parked) < before
}

// unpark makes requests ready that waited for responses to leave.
// REQUIRES: mu held.
func (s *service) unpark(l *load) {
	for _, in := range l.parked {
		s.ready.putBack(in)
	}
	l.parked = nil
}

// handle runs a handler, and then for the next request, as long as there are any.
func (c *endpointCalls) handle(in *inbound) {
	for in != nil {
		response, err := in.answer()
		in = c.respond(in, response, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.handlers--; c.mu.handlers == 0 && c.mu.idle != nil {
		close(c.mu.idle)
		c.mu.idle = nil
	}
}

// answer is the handler's, whose panic is an error.
func (in *inbound) answer() (response Response, err error) {
	defer func() {
		if p := recover(); p != nil {
			response, err = Response{}, fmt.Errorf("its handler panicked: %v\n%s", p, debug.Stack())
		}
	}()
	response, err = in.service.handler(in.ctx, &in.Request)
	if most := min(in.service.MaxResponse, in.limit); err == nil && len(response.Body) > most {
		err = fmt.Errorf("a response of %s, more than the %d that service and caller allow",
			event.Tally(len(response.Body), "byte"),
			most)
	}
	if err != nil && response.Release != nil {
		response.Release()
	}
	return response, err
}

// respond sends what a handler has answered, and returns the next request for it.
func (c *endpointCalls) respond(in *inbound, response Response, err error) (next *inbound) {
	in.free(nil)
	in.cancel(nil)
	s, length := in.service, int64(len(response.Body))
	if err != nil {
		length = 0
	}
	c.mu.Lock()
	p := c.peer(in.From)
	p.of(s).bytes += length - in.reserve
	c.settle(p, in)
	delete(s.running, in)
	s.unpark(p.of(s))
	if len(s.running) < s.Handlers {
		next = c.pick(s)
	}
	if s.stopped && len(s.running) == 0 {
		close(s.idle)
	}
	gone := p.gone != nil || c.mu.failed != nil
	c.mu.Unlock()
	switch {
	case err == nil:
		c.sendResponse(in, &answer{calls: c, peer: in.From, service: s, response: response})
	case !gone:
		c.sendRefusal(in, refusedCall, err)
	}
	return next
}

// settle makes a call that is about to be answered one that is over, here: its caller may
// make the next when it has the answer.
// REQUIRES: mu held.
func (c *endpointCalls) settle(p *callPeer, in *inbound) {
	p.server.End(in.number)
	p.of(in.service).underWay--
}

// answer is a response on its way.
type answer struct {
	Message
	calls    *endpointCalls
	peer     int
	service  *service
	response Response
}

func (a *answer) left(error) {
	if a.response.Release != nil {
		a.response.Release()
	}
	c := a.calls
	c.mu.Lock()
	p := c.peer(a.peer)
	l := p.of(a.service)
	l.bytes -= int64(len(a.response.Body))
	a.service.unpark(l)
	c.dispatch(a.service)
	c.mu.Unlock()
}

// sendResponse sends a response.
func (c *endpointCalls) sendResponse(in *inbound, a *answer) {
	e, body := c.endpoint, a.response.Body
	h := Header{Frame: FrameResponse, Kind: a.response.Kind, From: e.rank, To: in.From,
		Key: Key{in.Coflow, in.number}, Length: int64(len(body))}
	a.Message = Message{head: h, payload: body, owner: a}
	if err := e.Err(); err != nil {
		a.left(err)
		return
	}
	e.ledger.add(true, h.Kind, e.links[in.From], h.Key, len(body))
	e.carry(&a.Message)
}

// refuse answers a request that no handler was called for.
func (c *endpointCalls) refuse(in *inbound, code byte, why error) {
	in.free(nil)
	in.cancel(nil)
	c.mu.Lock()
	c.settle(c.peer(in.From), in)
	c.mu.Unlock()
	c.sendRefusal(in, code, why)
}

func (c *endpointCalls) sendRefusal(in *inbound, code byte, why error) {
	text := append([]byte{code}, causeText(why)...)
	text = text[:min(len(text), MaxCause)]
	c.sendControl(in.From, Header{Frame: FrameRefusal, Key: Key{in.Coflow, in.number}}, text)
}

// cancelled takes in that a caller does not wait for an answer any more.
func (c *endpointCalls) cancelled(peer int, number uint32) error {
	c.mu.Lock()
	in, err := c.peer(peer).server.Cancel(number)
	refuse := in != nil && c.unqueue(in)
	if in != nil && !refuse {
		in.cancel(errCancelled)
	}
	c.mu.Unlock()
	if refuse {
		c.refuse(in, refusedCall, errCancelled)
	}
	return err
}
