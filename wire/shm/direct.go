package shm

import (
	"encoding/binary"
	"errors"
	"time"
	"unsafe"

	"starling/wire"
)

// A large message does not go through the ring, which would copy it twice. Where
// the kernel lets the peer read this process's memory (process_vm_readv; found out
// when joining), the ring carries an offer, with the address of the message. The
// peer reads it straight into the receiver's buffer and answers that it has.
//
// An offer without a receive costs nothing, so it waits a while for
// a receive before it is taken in early, as all others are. Posting the
// receive does not read it yet: the goroutine may have something to send first, for which the
// peer waits. It reads the message when it waits for it, or calls Poll because it will not; or a timer does.
const (
	// offerFrom is from where on one copy and an answer take less than two copies.
	offerFrom = 16 << 10
	// readStep is read at a time, before looking for something more urgent.
	readStep = 1 << 20
	// addStep is read at a time of what is added, so that it is still in the cache.
	addStep = 256 << 10
	// patience is how long an offer waits for a receive, at least.
	patience = 2 * time.Millisecond
)

// errGone is the error of reading from a process that has gone, whose connection has the cause.
var errGone = errors.New("the process has gone")

// offer is a message in the peer's memory.
type offer struct {
	wire.Header        // offset: what was read so far
	at          uint64 // its address there
	asked       bool   // a receive was posted, or it is being taken in early
	old         bool   // it has waited
}

// offer pushes a record with the address of a message.
// REQUIRES: pumping held.
func (p *Peer) offer(h *wire.Header, payload []byte) {
	var at [wire.OfferSize]byte
	binary.LittleEndian.PutUint64(at[:], uint64(uintptr(unsafe.Pointer(unsafe.SliceData(payload)))))
	h.Offered, h.Chunk = true, wire.OfferSize
	p.push(h, at[:])
}

// returned takes in the peer's answer: it has read the message of that number.
func (p *Peer) returned(number uint32) error {
	p.queue.Lock()
	defer p.queue.Unlock()
	c, ok := p.lent[number]
	if !ok {
		return wire.ErrFrame
	}
	delete(p.lent, number)
	p.queue.Written(&c, nil)
	return nil
}

// Withdraw ends the wait of those whose messages the peer has not read. It may be
// reading them now, so the ring first marks them as withdrawn. Answers
// that did not fit are not waited for either.
func (p *Peer) Withdraw(cause error) {
	p.pumping.Lock()
	defer p.pumping.Unlock()
	if p.out != nil {
		p.out.withdrawn.Store(1)
	}
	p.queue.Lock()
	defer p.queue.Unlock()
	for _, c := range p.lent {
		p.queue.Written(&c, cause)
	}
	clear(p.lent)
	p.queue.Unhold(len(p.owed))
	p.owed = nil
	p.owing.Store(0)
}

// keepOffer remembers an offer until a receive is posted.
// REQUIRES: reading held.
func (p *Peer) keepOffer(h *wire.Header) {
	at, _ := p.in.chunk(wire.OfferSize) // records begin at multiples of more than that
	p.offers = append(p.offers, offer{Header: *h, at: binary.LittleEndian.Uint64(at)})
	p.offers[len(p.offers)-1].Offered = false
	p.kept.Store(int32(len(p.offers)))
	p.seen = p.inbox.Posts() - 1 // so that offers are looked at again
}

// pull reads what has a receive from the peer's memory, one step of the most urgent
// message. It returns how many bytes, and the most urgent offer that is left.
// REQUIRES: reading held.
func (p *Peer) pull() (bytes int, next *offer) {
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

// mostUrgent is the index of the most urgent offer with a receive; -1: none.
func (p *Peer) mostUrgent() int {
	asks := p.inbox.Posts()
	best := -1
	for i := range p.offers {
		o := &p.offers[i]
		if !o.asked && asks != p.seen {
			o.asked = p.inbox.Wanted(&o.Header)
		}
		if o.asked && (best < 0 || p.inbox.Options().Order.Before(o.Key.Coflow, p.offers[best].Key.Coflow)) {
			best = i
		}
	}
	p.seen = asks
	return best
}

// pullFrom reads a step of an offer. One that does not fit stays.
func (p *Peer) pullFrom(i int) int {
	o := &p.offers[i]
	h := o.Header
	h.Chunk = int(min(readStep, o.Length-o.Offset))
	at, err := p.inbox.Place(&h)
	if err == wire.ErrNoSpace {
		return 0
	}
	if err == nil {
		err = p.read(o.at+uint64(o.Offset), &at, h.Chunk)
		if p.in.withdrawn.Load() != 0 {
			err = errGone
		}
		p.inbox.Release(at, &h, err)
		if err != nil && err != errGone { // the connection has the cause
			err = p.inbox.Lost(p.peer, err)
		}
	}
	o.Offset += int64(h.Chunk)
	if err != nil || o.Offset == o.Length {
		p.answer(o.Number)
		p.offers = append(p.offers[:i], p.offers[i+1:]...)
		p.kept.Store(int32(len(p.offers)))
	}
	if err != nil && err != errGone {
		p.inbox.Fail(err)
	}
	return h.Chunk
}

// read fills a place from an address on.
func (p *Peer) read(from uint64, at *wire.Place, size int) error {
	if at.Dropped() {
		return nil
	}
	if into := at.Buffer(); into != nil {
		return readFrom(p.pid, from, into)
	}
	if p.addend == nil {
		p.addend = make([]byte, addStep)
	}
	for offset := 0; offset < size; offset += addStep {
		part := p.addend[:min(addStep, size-offset)]
		if err := readFrom(p.pid, from+uint64(offset), part); err != nil {
			return err
		}
		at.Put(offset, part)
	}
	return nil
}

// answer acknowledges that a message of the peer was read.
func (p *Peer) answer(number uint32) {
	p.queue.Lock()
	open := !p.queue.Broken()
	if open {
		p.owed = append(p.owed, number)
		p.owing.Store(int32(len(p.owed)))
		p.queue.Hold() // so that a goodbye waits for it
	}
	p.queue.Unlock()
	if open {
		p.pump(ringSize)
	}
}

// settle pushes answers, and returns how many bytes that took, and whether the ring is
// full.
// REQUIRES: pumping held.
func (p *Peer) settle() (moved int, full bool) {
	for p.owing.Load() > 0 {
		if p.out.knownSpace() < 0 && p.out.space() < 0 {
			p.out.starved.Store(1)
			if p.out.space() < 0 {
				return moved, true
			}
		}
		p.queue.Lock()
		h := wire.Header{Frame: wire.FrameTaken, From: p.inbox.Rank(), To: p.peer, Number: p.owed[0]}
		p.owed = append(p.owed[:0], p.owed[1:]...)
		p.owing.Store(int32(len(p.owed)))
		p.queue.Unlock()
		p.push(&h, nil)
		p.queue.Lock()
		p.queue.Unhold(1)
		p.queue.Unlock()
		moved += recordHead
	}
	return moved, false
}

// hasten reads offers for which a receive was posted, as far as that takes no time.
func (p *Peer) hasten() {
	if !p.reading.TryLock() {
		p.hub.wakeup.notify()
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
		p.hub.wakeup.notify() // the listener reads the rest
	}
}

// takeUnclaimed sets the timer by which offers without a receive or a wait are taken in.
func (h *Hub) takeUnclaimed() {
	if h.lazy.CompareAndSwap(false, true) {
		h.timer.Reset(patience)
	}
}

// takeEarly takes in offers that have waited.
func (h *Hub) takeEarly() {
	h.lazy.Store(false)
	for _, p := range h.peers {
		p.reading.Lock()
		if p.in != nil {
			p.takeOld()
		}
		p.reading.Unlock()
	}
}

// takeOld takes in offers with a receive, and those that were there the last time. Those that
// do not fit wait until they do.
// REQUIRES: reading held.
func (p *Peer) takeOld() {
	for i := 0; i < len(p.offers); {
		o := &p.offers[i]
		if !o.old && !p.inbox.Wanted(&o.Header) {
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
