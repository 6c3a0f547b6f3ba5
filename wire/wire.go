package wire

import (
	"context"
	"fmt"
	"time"

	"starling/coflow"
)

// Kind is what a message carries, for the ledger.
type Kind uint8

const (
	Control    Kind = iota // barriers, sums, words between workers
	Feature                // rows of input features
	Activation             // rows of layers, forwards
	Gradient               // rows of layers, backwards
	Parameter              // gradients and values of parameters
	Topology               // edges, vertex ids
	Embedding              // rows of learnt embeddings
	kinds
)

var kindNames = [kinds]string{"control", "feature", "activation", "gradient", "parameter", "topology", "embedding"}

func (k Kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Link is how far a message travels.
type Link uint8

const (
	SameProcess Link = iota
	SameHost
	BetweenServers
	links
)

var linkNames = [links]string{"same_process", "same_host", "between_servers"}

func (l Link) String() string {
	if l < links {
		return linkNames[l]
	}
	return fmt.Sprintf("link %d", uint8(l))
}

// Key says which message of a coflow is meant. Between two ranks, in one
// direction, a key is used once.
type Key struct {
	Coflow coflow.ID
	Step   uint32
}

func (k Key) String() string { return fmt.Sprintf("%v, step %d", k.Coflow, k.Step) }

// Endpoint is one worker's end of the wire. Its methods may be called from any
// goroutine.
type Endpoint interface {
	Rank() int
	Size() int
	// Link is how far a peer is.
	Link(peer int) Link
	// Send puts a message on its way and returns at once. The payload must not
	// change until the Pending is done.
	Send(to int, key Key, kind Kind, payload []byte) *Pending
	// Recv asks for a message of exactly len(into) bytes. One that is asked for
	// before it comes arrives in place, without a copy.
	Recv(from int, key Key, kind Kind, into []byte) *Pending
	// Ledger counts what was sent and received.
	Ledger() *Ledger
	// Fail ends the endpoint with a cause: everything pending, and everything
	// after, fails with it. The first cause stays.
	Fail(cause error)
	// Done is closed when the endpoint has failed or was closed; Err says why.
	Done() <-chan struct{}
	Err() error
	// Close says goodbye to the peers and frees everything.
	Close() error
}

// Pending is a message on its way.
type Pending struct {
	done chan struct{}
	err  error

	// For the error of who waits for what.
	what    string
	rank    int
	peer    int
	key     Key
	kind    Kind
	timeout time.Duration
}

// Done is closed when the message has left (its buffer is free) or has arrived, or failed.
func (p *Pending) Done() <-chan struct{} { return p.done }

// Err is the failure of a Pending that is done.
func (p *Pending) Err() error { return p.err }

// Wait returns when the message has left or arrived. No wait is for ever: where
// ctx has no deadline the endpoint's timeout holds.
func (p *Pending) Wait(ctx context.Context) error {
	select {
	case <-p.done:
		return p.err
	default:
	}
	start := time.Now()
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.timeout)
		defer cancel()
	}
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
	}
	if context.Cause(ctx) != context.DeadlineExceeded {
		return context.Cause(ctx)
	}
	return &Timeout{Rank: p.rank, Peer: p.peer, What: p.what, Key: p.key, Kind: p.kind, Waited: time.Since(start)}
}

// finish ends the wait. It is called once.
func (p *Pending) finish(err error) {
	p.err = err
	close(p.done)
}

// Timeout is the error of a wait that took too long: who waited for whom, and for what.
type Timeout struct {
	Rank, Peer int
	What       string // "to receive from" or "to send to"
	Key        Key
	Kind       Kind
	Waited     time.Duration
}

func (t *Timeout) Error() string {
	return fmt.Sprintf("rank %d waited %v %s rank %d: %v (%v)", t.Rank, t.Waited.Round(time.Millisecond), t.What, t.Peer, t.Kind, t.Key)
}

// PeerLost is the error of everything pending when a peer has gone.
type PeerLost struct {
	Rank, Peer int
	Cause      error
}

func (e *PeerLost) Error() string {
	return fmt.Sprintf("rank %d lost rank %d: %v", e.Rank, e.Peer, e.Cause)
}

func (e *PeerLost) Unwrap() error { return e.Cause }
