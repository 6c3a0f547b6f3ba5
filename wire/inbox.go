package wire

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"starling/event"
)

// Inbox is where a transport puts what arrives for an endpoint. It matches messages with
// receives. Chunks of a message for which a receive was posted go straight into the
// receiver's buffer; unexpected ones are held in buffers of the pool, up to a limit per
// peer, beyond which the transport stops reading from that peer until a receive is posted.
type Inbox struct {
	limit    int64
	endpoint *endpoint
	// onSpace is called when a transport that got ErrNoSpace should try again.
	onSpace func()
	posts   atomic.Uint64 // how many receives were posted
	pool    bufferPool
	mu      struct {
		sync.Mutex
		slots      map[slot]*receive
		unexpected map[int]int64 // bytes held for which no receive was posted, by peer
		gone       map[int]error // peers from which nothing more will come
		full       bool          // a transport got ErrNoSpace, or waits
		freed      uint64        // how many times space was made since
		change     sync.Cond     // of anything that makes space
		failed     error
	}
}

// slot is the name of what arrives.
type slot struct {
	from  int
	frame FrameType
	key   Key
}

// slotOf returns the slot of a chunk. Requests and responses are named by the number of their call.
func slotOf(h *Header) slot {
	if h.Frame == FrameMessage {
		return slot{h.From, FrameMessage, h.Key}
	}
	return slot{h.From, h.Frame, callKey(h.Key.Step)}
}

// receive is one that was posted, or of a message that has begun to arrive, or both.
type receive struct {
	into    []byte                  // the receiver's
	atMost  bool                    // the message may be shorter than into
	kind    Kind                    // expected
	add     func(into, part []byte) // nil: bytes are written over what is there
	pending *Pending                // nil: no receive was posted yet
	call    *Reply                  // whose response this is; nil: a message
	limit   int                     // how long that may be

	head     Header   // of a message that has begun to arrive
	begun    bool     // something has arrived
	request  []byte   // ours, for the body of a request
	early    bool     // it has begun to arrive before a receive was posted
	held     []extent // what of it has arrived
	joined   bool     // a receive was posted meanwhile: the rest goes to it
	uncopied *Message // the sender's own, in this process, for which there was no space
	placed   int64    // bytes that have a place
	arrived  int64    // bytes that are there
	writing  int      // chunks that transports are copying
	landing  bool     // a call is asked where its response goes
	dropped  error    // why the rest of the response goes nowhere
	failed   error    // set while they do: the last of them ends the wait
}

// extent is a part of a message that is held: its bytes, from an offset on. Each has a buffer of its own, so that a
// peer has us hold what it has sent, and not what it has announced.
type extent struct {
	lo    int64
	bytes []byte
}

// ErrNoSpace means that an unexpected message must wait: the transport delivers the chunk
// again when the function given to OnSpace is called.
var ErrNoSpace = errors.New("no space for a message without a receive")

func newInbox(e *endpoint) *Inbox {
	in := &Inbox{limit: e.opt.UnexpectedLimit, endpoint: e, onSpace: func() {}}
	in.mu.slots, in.mu.unexpected, in.mu.gone = map[slot]*receive{}, map[int]int64{}, map[int]error{}
	in.mu.change.L = &in.mu.Mutex
	return in
}

// OnSpace sets what is called, from any goroutine and with locks held, when there is space
// after ErrNoSpace. It must not block, nor call the Inbox.
func (in *Inbox) OnSpace(f func()) { in.onSpace = f }

// DeliverMessage takes a whole message from a sender in this process, and calls its Left. It is
// copied now if a receive was posted or there is space, otherwise when a receive is posted.
func (in *Inbox) DeliverMessage(m *Message) {
	h := m.head
	h.Chunk = int(h.Length)
	if h.Frame != FrameMessage && h.Frame != FrameResponse {
		in.deliverCall(&h, m)
		return
	}
	at, err := in.place(&h, false, m)
	switch to := in.endpoint; {
	case err == nil:
		at.Put(0, m.payload)
		in.Release(at, &h, nil)
		m.Left(nil)
	case err == ErrNoSpace: // the goroutine that posts the receive copies
	case to.Err() != nil:
		in.bounce(m)
	default: // the two do not agree what the message is
		m.Left(err)
		to.Fail(err)
	}
}

// bounce ends a message to an endpoint that has ended.
func (in *Inbox) bounce(m *Message) {
	switch err := in.endpoint.Err(); {
	case m.From() == m.To():
		m.Left(err)
	case err == ErrClosed:
		m.Left(&PeerLost{Rank: m.From(), Peer: m.To(), Cause: ErrPeerClosed})
	default:
		m.Left(&PeerLost{Rank: m.From(), Peer: m.To(), Cause: err})
	}
}

// deliverCall takes a request of a caller in this process, which the handler sees where it is,
// or another frame of calls.
func (in *Inbox) deliverCall(h *Header, m *Message) {
	to := in.endpoint
	if to.Err() != nil {
		in.bounce(m)
		return
	}
	var err error
	if h.Frame != FrameRequest {
		err = to.calls.control(h, m.payload)
		m.Left(err)
	} else if err = to.calls.violation(h.From, to.calls.admit(h)); err == nil {
		to.received(h)
		to.calls.arrived(h, &inbound{Request: Request{Body: m.payload}, message: m})
	} else {
		m.Left(err)
	}
	if err != nil {
		to.Fail(err)
	}
}

// Deliver takes a chunk and copies its bytes. After ErrNoSpace the chunk is to be delivered
// again; after any other error it is dropped, and the endpoint has ended if it was the peer's fault.
func (in *Inbox) Deliver(h *Header, chunk []byte) error {
	if h.From < 0 || h.From >= in.endpoint.Size() || h.To != in.endpoint.rank {
		return fmt.Errorf("%w: from rank %d to rank %d, for rank %d of %d", ErrFrame, h.From, h.To, in.endpoint.rank,
			in.endpoint.Size())
	}
	if !h.Frame.HasBody() {
		return in.Control(h, chunk)
	}
	at, err := in.place(h, false, nil)
	switch {
	case err == ErrNoSpace:
		return err
	case err != nil:
		in.endpoint.Fail(err)
		return err
	}
	at.Put(0, chunk)
	in.Release(at, h, nil)
	return nil
}

// PeerClosed records that a peer has closed its endpoint: nothing more comes from it. Messages
// of its that were not copied yet are copied now, whatever the limit.
func (in *Inbox) PeerClosed(peer int) {
	in.copyUncopied(peer)
	in.endPeer(peer, in.endpoint.lost(peer, ErrPeerClosed))
}

// PeerFailed records that a peer has failed: this endpoint fails with the same root. Messages
// of its that were not copied yet fail.
func (in *Inbox) PeerFailed(peer int, cause error) {
	in.withdraw(peer, cause)
	in.endpoint.Fail(root(peer, cause))
}

// PeerLost records that a peer cannot be reached any more, and why: this endpoint fails.
func (in *Inbox) PeerLost(peer int, cause error) { in.endpoint.Fail(in.endpoint.lost(peer, cause)) }

// post posts a receive. An error is one that ends the endpoint; the wait is then ended
// with the endpoint.
func (in *Inbox) post(from int, key Key, r *receive) error {
	p := r.pending
	in.mu.Lock()
	s := slot{from, FrameMessage, key}
	l := in.mu.slots[s]
	var done *receive
	var err error
	switch {
	case in.mu.failed != nil:
		p.finish(in.mu.failed)
	case l == nil && in.mu.gone[from] != nil:
		p.finish(in.mu.gone[from])
	case l == nil:
		in.mu.slots[s] = r
		in.spaceMade()
	case l.pending != nil:
		p.finish(fmt.Errorf("wire: two receives for one message from rank %d: %v", from, key))
	default:
		// Chunks that arrive from now on go to the receiver. Those before are copied when
		// all are in, because a transport may still be writing them.
		l.into, l.atMost, l.kind, l.add, l.pending = r.into, r.atMost, r.kind, r.add, p
		if err = l.fits(); err == nil {
			l.joined = true
			done = in.takeIfWhole(s, l)
		}
	}
	in.mu.Unlock()
	in.posts.Add(1)
	in.finish(done)
	return err
}

// Wanted reports whether a message has a place already, or no message will have one.
func (in *Inbox) Wanted(h *Header) bool {
	if h.Frame != FrameMessage {
		return true
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.mu.failed != nil || in.mu.slots[slotOf(h)] != nil
}

// Place returns where the chunk of h belongs, to be filled before Release is called with it,
// or ErrNoSpace.
func (in *Inbox) Place(h *Header) (Place, error) { return in.place(h, false, nil) }

// AwaitPlace is Place, but waits until there is space.
func (in *Inbox) AwaitPlace(h *Header) (Place, error) { return in.place(h, true, nil) }

// place is Place or AwaitPlace. Without space it keeps m, if given, until a receive is posted.
func (in *Inbox) place(h *Header, wait bool, m *Message) (Place, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	s := slotOf(h)
	if s.frame != FrameMessage {
		return in.placeCall(s, h)
	}
	r := in.mu.slots[s]
	for ; ; r = in.mu.slots[s] {
		if in.mu.failed != nil {
			return Place{}, in.mu.failed
		}
		if r != nil || in.mu.unexpected[h.From]+h.Length <= in.limit {
			break
		}
		if !wait {
			in.keep(s, h, m)
			return Place{}, ErrNoSpace
		}
		in.mu.full = true
		in.mu.change.Wait()
	}
	if r == nil {
		r = &receive{early: true}
		in.mu.unexpected[h.From] += h.Length
		in.mu.slots[s] = r
	}
	if err := r.begin(h); err != nil {
		return Place{}, err
	}
	r.placed += int64(h.Chunk)
	r.writing++
	return in.at(r, h), nil
}

// keep remembers that there was no space.
// REQUIRES: mu held.
func (in *Inbox) keep(s slot, h *Header, m *Message) {
	if m == nil {
		in.mu.full = true
		return
	}
	in.mu.slots[s] = &receive{head: *h, begun: true, uncopied: m, placed: h.Length}
}

// begin checks that the chunk of h belongs to this message.
func (r *receive) begin(h *Header) error {
	if !r.begun {
		r.head, r.begun = *h, true
		if r.pending != nil {
			if err := r.fits(); err != nil {
				return err
			}
		}
	}
	switch {
	case r.head.Number != h.Number || r.head.Length != h.Length || r.placed+int64(h.Chunk) > h.Length:
		return fmt.Errorf("wire: two messages from rank %d to rank %d have the same key: %v %v",
			h.From, h.To, h.Kind, h.Key)
	case r.add != nil:
		return r.between(h.Offset)
	}
	return nil
}

// between checks that a chunk that is added begins between two numbers.
func (r *receive) between(offset int64) error {
	if offset%numberSize != 0 {
		return fmt.Errorf("%w: a chunk from rank %d begins at %d, within a number", ErrFrame, r.head.From, offset)
	}
	return nil
}

// fits checks what has begun to arrive against the receive that was posted. They differ
// only by a mistake in the program above, which must not go unseen.
func (r *receive) fits() error {
	h := &r.head
	switch {
	case r.atMost && h.Length > int64(len(r.into)):
		return fmt.Errorf("wire: rank %d sent %s where rank %d asked for at most %d: %v (%v)",
			h.From, event.Tally(h.Length, "byte"), h.To, len(r.into), r.kind, h.Key)
	case !r.atMost && h.Length != int64(len(r.into)):
		return fmt.Errorf("wire: rank %d sent %s where rank %d asked for %d: %v (%v)",
			h.From, event.Tally(h.Length, "byte"), h.To, len(r.into), r.kind, h.Key)
	case h.Kind != r.kind:
		return fmt.Errorf("wire: rank %d sent %v where rank %d asked for %v: %v", h.From, h.Kind, h.To, r.kind, h.Key)
	}
	for _, e := range r.held {
		if err := r.between(e.lo); r.add != nil && err != nil {
			return err
		}
	}
	return nil
}

// Release records that the chunk of h is in its place, or, with an error, that it
// will not come.
func (in *Inbox) Release(p Place, h *Header, err error) {
	in.settle(&p, err)
	in.mu.Lock()
	s, r := slotOf(h), p.receive
	r.writing--
	var done *receive
	switch {
	case r.failed != nil:
		if r.writing == 0 {
			delete(in.mu.slots, s)
			r.end(r.failed)
		}
	case err == nil:
		r.arrived += int64(h.Chunk)
		if r.whole() {
			in.endpoint.received(h)
		}
		done = in.takeIfWhole(s, r)
	}
	if r.dropped != nil && r.writing == 0 {
		r.call.ended(nil, r.dropped)
	}
	in.mu.Unlock()
	in.finish(done)
}

func (r *receive) whole() bool {
	return r.begun && r.arrived == r.head.Length && r.writing == 0
}

// takeIfWhole takes out a message that was received and is all there, for finish.
// REQUIRES: mu held.
func (in *Inbox) takeIfWhole(s slot, r *receive) *receive {
	if s.frame != FrameRequest && r.pending == nil || r.uncopied == nil && !r.whole() {
		return nil
	}
	delete(in.mu.slots, s)
	if r.early {
		in.mu.unexpected[s.from] -= r.head.Length
		in.spaceMade()
	}
	return r
}

// finish ends the waits of a message that was taken out. The copy of what came
// early is made here, without the lock.
func (in *Inbox) finish(r *receive) {
	switch {
	case r == nil:
		return
	case r.head.Frame == FrameRequest:
		in.endpoint.calls.arrived(&r.head, &inbound{Request: Request{Body: r.request}, pool: true})
		return
	case r.call != nil:
		in.endpoint.calls.responded(r.call, r.into, nil)
		return
	}
	r.pending.bytes = int(r.head.Length)
	whole := Place{into: r.into, add: r.add}
	for _, e := range r.held {
		whole.Put(int(e.lo), e.bytes)
		in.pool.give(e.bytes)
	}
	if r.uncopied != nil {
		whole.Put(0, r.uncopied.payload)
		in.endpoint.received(&r.head)
	}
	r.end(nil)
}

func (r *receive) end(err error) {
	if r.call != nil {
		r.call.ended(nil, err)
		return
	}
	if r.pending != nil {
		r.pending.finish(err)
	}
	if r.uncopied != nil {
		r.uncopied.Left(err)
	}
}

// spaceMade wakes those who had no space.
// REQUIRES: mu held.
func (in *Inbox) spaceMade() {
	if in.mu.full {
		in.mu.full = false
		in.mu.freed++
		in.mu.change.Broadcast()
		in.onSpace()
	}
}

// SpaceMade counts the times that space was made, for AwaitSpace.
func (in *Inbox) SpaceMade() uint64 {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.mu.freed
}

// AwaitSpace returns when space was made since, or the endpoint has failed.
func (in *Inbox) AwaitSpace(seen uint64) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for in.mu.freed == seen && in.mu.failed == nil {
		in.mu.change.Wait()
	}
}

// copyUncopied copies what a peer in this process was kept waiting with, whatever the limit:
// these are its last messages.
func (in *Inbox) copyUncopied(from int) {
	in.eachUncopied(from, func(r *receive) {
		r.early, r.held = true, []extent{{0, bytes.Clone(r.uncopied.payload)}}
		r.arrived = r.head.Length
		in.mu.unexpected[from] += r.head.Length
		in.endpoint.received(&r.head)
		r.uncopied.Left(nil)
		r.uncopied = nil
	})
}

// withdraw gives back what a peer in this process was kept waiting with.
func (in *Inbox) withdraw(from int, cause error) {
	in.eachUncopied(from, func(r *receive) { r.end(cause) })
}

func (in *Inbox) eachUncopied(from int, do func(*receive)) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for s, r := range in.mu.slots {
		if s.from != from || r.uncopied == nil {
			continue
		}
		if do(r); r.uncopied != nil {
			delete(in.mu.slots, s)
		}
	}
}

// endPeer ends what is expected of a peer from which nothing more will come.
// What came whole can still be received.
func (in *Inbox) endPeer(from int, cause error) {
	defer in.endpoint.calls.endPeer(from, cause)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.mu.gone[from] = cause
	for s, r := range in.mu.slots {
		if s.from == from && !r.whole() {
			if r.early {
				in.mu.unexpected[from] -= r.head.Length
			}
			in.drop(s, r, cause)
		}
	}
	in.spaceMade()
}

// fail ends every receive.
func (in *Inbox) fail(cause error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.mu.failed != nil {
		return
	}
	in.mu.failed = cause
	for s, r := range in.mu.slots {
		in.drop(s, r, cause)
	}
	in.mu.change.Broadcast()
}

// drop ends a receive, at once or when no transport writes into its buffer any more.
// REQUIRES: mu held.
func (in *Inbox) drop(s slot, r *receive, cause error) {
	if r.writing > 0 {
		r.failed = cause
		return
	}
	delete(in.mu.slots, s)
	r.end(cause)
}
