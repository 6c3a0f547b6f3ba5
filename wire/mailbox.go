package wire

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// mailbox brings together what arrives and what is asked for. Chunks of a message
// that was asked for go straight into the asker's buffer; others wait in buffers
// of our own, up to a limit for each peer, beyond which the transport stops
// reading from that peer until somebody asks.
type mailbox struct {
	limit int64
	node  *node // counts every message that is whole
	// room is called when a transport that was told errNoRoom should try again.
	room   func()
	asks   atomic.Uint64 // how many times ask was called
	spares spares
	mu     struct {
		sync.Mutex
		slots  map[slot]*letter
		early  map[int]int64 // bytes held that nobody has asked for, by peer
		gone   map[int]error // peers from which nothing more will come
		full   bool          // somebody was told errNoRoom, or waits
		made   uint64        // how many times room was made since
		change sync.Cond     // of anything that makes room
		failed error
	}
}

type slot struct {
	from int
	key  Key
}

// letter is a message that has been asked for, or has begun to arrive, or both.
type letter struct {
	into    []byte                  // the asker's
	atMost  bool                    // the message may be shorter than into
	kind    Kind                    // asked for
	add     func(into, part []byte) // nil: it is written over what is there
	pending *Pending

	head    header   // of a message that has begun to arrive
	begun   bool     // something has arrived
	early   []byte   // ours, when nobody had asked
	held    []extent // what of it lies there
	joined  bool     // somebody has asked since: the rest goes to him
	waiting *message // the sender's own, in this process, when there was no room
	placed  int64    // bytes that have a place
	arrived int64    // bytes that are there
	writing int      // chunks being copied in by transports
	failed  error    // meanwhile: whoever is writing ends the wait
}

// extent is a part of a message.
type extent struct{ lo, hi int64 }

// errNoRoom tells a transport that a message nobody has asked for must wait.
var errNoRoom = errors.New("no room for a message nobody has asked for")

func newMailbox(n *node) *mailbox {
	b := &mailbox{limit: n.opt.EarlyLimit, node: n, room: func() {}}
	b.mu.slots, b.mu.early, b.mu.gone = map[slot]*letter{}, map[int]int64{}, map[int]error{}
	b.mu.change.L = &b.mu.Mutex
	return b
}

// ask posts a receive, which is a letter that has not begun to arrive. An error is
// one that ends the endpoint; the wait is then left to whoever ends it.
func (b *mailbox) ask(from int, key Key, a *letter) error {
	p := a.pending
	b.mu.Lock()
	s := slot{from, key}
	l := b.mu.slots[s]
	var done *letter
	var err error
	switch {
	case b.mu.failed != nil:
		p.finish(b.mu.failed)
	case l == nil && b.mu.gone[from] != nil:
		p.finish(b.mu.gone[from])
	case l == nil:
		b.mu.slots[s] = a
		b.roomMade()
	case l.pending != nil:
		p.finish(fmt.Errorf("wire: two receives for one message from rank %d: %v", from, key))
	default:
		// Chunks that arrive from now on go to the asker. Those before are copied when
		// all are in, because a transport may still be writing them.
		l.into, l.atMost, l.kind, l.add, l.pending = a.into, a.atMost, a.kind, a.add, p
		if err = l.fits(); err == nil {
			l.joined = true
			done = b.takeIfWhole(s, l)
		}
	}
	b.mu.Unlock()
	b.asks.Add(1)
	b.finish(done)
	return err
}

// wanted says whether a message has a place already, or no message will have one.
func (b *mailbox) wanted(h *header) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.failed != nil || b.mu.slots[slot{h.from, h.key}] != nil
}

// place returns where the chunk of h belongs, to be filled before release is
// called with it. Where there is no room for it yet: with wait it waits; without, it says
// errNoRoom, and keeps m, if given, until somebody asks.
func (b *mailbox) place(h *header, wait bool, m *message) (place, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := slot{h.from, h.key}
	l := b.mu.slots[s]
	for ; ; l = b.mu.slots[s] {
		if b.mu.failed != nil {
			return place{}, b.mu.failed
		}
		if l != nil || b.mu.early[h.from]+h.length <= b.limit {
			break
		}
		if !wait {
			b.keep(s, h, m)
			return place{}, errNoRoom
		}
		b.mu.full = true
		b.mu.change.Wait()
	}
	if l == nil {
		l = &letter{early: b.spares.take(int(h.length))}
		b.mu.early[h.from] += h.length
		b.mu.slots[s] = l
	}
	if err := l.begin(h); err != nil {
		return place{}, err
	}
	l.placed += int64(h.chunk)
	l.writing++
	return l.at(h), nil
}

// keep remembers that there was no room.
// REQUIRES: mu held.
func (b *mailbox) keep(s slot, h *header, m *message) {
	if m == nil {
		b.mu.full = true
		return
	}
	b.mu.slots[s] = &letter{head: *h, begun: true, waiting: m, placed: h.length}
}

// begin checks that the chunk of h belongs to this letter.
func (l *letter) begin(h *header) error {
	if !l.begun {
		l.head, l.begun = *h, true
		if l.pending != nil {
			if err := l.fits(); err != nil {
				return err
			}
		}
	}
	switch {
	case l.head.number != h.number || l.head.length != h.length || l.placed+int64(h.chunk) > h.length:
		return fmt.Errorf("wire: two messages from rank %d to rank %d have the same name: %v %v", h.from, h.to, h.kind, h.key)
	case l.add != nil:
		return l.between(h.offset)
	}
	return nil
}

// between checks that a chunk that is added begins between two numbers.
func (l *letter) between(offset int64) error {
	if offset%numberSize != 0 {
		return fmt.Errorf("%w: a chunk from rank %d begins at %d, within a number", ErrFrame, l.head.from, offset)
	}
	return nil
}

// fits checks what has begun to arrive against what was asked for. They differ
// only by a mistake in the program above, which must not go unseen.
func (l *letter) fits() error {
	h := &l.head
	switch {
	case l.atMost && h.length > int64(len(l.into)):
		return fmt.Errorf("wire: rank %d sent %d bytes where rank %d asked for at most %d: %v (%v)", h.from, h.length, h.to, len(l.into), l.kind, h.key)
	case !l.atMost && h.length != int64(len(l.into)):
		return fmt.Errorf("wire: rank %d sent %d bytes where rank %d asked for %d: %v (%v)", h.from, h.length, h.to, len(l.into), l.kind, h.key)
	case h.kind != l.kind:
		return fmt.Errorf("wire: rank %d sent %v where rank %d asked for %v: %v", h.from, h.kind, h.to, l.kind, h.key)
	}
	for _, e := range l.held {
		if err := l.between(e.lo); l.add != nil && err != nil {
			return err
		}
	}
	return nil
}

// release says that the chunk of h is in its place, or, with an error, that it
// will not come.
func (b *mailbox) release(p place, h *header, err error) {
	b.settle(&p, err)
	b.mu.Lock()
	s, l := slot{h.from, h.key}, p.letter
	l.writing--
	var done *letter
	switch {
	case l.failed != nil:
		if l.writing == 0 {
			delete(b.mu.slots, s)
			l.end(l.failed)
		}
	case err == nil:
		l.arrived += int64(h.chunk)
		if l.whole() {
			b.node.received(h)
		}
		done = b.takeIfWhole(s, l)
	}
	b.mu.Unlock()
	b.finish(done)
}

func (l *letter) whole() bool {
	return l.begun && l.arrived == l.head.length && l.writing == 0
}

// takeIfWhole takes out a letter that is asked for and all there, for finish.
// REQUIRES: mu held.
func (b *mailbox) takeIfWhole(s slot, l *letter) *letter {
	if l.pending == nil || l.waiting == nil && !l.whole() {
		return nil
	}
	delete(b.mu.slots, s)
	if l.early != nil {
		b.mu.early[s.from] -= l.head.length
		b.roomMade()
	}
	return l
}

// finish ends the waits of a letter that was taken out. The copy of what came
// early is made here, without the lock.
func (b *mailbox) finish(l *letter) {
	if l == nil {
		return
	}
	l.pending.bytes = int(l.head.length)
	whole := place{into: l.into, add: l.add}
	if l.early != nil {
		for _, e := range l.held {
			whole.put(int(e.lo), l.early[e.lo:e.hi])
		}
		b.spares.give(l.early)
	}
	if l.waiting != nil {
		whole.put(0, l.waiting.payload)
		b.node.received(&l.head)
	}
	l.end(nil)
}

func (l *letter) end(err error) {
	if l.pending != nil {
		l.pending.finish(err)
	}
	if l.waiting != nil {
		l.waiting.pending.finish(err)
	}
}

// roomMade wakes those who had no room.
// REQUIRES: mu held.
func (b *mailbox) roomMade() {
	if b.mu.full {
		b.mu.full = false
		b.mu.made++
		b.mu.change.Broadcast()
		b.room()
	}
}

// changes counts the times that room was made, for await.
func (b *mailbox) changes() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.mu.made
}

// await returns when room was made since, or the mailbox has failed.
func (b *mailbox) await(seen uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.mu.made == seen && b.mu.failed == nil {
		b.mu.change.Wait()
	}
}

// takeIn makes copies of what a peer in this process had no room for, whatever
// the limit: they are its last words.
func (b *mailbox) takeIn(from int) {
	b.eachKept(from, func(l *letter) {
		l.early, l.held = bytes.Clone(l.waiting.payload), []extent{{0, l.head.length}}
		l.arrived = l.head.length
		b.mu.early[from] += l.head.length
		b.node.received(&l.head)
		l.waiting.pending.finish(nil)
		l.waiting = nil
	})
}

// withdraw gives back what a peer in this process had no room for.
func (b *mailbox) withdraw(from int, cause error) {
	b.eachKept(from, func(l *letter) { l.end(cause) })
}

func (b *mailbox) eachKept(from int, do func(*letter)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for s, l := range b.mu.slots {
		if s.from != from || l.waiting == nil {
			continue
		}
		if do(l); l.waiting != nil {
			delete(b.mu.slots, s)
		}
	}
}

// endPeer ends what is expected of a peer from which nothing more will come.
// What came whole can still be asked for.
func (b *mailbox) endPeer(from int, cause error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.mu.gone[from] = cause
	for s, l := range b.mu.slots {
		if s.from == from && !l.whole() {
			if l.early != nil {
				b.mu.early[from] -= l.head.length
			}
			b.drop(s, l, cause)
		}
	}
	b.roomMade()
}

// fail ends every receive.
func (b *mailbox) fail(cause error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.failed != nil {
		return
	}
	b.mu.failed = cause
	for s, l := range b.mu.slots {
		b.drop(s, l, cause)
	}
	b.mu.change.Broadcast()
}

// drop ends a letter, at once or when no transport writes into its buffer any more.
// REQUIRES: mu held.
func (b *mailbox) drop(s slot, l *letter, cause error) {
	if l.writing > 0 {
		l.failed = cause
		return
	}
	delete(b.mu.slots, s)
	l.end(cause)
}
