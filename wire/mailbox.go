package wire

import (
	"fmt"
	"sync"
)

// mailbox brings together what arrives and what is asked for. Chunks of a message
// that was asked for go straight into the asker's buffer; others wait in buffers
// of our own, up to a limit, beyond which the transport stops reading from that
// peer until somebody asks.
type mailbox struct {
	limit int64
	mu    struct {
		sync.Mutex
		slots  map[slot]*letter
		early  int64 // bytes held that nobody has asked for
		room   sync.Cond
		failed error
	}
}

type slot struct {
	from int
	key  Key
}

// letter is a message that has been asked for, or has begun to arrive, or both.
type letter struct {
	into    []byte // the asker's
	pending *Pending
	early   []byte // ours, when nobody had asked
	length  int64  // -1: nothing has arrived
	arrived int64
	writing int // chunks being copied in by transports
}

func newMailbox(limit int64) *mailbox {
	b := &mailbox{limit: limit}
	b.mu.slots = map[slot]*letter{}
	b.mu.room.L = &b.mu.Mutex
	return b
}

// ask posts a receive.
func (b *mailbox) ask(from int, key Key, into []byte, p *Pending) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := slot{from, key}
	l := b.mu.slots[s]
	switch {
	case b.mu.failed != nil:
		p.finish(b.mu.failed)
		return
	case l == nil:
		b.mu.slots[s] = &letter{into: into, pending: p, length: -1}
		return
	case l.pending != nil:
		p.finish(fmt.Errorf("wire: two receives for one message from rank %d: %v", from, key))
		return
	}
	l.into, l.pending = into, p
	if l.length != int64(len(into)) {
		b.wrongSize(s, l)
		return
	}
	// Chunks that arrive from now on still go to the early buffer, because a
	// transport may be writing there; the copy is made when all are in.
	b.finishIfWhole(s, l)
}

// place returns where the chunk of h belongs, to be written before arrived is called.
func (b *mailbox) place(h *header) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := slot{h.from, h.key}
	for {
		if b.mu.failed != nil {
			return nil, b.mu.failed
		}
		l := b.mu.slots[s]
		if l == nil || l.length < 0 && l.pending == nil {
			// Nobody has asked. A first chunk waits for room, except that a lone
			// message larger than the limit is let through.
			if b.mu.early > 0 && b.mu.early+h.length > b.limit {
				b.mu.room.Wait()
				continue
			}
			l = &letter{early: make([]byte, h.length), length: h.length}
			b.mu.early += h.length
			b.mu.slots[s] = l
		}
		if l.length < 0 {
			l.length = h.length
			if h.length != int64(len(l.into)) {
				b.wrongSize(s, l)
				return nil, l.pending.err
			}
		}
		if l.length != h.length || l.arrived+int64(h.chunk) > l.length {
			return nil, fmt.Errorf("%w: more than one message from rank %d is called %v", ErrFrame, h.from, h.key)
		}
		l.writing++
		if l.early != nil {
			return l.early[h.offset : h.offset+int64(h.chunk)], nil
		}
		return l.into[h.offset : h.offset+int64(h.chunk)], nil
	}
}

// arrived says that the chunk of h is in its place. whole is true for the last.
func (b *mailbox) arrived(h *header) (whole bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := slot{h.from, h.key}
	l := b.mu.slots[s]
	if l == nil {
		return false // failed meanwhile
	}
	l.arrived += int64(h.chunk)
	l.writing--
	whole = l.arrived == l.length && l.writing == 0
	b.finishIfWhole(s, l)
	return whole
}

// finishIfWhole completes a receive whose message is all there.
// REQUIRES: mu held.
func (b *mailbox) finishIfWhole(s slot, l *letter) {
	if l.pending == nil || l.length < 0 || l.arrived < l.length || l.writing > 0 {
		return
	}
	if l.early != nil {
		copy(l.into, l.early)
		b.mu.early -= l.length
		b.mu.room.Broadcast()
	}
	delete(b.mu.slots, s)
	l.pending.finish(nil)
}

// wrongSize fails a receive that does not fit its message: a bug above us, which
// must not go unseen.
// REQUIRES: mu held.
func (b *mailbox) wrongSize(s slot, l *letter) {
	delete(b.mu.slots, s)
	l.pending.finish(fmt.Errorf("wire: a message of %d bytes came from rank %d where %d were asked for: %v", l.length, s.from, len(l.into), s.key))
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
		delete(b.mu.slots, s)
		if l.pending != nil {
			l.pending.finish(cause)
		}
	}
	b.mu.early = 0
	b.mu.room.Broadcast()
}
