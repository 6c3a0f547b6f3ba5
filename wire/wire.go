package wire

import (
	"fmt"
	"time"

	"starling/coflow"
)

// Kind is what a message carries, for the ledger.
type Kind uint8

const (
	Control    Kind = iota // barriers, sums, coordination
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
	SameProcess    Link = iota
	SameHost            // other processes of the host, or of the group of hosts that --servers made
	BetweenServers      // everything farther
	links
)

var linkNames = [links]string{"same_process", "same_host", "between_servers"}

func (l Link) String() string {
	if l < links {
		return linkNames[l]
	}
	return fmt.Sprintf("link %d", uint8(l))
}

// Key names a message of a coflow. Between two ranks, in one
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
	// Send puts a message on its way and returns without waiting for the peer. The
	// payload must not change until the Pending is done. A message without
	// a receive still leaves, up to the peer's Options.UnexpectedLimit.
	Send(to int, key Key, kind Kind, payload []byte) *Pending
	// Recv posts a receive of exactly len(into) bytes. A message that comes after its
	// receive was posted arrives in place, without a copy.
	Recv(from int, key Key, kind Kind, into []byte) *Pending
	// RecvAtMost is Recv of a message that may be shorter than into: Bytes of the Pending
	// is its length.
	RecvAtMost(from int, key Key, kind Kind, into []byte) *Pending
	// RecvAdd is Recv of numbers that are added to those in into, as they come and
	// while they are in the cache, instead of written over them. It calls add for
	// pieces of both, which begin at a multiple of 8 bytes, from any goroutine, and
	// perhaps for several pieces at once.
	RecvAdd(from int, key Key, kind Kind, into []byte, add func(into, part []byte)) *Pending
	// Serve answers calls of peers, and of this rank itself, until stop. stop ends the
	// contexts of handlers and returns when they have returned.
	Serve(s Service, h Handler) (stop func() error, err error)
	// Call sends a request to a service of a peer, without waiting. One that is not served
	// yet is waited for.
	Call(to int, c Call) *Reply
	// Ledger counts what was sent and received.
	Ledger() *Ledger
	// Clock is the run's: whatever is built over an endpoint takes its time from here.
	Clock() Clock
	// Timeout bounds every wait that has no deadline of its own.
	Timeout() time.Duration
	// Waits returns what goroutines of this rank wait for, the longest wait first.
	Waits() []Wait
	// Waited appends how long goroutines of this rank were blocked for each peer; nothing: they never were. Those that
	// wait at once count each.
	Waited(into []time.Duration) []time.Duration
	// SentTo is the bytes of payload that this endpoint sent to each rank.
	SentTo() []int64
	// Fail ends the endpoint with a cause: everything pending, and everything
	// after, fails with it. The first cause stays, and is sent to the peers, so that
	// they fail with the same. It does not wait until they have received it; Close does.
	Fail(cause error)
	// Done is closed when the endpoint has failed or was closed; Err says why.
	Done() <-chan struct{}
	Err() error
	// Close lets what was sent leave, sends a goodbye to the peers and frees
	// everything. It waits for peers to receive that, but never long. To the peers it is
	// no failure: only what they still send here or expect from here fails. It
	// returns the cause if the endpoint had failed.
	Close() error
}
