package wire

// pump moves queued chunks into the ring, about so many bytes, and says whether it
// moved any. If the ring is full the peer rings when it is not.
func (p *memPeer) pump(limit int) bool {
	moved := 0
	for moved < limit && p.queue.waiting() && p.pumping.TryLock() {
		n := 0
		if p.out != nil {
			n = p.fill(limit - moved)
		}
		p.pumping.Unlock()
		if n == 0 {
			break
		}
		moved += n
		// Once more: a message may have been queued after we looked and before we
		// unlocked, by somebody who found us at it and left it to us.
	}
	return moved > 0
}

// fill pushes chunks until there is no more room, nothing queued, or the limit reached.
// REQUIRES: pumping held.
func (p *memPeer) fill(limit int) (moved int) {
	for moved < limit {
		c, ok := p.cut()
		if !ok {
			break
		}
		h := c.header()
		p.out.push(&h, c.bytes)
		if p.out.asleep.Load() == 1 && p.out.asleep.CompareAndSwap(1, 0) {
			p.bell.ring()
		}
		p.node.ledger.addOverhead(headerSize)
		p.queue.Lock()
		p.queue.written(&c, nil)
		p.queue.Unlock()
		moved += recordHead + len(c.bytes)
	}
	return moved
}

// cut takes a chunk for which there is room.
// REQUIRES: pumping held.
func (p *memPeer) cut() (chunk, bool) {
	q := p.queue
	q.Lock()
	defer q.Unlock()
	if len(q.heap) == 0 {
		return chunk{}, false
	}
	// Chunks smaller than this cost more than waiting for room.
	want := int(min(q.heap[0].length-q.heap[0].next, chunkSize/4))
	room := p.out.room()
	if room < want {
		p.out.starved.Store(1)
		if room = p.out.room(); room < want {
			return chunk{}, false
		}
	}
	return q.take(min(room, chunkSize)), true
}

// take moves what is in the ring to where it belongs, and says whether it moved
// anything.
func (p *memPeer) take() bool {
	if p.stalled.Load() || !p.reading.TryLock() {
		return false
	}
	defer p.reading.Unlock()
	moved := 0
	for p.in != nil && moved < ringSize {
		n := p.takeOne()
		if n == 0 {
			break
		}
		moved += n
	}
	return moved > 0
}

// drain goes on until the ring is empty, however long it takes until somebody asks
// for what there is no room for: the peer has said goodbye, and these are its last words.
func (p *memPeer) drain() {
	for {
		seen := p.node.box.changes()
		p.stalled.Store(false)
		p.reading.Lock()
		for p.in != nil && p.takeOne() > 0 {
		}
		empty := p.in == nil || p.in.empty()
		p.reading.Unlock()
		if empty || p.node.Err() != nil {
			return
		}
		p.node.box.await(seen)
	}
}

// takeOne moves one record.
// REQUIRES: reading held.
func (p *memPeer) takeOne() int {
	var h header
	ok, err := p.in.peek(&h)
	if err == nil && ok && (h.frame != frameMessage || h.from != p.peer || h.to != p.node.rank) {
		err = ErrFrame
	}
	if err != nil {
		p.node.Fail(p.node.lost(p.peer, err))
	}
	if err != nil || !ok {
		return 0
	}
	p.stalled.Store(true) // before place looks, so that room made after is seen
	into, err := p.node.box.place(&h, false, nil)
	if err == errNoRoom {
		return 0
	}
	p.stalled.Store(false)
	if err != nil {
		p.node.Fail(err) // and the record is dropped
	} else {
		p.in.copyTo(into)
		p.node.box.release(&h, nil)
	}
	p.in.pop(&h)
	if p.in.starved.Load() == 1 && p.in.spacious() && p.in.starved.CompareAndSwap(1, 0) {
		p.bell.ring()
	}
	return recordHead + h.chunk
}
