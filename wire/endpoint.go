package wire

import (
	"fmt"
	"sync/atomic"
	"time"
)

// endpoint is the Endpoint of every transport.
type endpoint struct {
	rank      int
	links     []Link
	addrs     []string // nil: none
	opt       Options
	clock     Clock
	transport Transport
	poller    Poller // nil: waiting does not move messages
	inbox     *Inbox
	calls     *endpointCalls
	ledger    *Ledger
	waits     waits

	numbers []atomic.Uint32 // of the last message to each peer
	sentTo  []atomic.Int64  // bytes of payload to each peer
	ending  atomic.Bool     // Fail or Close was called
	done    chan struct{}
	err     error
}

func newEndpoint(rank int, links []Link, opt Options) *endpoint {
	opt = opt.withDefaults()
	e := &endpoint{rank: rank, links: links, opt: opt, clock: opt.Clock, ledger: NewLedger(),
		numbers: make([]atomic.Uint32, len(links)), sentTo: make([]atomic.Int64, len(links)), done: make(chan struct{})}
	e.inbox, e.calls = newInbox(e), newCalls(e)
	return e
}

var _ Endpoint = (*endpoint)(nil)

func (e *endpoint) Rank() int              { return e.rank }
func (e *endpoint) Size() int              { return len(e.links) }
func (e *endpoint) Link(peer int) Link     { return e.links[peer] }
func (e *endpoint) Ledger() *Ledger        { return e.ledger }
func (e *endpoint) Clock() Clock           { return e.clock }
func (e *endpoint) Timeout() time.Duration { return e.opt.Timeout }
func (e *endpoint) Done() <-chan struct{}  { return e.done }

func (e *endpoint) SentTo() []int64 {
	out := make([]int64, len(e.sentTo))
	for r := range out {
		out[r] = e.sentTo[r].Load()
	}
	return out
}

func (e *endpoint) Err() error {
	select {
	case <-e.done:
		return e.err
	default:
		return nil
	}
}

func (e *endpoint) addr(peer int) string {
	if peer < len(e.addrs) && peer != e.rank {
		return e.addrs[peer]
	}
	return ""
}

func (e *endpoint) poll(a Awaited) bool { return e.poller != nil && e.poller.Poll(a) }

// Awaited is what a goroutine waits for: a message, or any of several.
type Awaited struct {
	one *Pending
	any []*Pending
}

// Nothing reports whether no message is awaited.
func (a Awaited) Nothing() bool { return a.one == nil && a.any == nil }

// Done reports whether the message, or one of several, has left or arrived, or failed.
func (a Awaited) Done() bool {
	if a.one != nil {
		return a.one.IsDone()
	}
	for _, p := range a.any {
		if p.IsDone() {
			return true
		}
	}
	return false
}

// sending and receiving are what a message needs on its two ends, allocated in one piece.
type sending struct {
	Pending
	Message
}

type receiving struct {
	Pending
	receive
}

// begin makes p a new wait, unless there is no such peer: then it has failed.
func (e *endpoint) begin(p *Pending, what string, peer int, key Key, kind Kind) bool {
	p.endpoint, p.what, p.peer, p.key, p.kind = e, what, peer, key, kind
	if peer < 0 || peer >= len(e.links) {
		p.finish(fmt.Errorf("wire: there is no rank %d among %d", peer, len(e.links)))
		return false
	}
	return true
}

func (e *endpoint) Send(to int, key Key, kind Kind, payload []byte) *Pending {
	s := &sending{}
	p := &s.Pending
	if !e.begin(p, "to send to", to, key, kind) {
		return p
	}
	if err := e.Err(); err != nil {
		p.finish(err)
		return p
	}
	h := Header{Kind: kind, From: e.rank, To: to, Key: key, Length: int64(len(payload))}
	s.Message = Message{head: h, payload: payload, pending: p}
	e.ledger.add(true, kind, e.links[to], key, len(payload))
	e.carry(&s.Message)
	return p
}

// carry numbers a message and puts it on its way.
func (e *endpoint) carry(m *Message) {
	m.head.Number = e.numbers[m.head.To].Add(1)
	e.sentTo[m.head.To].Add(m.head.Length)
	if m.head.To == e.rank {
		e.inbox.DeliverMessage(m)
		return
	}
	e.transport.Carry(m)
}

func (e *endpoint) Recv(from int, key Key, kind Kind, into []byte) *Pending {
	return e.post(from, key, receive{into: into, kind: kind})
}

func (e *endpoint) RecvAtMost(from int, key Key, kind Kind, into []byte) *Pending {
	return e.post(from, key, receive{into: into, kind: kind, atMost: true})
}

func (e *endpoint) RecvAdd(from int, key Key, kind Kind, into []byte, add func(into, part []byte)) *Pending {
	return e.post(from, key, receive{into: into, kind: kind, add: add})
}

func (e *endpoint) post(from int, key Key, r receive) *Pending {
	a := &receiving{receive: r}
	p := &a.Pending
	if !e.begin(p, "to receive from", from, key, r.kind) {
		return p
	}
	a.receive.pending = p
	if err := e.inbox.post(from, key, &a.receive); err != nil {
		e.Fail(err)
	}
	if e.poller != nil {
		e.poller.Posted(from)
	}
	return p
}

// received counts a message that is whole.
func (e *endpoint) received(h *Header) {
	e.ledger.add(false, h.Kind, e.links[h.From], h.Key, int(h.Length))
}

// lost is the error of a peer that has gone.
func (e *endpoint) lost(peer int, cause error) error {
	return &PeerLost{Rank: e.rank, Peer: peer, PeerAddr: e.addr(peer), Cause: cause}
}

func (e *endpoint) Fail(cause error) { e.end(cause, func(t Transport) { t.Fail(cause) }) }

// end makes cause the endpoint's, if it is the first.
func (e *endpoint) end(cause error, stop func(Transport)) {
	if !e.ending.CompareAndSwap(false, true) {
		return
	}
	e.err = cause
	close(e.done)
	e.inbox.fail(cause)
	e.calls.fail(cause)
	stop(e.transport)
}

func (e *endpoint) Close() error {
	e.end(ErrClosed, Transport.Close)
	<-e.done
	e.calls.wait()
	e.transport.Wait()
	if e.err == ErrClosed {
		return nil
	}
	return e.err
}
