package store

import (
	"context"
	"fmt"
	"sync/atomic"

	"starling/coflow"
	"starling/wire"
)

// Every request leaves by calls, and every wait of the package is in this file: calls.wait waits for replies,
// Store.await for what other workers must have done. A wait ends with its context, which the end of a step ends, and
// with the endpoint.

// calls are the requests of one service that are under way. They are used by one goroutine.
type calls struct {
	s       *Store
	service string
	doing   string    // what an error begins with, before the worker
	kind    wire.Kind // of requests
	// received is the counter of replies' bytes; nil: they are counted as edges.
	received func(part int) *atomic.Int64
	list     []*call
}

// call is a request to the owner of a part.
type call struct {
	part   int
	places []uint32 // of what the request asks for, in the caller's list
	body   []byte   // the reply
	reply  *wire.Reply
	stream bool         // the reply was taken in while it arrived
	came   atomic.Int64 // bytes of it
}

// newCalls are requests for topology, none so far.
func (s *Store) newCalls(service, doing string) calls {
	return calls{s: s, service: service, doing: doing, kind: wire.Topology}
}

// noReply is the limit of a reply without bytes.
const noReply = 1

// send sends a request, which must not change any more, for a reply of at most limit bytes: a longer one is refused
// before there is memory for it.
func (c *calls) send(id coflow.ID, part int, places []uint32, request []byte, limit int) {
	c.stream(id, part, places, request, limit, nil)
}

// stream sends a request whose reply, of at most limit bytes, each is given while it arrives: see wire.Call.Each. Where
// each is nil the reply is kept as a whole.
func (c *calls) stream(id coflow.ID, part int, places []uint32, request []byte, limit int,
	each func(offset int64, piece []byte)) {
	one := &call{part: part, places: places, stream: each != nil}
	m := wire.Call{Service: c.service, Coflow: id, Kind: c.kind, Request: request,
		Limit: max(1, min(limit, maxResponse))}
	if one.stream {
		m.Each = func(offset int64, piece []byte) {
			one.came.Add(int64(len(piece)))
			each(offset, piece)
		}
	}
	sent := &c.s.traffic[part].requests
	if c.kind == wire.Embedding {
		sent = &c.s.traffic[part].pushed
	}
	sent.Add(int64(len(request)))
	one.reply = c.s.end.Call(part, m)
	c.list = append(c.list, one)
}

// bytes is the length of the reply.
func (c *call) bytes() int { return int(c.came.Load()) + len(c.body) }

// wait waits for all replies. The first failure cancels the calls that remain. No call writes to the caller's memory
// after it.
func (c *calls) wait(ctx context.Context) error { return c.waitAfter(ctx, nil) }

// waitAfter is the same after a failure, if any, of calls that belong to these.
func (c *calls) waitAfter(ctx context.Context, err error) error {
	for _, one := range c.list {
		if err != nil {
			one.reply.Cancel()
		} else if one.body, err = one.reply.Wait(ctx); err != nil {
			err = fmt.Errorf("%s worker %d: %w", c.doing, one.part, err)
		}
		if one.stream {
			c.settle(one)
		}
		received := &c.s.traffic[one.part].edges
		if c.received != nil {
			received = c.received(one.part)
		}
		received.Add(int64(one.bytes()))
	}
	return err
}

// settle waits until the wire does not use the caller's memory any more, also where the call was cancelled. A peer that
// neither takes the request nor ends its reply for the endpoint's timeout ends the endpoint, which lets go of both.
func (c *calls) settle(one *call) {
	p := one.reply.Pending()
	if err := p.Wait(context.Background()); err != nil && !p.IsDone() {
		c.s.end.Fail(fmt.Errorf("%s worker %d: %w", c.doing, one.part, err))
		<-one.reply.Done()
	}
}

// await waits until done is closed, which takes the other workers.
func (s *Store) await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.end.Done():
		return s.end.Err()
	}
}

// awaitUnless waits until done is closed, which takes other goroutines of this worker, unless ended is before. What is
// done is done, whatever else has ended.
func (s *Store) awaitUnless(ctx context.Context, done, ended <-chan struct{}) (was bool, err error) {
	select {
	case <-done:
		return false, nil
	default:
	}
	select {
	case <-done:
	case <-ended:
		return true, nil
	case <-ctx.Done():
		return false, ctx.Err()
	case <-s.end.Done():
		return false, s.end.Err()
	}
	return false, nil
}

// serve answers requests until the store is closed.
func (s *Store) serve(service wire.Service, handle wire.Handler) error {
	stop, err := s.end.Serve(service, handle)
	if err == nil {
		s.stops = append(s.stops, stop)
	}
	return err
}
