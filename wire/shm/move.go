package shm

import "starling/wire"

// pump moves queued chunks into the ring, about limit bytes, and reports whether it
// moved any. If the ring is full the peer notifies us when there is space.
func (p *Peer) pump(limit int) bool {
	moved, full := 0, false
	for moved < limit && !full && (p.queue.Waiting() || p.owing.Load() > 0) && p.pumping.TryLock() {
		n := 0
		if full = p.out == nil; !full {
			n, full = p.fill(limit - moved)
		}
		p.pumping.Unlock()
		moved += n
		// Once more: a message may have been queued after we looked and before we
		// unlocked, by a goroutine that found us at it and left it to us.
	}
	return moved > 0
}

// fill pushes answers and chunks until nothing is queued, the limit is reached, or
// the ring is full, which it reports.
// REQUIRES: pumping held.
func (p *Peer) fill(limit int) (moved int, full bool) {
	if moved, full = p.settle(); full {
		return moved, true
	}
	for moved < limit {
		c, ok, full := p.cut()
		if !ok {
			return moved, full
		}
		moved += p.send(&c)
	}
	return moved, false
}

// send pushes a chunk, or the offer of one, and returns how many bytes that took.
func (p *Peer) send(c *wire.Chunk) int {
	h := c.Header()
	if p.offered(c.Message()) {
		p.offer(&h, c.Bytes())
		return 2 * recordHead
	}
	p.push(&h, c.Bytes())
	p.queue.Sent(*c, nil)
	return recordHead + len(c.Bytes())
}

// push writes a record and wakes the peer if it sleeps.
func (p *Peer) push(h *wire.Header, chunk []byte) {
	p.out.push(h, chunk)
	if p.out.asleep.Load() == 1 && p.out.asleep.CompareAndSwap(1, 0) {
		p.notifier.notify()
	}
	p.inbox.Overhead(wire.HeaderSize)
}

// cut takes a chunk that fits. If it takes none it reports whether the ring is full.
// REQUIRES: pumping held.
func (p *Peer) cut() (c wire.Chunk, ok, full bool) {
	q := p.queue
	q.Lock()
	defer q.Unlock()
	if q.Empty() {
		return wire.Chunk{}, false, false
	}
	// Chunks smaller than this cost more than waiting for space.
	m := q.First()
	rest := m.Rest()
	want, most := int(min(rest, wire.ChunkSize/4)), int(min(rest, wire.ChunkSize))
	if p.offered(m) {
		want, most = wire.OfferSize, wire.OfferSize
	}
	space := p.out.knownSpace()
	if space < most {
		space = p.out.space()
	}
	if space < want {
		p.out.starved.Store(1)
		if space = p.out.space(); space < want {
			return wire.Chunk{}, false, true
		}
	}
	if !p.offered(m) {
		return q.Cut(min(space, most)), true, false
	}
	c = q.Cut(m.Len())
	p.lent[m.Number()] = c
	return c, true, false
}

// offered reports whether the peer reads a message from this process's memory.
func (p *Peer) offered(m *wire.Message) bool { return p.lends && m.Len() >= offerFrom }

// take moves what is in the ring to where it belongs, and reports whether it moved
// anything.
func (p *Peer) take() bool {
	if p.stalled.Load() && p.kept.Load() == 0 || !p.reading.TryLock() {
		return false
	}
	moved := p.takeAll()
	p.reading.Unlock()
	return moved
}

// takeAll is take, but not without end.
// REQUIRES: reading held.
func (p *Peer) takeAll() bool {
	moved := 0
	for p.in != nil && moved < ringSize {
		n, next := p.pull()
		if !p.stalled.Load() && !p.inOrder(next) {
			n += p.takeOne()
		}
		if n == 0 {
			break
		}
		moved += n
	}
	return moved > 0
}

// inOrder reports whether the next record has to wait for the rest of an offer that was
// sent before it: a message that the order does not let overtake.
// REQUIRES: reading held.
func (p *Peer) inOrder(next *offer) bool {
	if next == nil {
		return false
	}
	var h wire.Header
	ok, err := p.in.peek(&h)
	return ok && err == nil && !h.Offered && h.Frame.HasBody() &&
		!p.inbox.Options().Order.Before(h.Key.Coflow, next.Key.Coflow)
}

// Drain goes on until the ring is empty, however long it takes until receives are posted
// for what does not fit: the peer has sent its goodbye, and these are its last messages.
func (p *Peer) Drain() {
	for {
		seen := p.inbox.SpaceMade()
		p.stalled.Store(false)
		p.reading.Lock()
		for p.in != nil && p.takeOne() > 0 {
		}
		empty := p.in == nil || p.in.empty()
		p.reading.Unlock()
		if empty || p.inbox.Err() != nil {
			return
		}
		p.inbox.AwaitSpace(seen)
	}
}

// takeOne moves one record.
// REQUIRES: reading held.
func (p *Peer) takeOne() int {
	var h wire.Header
	ok, err := p.in.peek(&h)
	if err == nil && ok {
		err = h.Belongs(p.peer, p.inbox.Rank())
	}
	if err == nil && ok && (h.Offered || !h.Frame.HasBody()) {
		if err = p.note(&h); err == nil {
			p.free(&h)
			return recordHead
		}
	}
	if err != nil {
		p.inbox.PeerLost(p.peer, err)
	}
	if err != nil || !ok {
		return 0
	}
	at, err := p.inbox.Place(&h)
	if err == wire.ErrNoSpace {
		p.stalled.Store(true) // before place looks again, so that space made after is seen
		at, err = p.inbox.Place(&h)
		if err == wire.ErrNoSpace {
			return 0
		}
		p.stalled.Store(false)
	}
	if err != nil {
		p.inbox.Fail(err) // and the record is dropped
	} else {
		first, rest := p.in.chunk(h.Chunk)
		at.Put(0, first)
		at.Put(len(first), rest)
		p.inbox.Release(at, &h, nil)
	}
	p.free(&h)
	return recordHead + h.Chunk
}

// note takes in a record that is not a message.
func (p *Peer) note(h *wire.Header) error {
	switch {
	case h.Frame == wire.FrameTaken:
		return p.returned(h.Number)
	case h.Offered && p.pid != 0:
		p.keepOffer(h)
		return nil
	case h.Offered || h.Frame < wire.FrameRequest:
		return wire.ErrFrame
	}
	first, rest := p.in.chunk(h.Chunk)
	text := append(append(make([]byte, 0, h.Chunk), first...), rest...)
	p.inbox.Control(h, text)
	return nil
}

// free makes space for the writer.
func (p *Peer) free(h *wire.Header) {
	p.in.pop(h)
	if p.in.starved.Load() == 1 && p.in.spacious() && p.in.starved.CompareAndSwap(1, 0) {
		p.notifier.notify()
	}
}
