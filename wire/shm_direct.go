package wire

import (
	"encoding/binary"
	"time"
	"unsafe"
)

// A large message does not go through the ring, which would copy it twice. Where
// the kernel lets the peer read this process's memory (process_vm_readv; found out
// when joining), the ring carries an offer, with the address of the message. The
// peer reads it straight into the receiver's buffer and answers that it has.
//
// An offer without a receive costs nothing, so it waits a while for
// a receive before it is taken in early, as all others are. Posting the
// receive does not read it yet: the goroutine may have something to send first, for which the
// peer waits. It reads the message when it waits for it, or says that it will not; or a timer does.
const (
	// offerFrom is from where on one copy and an answer take less than two copies.
	offerFrom = 16 << 10
	// readStep is read at a time, before looking for something more urgent.
	readStep = 1 << 20
	// addStep is read at a time of what is added, so that it is still in the cache.
	addStep = 256 << 10
	// patience is how long an offer waits for a receive, at least.
	patience = 2 * time.Millisecond
	// offerSize is an offer's chunk: the address.
	offerSize = 8
)

// offer is a message in the peer's memory.
type offer struct {
	header        // offset: what was read so far
	at     uint64 // its address there
	asked  bool   // a receive was posted, or it is being taken in early
	old    bool   // it has waited
}

// offer pushes a record that says where a message lies.
// REQUIRES: pumping held.
func (p *memPeer) offer(h *header, payload []byte) {
	var at [offerSize]byte
	binary.LittleEndian.PutUint64(at[:], uint64(uintptr(unsafe.Pointer(unsafe.SliceData(payload)))))
	h.offered, h.chunk = true, offerSize
	p.push(h, at[:])
}

// returned is the peer's answer: it has read the message of that number.
func (p *memPeer) returned(number uint32) error {
	p.queue.Lock()
	defer p.queue.Unlock()
	c, ok := p.lent[number]
	if !ok {
		return ErrFrame
	}
	delete(p.lent, number)
	p.queue.written(&c, nil)
	return nil
}

// withdraw ends the wait of those whose messages the peer has not read. It may be
// reading them now, so it is told first that they are no longer what they were. Answers
// that did not fit are not waited for either.
func (p *memPeer) withdraw(cause error) {
	p.pumping.Lock()
	defer p.pumping.Unlock()
	if p.out != nil {
		p.out.withdrawn.Store(1)
	}
	p.queue.Lock()
	defer p.queue.Unlock()
	for _, c := range p.lent {
		p.queue.written(&c, cause)
	}
	clear(p.lent)
	p.queue.inFlight -= len(p.owed)
	p.owed = nil
	p.owing.Store(0)
	p.queue.wakeAll()
}

func (p *memPeer) fail(cause error) {
	p.tcpPeer.fail(cause)
	p.withdraw(cause)
}

// keepOffer remembers an offer until a receive is posted.
// REQUIRES: reading held.
func (p *memPeer) keepOffer(h *header) {
	at, _ := p.in.chunk(offerSize) // records begin at multiples of more than that
	p.offers = append(p.offers, offer{header: *h, at: binary.LittleEndian.Uint64(at)})
	p.offers[len(p.offers)-1].offered = false
	p.kept.Store(int32(len(p.offers)))
	p.seen = p.endpoint.inbox.posts.Load() - 1 // so that a goroutine polls
}

// pull reads what has a receive from the peer's memory, one step of the most urgent
// message. It returns how many bytes, and the most urgent offer that is left.
// REQUIRES: reading held.
func (p *memPeer) pull() (bytes int, next *offer) {
	if len(p.offers) == 0 {
		return 0, nil
	}
	best := p.mostUrgent()
	if best < 0 {
		p.hub.takeUnclaimed()
		return 0, nil
	}
	bytes = p.pullFrom(best)
	if best = p.mostUrgent(); best >= 0 && bytes > 0 {
		next = &p.offers[best]
	}
	return bytes, next
}

// mostUrgent of the offers that were asked for; -1: none.
func (p *memPeer) mostUrgent() int {
	asks := p.endpoint.inbox.posts.Load()
	best := -1
	for i := range p.offers {
		o := &p.offers[i]
		if !o.asked && asks != p.seen {
			o.asked = p.endpoint.inbox.wanted(&o.header)
		}
		if o.asked && (best < 0 || p.endpoint.opt.Order.Before(o.key.Coflow, p.offers[best].key.Coflow)) {
			best = i
		}
	}
	p.seen = asks
	return best
}

// pullFrom reads a step of an offer. One that does not fit stays.
func (p *memPeer) pullFrom(i int) int {
	o := &p.offers[i]
	h := o.header
	h.chunk = int(min(readStep, o.length-o.offset))
	at, err := p.endpoint.inbox.place(&h, false, nil)
	if err == ErrNoSpace {
		return 0
	}
	if err == nil {
		err = p.read(o.at+uint64(o.offset), &at)
		if p.in.withdrawn.Load() != 0 {
			err = errNoGoodbye
		}
		p.endpoint.inbox.release(at, &h, err)
		if err != nil && err != errNoGoodbye { // of which the connection tells more
			err = p.endpoint.lost(p.peer, err)
		}
	}
	o.offset += int64(h.chunk)
	if err != nil || o.offset == o.length {
		p.answer(o.number)
		p.offers = append(p.offers[:i], p.offers[i+1:]...)
		p.kept.Store(int32(len(p.offers)))
	}
	if err != nil && err != errNoGoodbye {
		p.endpoint.Fail(err)
	}
	return h.chunk
}

// read fills a place from an address on.
func (p *memPeer) read(from uint64, at *place) error {
	switch {
	case at.dropped():
		return nil
	case at.direct():
		return readFrom(p.pid, from, at.into)
	}
	if p.addend == nil {
		p.addend = make([]byte, addStep)
	}
	for offset := 0; offset < at.size; offset += addStep {
		part := p.addend[:min(addStep, at.size-offset)]
		if err := readFrom(p.pid, from+uint64(offset), part); err != nil {
			return err
		}
		at.put(offset, part)
	}
	return nil
}

// answer tells the peer that its message was read.
func (p *memPeer) answer(number uint32) {
	p.queue.Lock()
	heard := p.queue.state != broken
	if heard {
		p.owed = append(p.owed, number)
		p.owing.Store(int32(len(p.owed)))
		p.queue.inFlight++ // so that a goodbye waits for it
	}
	p.queue.Unlock()
	if heard {
		p.pump(ringSize)
	}
}

// settle pushes answers, and says how many bytes that took, and whether the ring is
// full.
// REQUIRES: pumping held.
func (p *memPeer) settle() (moved int, full bool) {
	for p.owing.Load() > 0 {
		if p.out.knownSpace() < 0 && p.out.space() < 0 {
			p.out.starved.Store(1)
			if p.out.space() < 0 {
				return moved, true
			}
		}
		p.queue.Lock()
		h := header{frame: frameTaken, from: p.endpoint.rank, to: p.peer, number: p.owed[0]}
		p.owed = append(p.owed[:0], p.owed[1:]...)
		p.owing.Store(int32(len(p.owed)))
		p.queue.Unlock()
		p.push(&h, nil)
		p.queue.Lock()
		p.queue.inFlight--
		if p.queue.state != open {
			p.queue.wakeAll()
		}
		p.queue.Unlock()
		moved += recordHead
	}
	return moved, false
}

// hasten reads what was offered and asked for, as far as that takes no time.
func (p *memPeer) hasten() {
	if !p.reading.TryLock() {
		p.hub.bell.ring()
		return
	}
	moved := 0
	for p.in != nil && moved < ringSize {
		n, _ := p.pull()
		if n == 0 {
			break
		}
		moved += n
	}
	p.reading.Unlock()
	if moved >= ringSize {
		p.hub.bell.ring() // the rest is not the asker's business
	}
}

// takeUnclaimed sees to it that offers without a receive or a wait are taken in at last.
func (h *hub) takeUnclaimed() {
	if h.lazy.CompareAndSwap(false, true) {
		h.timer.Reset(patience)
	}
}

// takeEarly takes in offers that have waited.
func (h *hub) takeEarly() {
	h.lazy.Store(false)
	for _, p := range h.peers {
		p.reading.Lock()
		if p.in != nil {
			p.takeOld()
		}
		p.reading.Unlock()
	}
}

// takeOld takes in offers that were asked for, or there the last time. Those that
// do not fit wait until they do.
// REQUIRES: reading held.
func (p *memPeer) takeOld() {
	for i := 0; i < len(p.offers); {
		o := &p.offers[i]
		if !o.old && !p.endpoint.inbox.wanted(&o.header) {
			o.old = true
			p.hub.takeUnclaimed()
			i++
			continue
		}
		before := len(p.offers)
		for len(p.offers) == before && p.pullFrom(i) > 0 {
		}
		if len(p.offers) == before {
			i++
		}
	}
}
