package wire

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// Options are what every transport needs to know.
type Options struct {
	// Timeout bounds every wait that has no deadline of its own.
	Timeout time.Duration
	// EarlyLimit is how many bytes may wait that nobody has asked for yet.
	EarlyLimit int64
}

// DefaultOptions wait a minute and hold a gibibyte.
func DefaultOptions() Options { return Options{Timeout: time.Minute, EarlyLimit: 1 << 30} }

// ErrClosed is the cause of an endpoint that was closed in good order.
var ErrClosed = errors.New("the endpoint is closed")

// carrier takes messages to one peer.
type carrier interface {
	// carry puts a message on its way; it must call sent or p.finish once.
	carry(m *message)
	// close ends the connection, after what is queued has left when graceful.
	close(graceful bool)
}

// message is one to be sent.
type message struct {
	header
	payload []byte
	pending *Pending
}

// node is the part of an endpoint that all transports share.
type node struct {
	rank     int
	far      []Link
	opt      Options
	carriers []carrier
	box      *mailbox
	ledger   *Ledger

	once sync.Once
	done chan struct{}
	err  error
}

func newNode(rank int, far []Link, opt Options) *node {
	return &node{rank: rank, far: far, opt: opt, carriers: make([]carrier, len(far)),
		box: newMailbox(opt.EarlyLimit), ledger: NewLedger(), done: make(chan struct{})}
}

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

func (n *node) pending(what string, peer int, key Key, kind Kind) *Pending {
	return &Pending{done: make(chan struct{}), what: what, rank: n.rank, peer: peer, key: key, kind: kind, timeout: n.opt.Timeout}
}

func (n *node) Send(to int, key Key, kind Kind, payload []byte) *Pending {
	p := n.pending("to send to", to, key, kind)
	if to < 0 || to >= len(n.far) {
		p.finish(fmt.Errorf("wire: rank %d of %d", to, len(n.far)))
		return p
	}
	if err := n.Err(); err != nil {
		p.finish(err)
		return p
	}
	m := &message{header: header{kind: kind, from: n.rank, to: to, key: key, length: int64(len(payload))}, payload: payload, pending: p}
	n.ledger.add(true, kind, n.far[to], key, len(payload))
	n.carriers[to].carry(m)
	return p
}

func (n *node) Recv(from int, key Key, kind Kind, into []byte) *Pending {
	p := n.pending("to receive from", from, key, kind)
	if from < 0 || from >= len(n.far) {
		p.finish(fmt.Errorf("wire: rank %d of %d", from, len(n.far)))
		return p
	}
	n.box.ask(from, key, into, p)
	return p
}

// received counts a message that is whole.
func (n *node) received(h *header) { n.ledger.add(false, h.kind, n.far[h.from], h.key, int(h.length)) }

func (n *node) Fail(cause error) {
	n.once.Do(func() {
		n.err = cause
		close(n.done)
	})
	n.box.fail(n.err)
	for _, c := range n.carriers {
		if c != nil {
			c.close(false)
		}
	}
}

func (n *node) Close() error {
	for _, c := range n.carriers {
		if c != nil {
			c.close(true)
		}
	}
	n.once.Do(func() {
		n.err = ErrClosed
		close(n.done)
	})
	n.box.fail(n.err)
	return nil
}
