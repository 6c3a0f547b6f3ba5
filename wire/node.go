package wire

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Options are what every transport needs to know.
type Options struct {
	// Timeout bounds every wait that has no deadline of its own.
	Timeout time.Duration
	// EarlyLimit is how many bytes of a peer may wait that nobody has asked for yet.
	EarlyLimit int64
	// Linger bounds how long Close waits for peers to hear the goodbye, or the
	// cause of a failure.
	Linger time.Duration
	// ServerOf groups ranks into servers; nil: every host is one.
	ServerOf []int
}

// DefaultOptions wait a minute and hold a gibibyte.
func DefaultOptions() Options {
	return Options{Timeout: time.Minute, EarlyLimit: 1 << 30, Linger: 2 * time.Second}
}

// withDefaults fills in what was left at zero.
func (o Options) withDefaults() Options {
	d := DefaultOptions()
	if o.Timeout <= 0 {
		o.Timeout = d.Timeout
	}
	if o.EarlyLimit <= 0 {
		o.EarlyLimit = d.EarlyLimit
	}
	if o.Linger <= 0 {
		o.Linger = d.Linger
	}
	return o
}

// carrier takes messages to one peer.
type carrier interface {
	// carry puts a message on its way without waiting for the peer, and sees to it
	// that its Pending is finished.
	carry(m *message)
	// fail ends the carrier now and tells the peer why. It does not wait.
	fail(cause error)
	// part lets what was sent leave and says goodbye. It does not wait.
	part()
	// gone is closed when the carrier has ended and holds nothing any more.
	gone() <-chan struct{}
}

// node is the part of an endpoint that all transports share.
type node struct {
	rank     int
	far      []Link
	addrs    []string // nil: none
	opt      Options
	carriers []carrier
	box      *mailbox
	ledger   *Ledger
	waits    waits
	// poll, where there is shared memory, looks for messages on the waiter's own
	// goroutine, until the pending is done or it gives up.
	poll func(sought) bool
	// asked and hasten, likewise, are told from whom a message was asked for, and that
	// nobody will wait for it soon.
	asked, hasten func(peer int)

	numbers []atomic.Uint32 // of the last message to each peer, by which those of one name are told apart
	ending  atomic.Bool     // somebody has called Fail or Close
	done    chan struct{}
	err     error
	release []func() // what Close frees in the end
	closed  sync.Once
}

func newNode(rank int, far []Link, opt Options) *node {
	n := &node{rank: rank, far: far, opt: opt, carriers: make([]carrier, len(far)), ledger: NewLedger(),
		numbers: make([]atomic.Uint32, len(far)), done: make(chan struct{})}
	n.box = newMailbox(n)
	return n
}

var _ Endpoint = (*node)(nil)

func (n *node) Rank() int             { return n.rank }
func (n *node) Size() int             { return len(n.far) }
func (n *node) Link(peer int) Link    { return n.far[peer] }
func (n *node) Ledger() *Ledger       { return n.ledger }
func (n *node) Done() <-chan struct{} { return n.done }

func (n *node) Err() error {
	select {
	case <-n.done:
		return n.err
	default:
		return nil
	}
}

func (n *node) addr(peer int) string {
	if peer < len(n.addrs) && peer != n.rank {
		return n.addrs[peer]
	}
	return ""
}

func (n *node) spin(s sought) bool { return n.poll != nil && n.poll(s) }

// sought is what a waiter looks for: a message, or any of several.
type sought struct {
	one *Pending
	any []*Pending
}

func (s sought) nothing() bool { return s.one == nil && s.any == nil }

func (s sought) found() bool {
	if s.one != nil {
		return s.one.isDone()
	}
	for _, p := range s.any {
		if p.isDone() {
			return true
		}
	}
	return false
}

// sending and asking are what a message needs on its two ends, taken from the heap
// in one piece.
type sending struct {
	Pending
	message
}

type asking struct {
	Pending
	letter
}

// begin makes p a new wait, unless there is no such peer: then it has failed.
func (n *node) begin(p *Pending, what string, peer int, key Key, kind Kind) bool {
	p.node, p.what, p.peer, p.key, p.kind = n, what, peer, key, kind
	if peer < 0 || peer >= len(n.far) {
		p.finish(fmt.Errorf("wire: there is no rank %d among %d", peer, len(n.far)))
		return false
	}
	return true
}

func (n *node) Send(to int, key Key, kind Kind, payload []byte) *Pending {
	s := &sending{}
	p := &s.Pending
	if !n.begin(p, "to send to", to, key, kind) {
		return p
	}
	if err := n.Err(); err != nil {
		p.finish(err)
		return p
	}
	s.message = message{header: header{kind: kind, from: n.rank, to: to, key: key, number: n.numbers[to].Add(1), length: int64(len(payload))}, payload: payload, pending: p}
	n.ledger.add(true, kind, n.far[to], key, len(payload))
	n.carriers[to].carry(&s.message)
	return p
}

func (n *node) Recv(from int, key Key, kind Kind, into []byte) *Pending {
	return n.ask(from, key, letter{into: into, kind: kind})
}

func (n *node) RecvAtMost(from int, key Key, kind Kind, into []byte) *Pending {
	return n.ask(from, key, letter{into: into, kind: kind, atMost: true})
}

func (n *node) RecvAdd(from int, key Key, kind Kind, into []byte, add func(into, part []byte)) *Pending {
	return n.ask(from, key, letter{into: into, kind: kind, add: add})
}

func (n *node) ask(from int, key Key, l letter) *Pending {
	a := &asking{letter: l}
	p := &a.Pending
	if !n.begin(p, "to receive from", from, key, l.kind) {
		return p
	}
	a.letter.pending = p
	if err := n.box.ask(from, key, &a.letter); err != nil {
		n.Fail(err)
	}
	if n.asked != nil {
		n.asked(from)
	}
	return p
}

// received counts a message that is whole.
func (n *node) received(h *header) { n.ledger.add(false, h.kind, n.far[h.from], h.key, int(h.length)) }

// lost is the error of a peer that has gone.
func (n *node) lost(peer int, cause error) error {
	return &PeerLost{Rank: n.rank, Peer: peer, PeerAddr: n.addr(peer), Cause: cause}
}

func (n *node) Fail(cause error) { n.end(cause, func(c carrier) { c.fail(cause) }) }

// end makes cause the endpoint's, if it is the first.
func (n *node) end(cause error, each func(carrier)) {
	if !n.ending.CompareAndSwap(false, true) {
		return
	}
	n.err = cause
	close(n.done)
	n.box.fail(cause)
	for _, c := range n.carriers {
		if c != nil {
			each(c)
		}
	}
}

func (n *node) Close() error {
	n.end(ErrClosed, carrier.part)
	<-n.done
	for _, c := range n.carriers {
		if c != nil {
			<-c.gone()
		}
	}
	n.closed.Do(func() {
		for _, free := range n.release {
			free()
		}
	})
	if n.err == ErrClosed {
		return nil
	}
	return n.err
}
