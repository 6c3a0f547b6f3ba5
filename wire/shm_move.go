package wire

// pump moves queued chunks into the ring, about so many bytes, and says whether it
// moved any. If the ring is full the peer rings when it is not.
func (p *memPeer) pump(limit int) bool {
	moved, full := 0, false
	for moved < limit && !full && (p.queue.waiting() || p.owing.Load() > 0) && p.pumping.TryLock() {
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
// the ring is full, which it says.
// REQUIRES: pumping held.
func (p *memPeer) fill(limit int) (moved int, full bool) {
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

// send pushes a chunk, or the offer of one, and says how many bytes that took.
func (p *memPeer) send(c *Chunk) int {
	h := c.header()
	if p.offered(c.m) {
		p.offer(&h, c.bytes)
		return 2 * recordHead
	}
	p.push(&h, c.bytes)
	p.queue.Lock()
	p.queue.written(c, nil)
	p.queue.Unlock()
	return recordHead + len(c.bytes)
}

// push writes a record and wakes the peer if it sleeps.
func (p *memPeer) push(h *header, chunk []byte) {
	p.out.push(h, chunk)
	if p.out.asleep.Load() == 1 && p.out.asleep.CompareAndSwap(1, 0) {
		p.bell.ring()
	}
	p.endpoint.ledger.addOverhead(headerSize)
}

// cut takes a chunk that fits. If it takes none it says whether that
// is for want of space.
// REQUIRES: pumping held.
func (p *memPeer) cut() (c Chunk, ok, full bool) {
	q := p.queue
	q.Lock()
	defer q.Unlock()
	if q.empty() {
		return Chunk{}, false, false
	}
	// Chunks smaller than this cost more than waiting for space.
	m := q.first()
	rest := m.length - m.next
	want, most := int(min(rest, chunkSize/4)), int(min(rest, chunkSize))
	if p.offered(m) {
		want, most = offerSize, offerSize
	}
	space := p.out.knownSpace()
	if space < most {
		space = p.out.space()
	}
	if space < want {
		p.out.starved.Store(1)
		if space = p.out.space(); space < want {
			return Chunk{}, false, true
		}
	}
	if !p.offered(m) {
		return q.take(min(space, most)), true, false
	}
	c = q.take(int(m.length))
	p.lent[m.number] = c
	return c, true, false
}

// offered says whether a message is for the peer to read.
func (p *memPeer) offered(m *Message) bool { return p.lends && m.length >= offerFrom }

// take moves what is in the ring to where it belongs, and says whether it moved
// anything.
func (p *memPeer) take() bool {
	if p.stalled.Load() && p.kept.Load() == 0 || !p.reading.TryLock() {
		return false
	}
	moved := p.takeAll()
	p.reading.Unlock()
	return moved
}

// takeAll is take, but not without end.
// REQUIRES: reading held.
func (p *memPeer) takeAll() bool {
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
func (p *memPeer) inOrder(next *offer) bool {
	if next == nil {
		return false
	}
	var h header
	ok, err := p.in.peek(&h)
	return ok && err == nil && !h.offered && h.frame.hasBody() &&
		!p.endpoint.opt.Order.Before(h.key.Coflow, next.key.Coflow)
}

// drain goes on until the ring is empty, however long it takes until receives are posted
// for what does not fit: the peer has said goodbye, and these are its last messages.
func (p *memPeer) drain() {
	for {
		seen := p.endpoint.inbox.changes()
		p.stalled.Store(false)
		p.reading.Lock()
		for p.in != nil && p.takeOne() > 0 {
		}
		empty := p.in == nil || p.in.empty()
		p.reading.Unlock()
		if empty || p.endpoint.Err() != nil {
			return
		}
		p.endpoint.inbox.await(seen)
	}
}

// takeOne moves one record.
// REQUIRES: reading held.
func (p *memPeer) takeOne() int {
	var h header
	ok, err := p.in.peek(&h)
	if err == nil && ok {
		err = h.belongs(p.peer, p.endpoint.rank)
	}
	if err == nil && ok && (h.offered || !h.frame.hasBody()) {
		if err = p.note(&h); err == nil {
			p.free(&h)
			return recordHead
		}
	}
	if err != nil {
		p.endpoint.Fail(p.endpoint.lost(p.peer, err))
	}
	if err != nil || !ok {
		return 0
	}
	at, err := p.endpoint.inbox.place(&h, false, nil)
	if err == ErrNoSpace {
		p.stalled.Store(true) // before place looks again, so that space made after is seen
		at, err = p.endpoint.inbox.place(&h, false, nil)
		if err == ErrNoSpace {
			return 0
		}
		p.stalled.Store(false)
	}
	if err != nil {
		p.endpoint.Fail(err) // and the record is dropped
	} else {
		first, rest := p.in.chunk(h.chunk)
		at.put(0, first)
		at.put(len(first), rest)
		p.endpoint.inbox.release(at, &h, nil)
	}
	p.free(&h)
	return recordHead + h.chunk
}

// note takes in a record that is no message.
func (p *memPeer) note(h *header) error {
	switch {
	case h.frame == frameTaken:
		return p.returned(h.number)
	case h.offered && p.pid != 0:
		p.keepOffer(h)
		return nil
	case h.offered || h.frame < frameRequest:
		return ErrFrame
	}
	first, rest := p.in.chunk(h.chunk)
	text := append(append(make([]byte, 0, h.chunk), first...), rest...)
	if err := p.endpoint.calls.control(h, text); err != nil {
		p.endpoint.Fail(err)
	}
	return nil
}

// free makes space for the writer.
func (p *memPeer) free(h *header) {
	p.in.pop(h)
	if p.in.starved.Load() == 1 && p.in.spacious() && p.in.starved.CompareAndSwap(1, 0) {
		p.bell.ring()
	}
}
