package wire

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// ringSize is what one direction between two processes takes: enough that the
// writer and the reader seldom wait for each other, little enough to stay in the cache.
const ringSize = 1 << 20

// hub is the shared memory of one endpoint: a pair of rings with every peer on
// this host, and one bell that they all ring.
//
// A goroutine that waits for a message polls for it itself for a while, on its own
// goroutine, so a round trip takes less than waking a goroutine would.
// When none polls, the rings say so, and the peers ring the bell; a goroutine that
// listens for it does the work then. But a goroutine that has found its message will soon
// poll again, and a bell for every message would cost more than the message: so the
// listener is told to watch, and only when none has polled for a while do the
// rings say so.
type hub struct {
	endpoint *endpoint
	peers    []*memPeer
	of       []*memPeer // by rank; nil: no shared memory with it
	bell     bell
	spins    atomic.Int64 // how long a waiter looks, in nanoseconds
	// oversubscribed: there are more workers here than processors.
	oversubscribed bool
	// single: this process runs one goroutine at a time, so that a goroutine that polls keeps
	// those from running who do what the peer waits for, unless it lets them.
	single bool
	// Of the goroutine that polls:
	cpu   int   // the processor that it looked from
	moved int64 // when it last thought of moving

	looking  atomic.Bool
	listener atomic.Bool // it is the listener that polls
	relief   atomic.Bool // a waiter wants to look in its place
	looks    atomic.Int64
	watching atomic.Bool // the listener will poll when no other goroutine does
	awake    atomic.Bool // the rings say that a goroutine polls
	closed   atomic.Bool
	lazy     atomic.Bool // the timer runs
	timer    Timer       // for offers without a receive
	ended    sync.WaitGroup
}

// memPeer carries messages to one peer through shared memory. A connection stays
// beside it for goodbyes, failures, and to notice that a process has died.
type memPeer struct {
	*tcpPeer
	hub  *hub
	bell *ringer // the peer's

	pumping sync.Mutex // guards out
	out     *ring
	reading sync.Mutex // guards in
	in      *ring
	stalled atomic.Bool // the next message in does not fit

	// Of messages that one side reads from the other's memory:
	pid    int              // the peer, if we can read its memory
	lends  bool             // it can read ours
	lent   map[uint32]Chunk // by number, until the peer has read them; under the queue's lock
	owed   []uint32         // answers, likewise
	owing  atomic.Int32     // how many
	offers []offer          // under reading
	addend []byte           // for what is read to be added, likewise
	seen   uint64           // how many had asked when offers were looked at, likewise
	kept   atomic.Int32     // how many offers
}

// newHub makes the bell. Peers are added, then start is called.
func newHub(n *endpoint) (*hub, error) {
	b, err := newBell()
	if err != nil {
		return nil, err
	}
	h := &hub{endpoint: n, bell: b, cpu: -1}
	h.timer = Real.AfterFunc(time.Hour, h.takeEarly)
	h.timer.Stop()
	return h, nil
}

// add makes a peer of a connection and the memory shared with it.
func (h *hub) add(control *tcpPeer, m *memory) *memPeer {
	p := &memPeer{tcpPeer: control, hub: h, bell: m.bell, in: m.in, out: m.out, pid: m.pid, lends: m.lends,
		lent: map[uint32]Chunk{}}
	control.control, control.queue.quiet = true, true
	control.drain, control.left = p.drain, p.withdraw
	h.peers = append(h.peers, p)
	return p
}

// A waiter looks for at most mostSpins, a few times what waking it would take. How
// long, is learnt: where looking finds nothing in that time, because the peer
// computes or because processes outnumber processors, it only keeps others from
// what is waited for; and is given up, but for a try now and then.
const (
	mostSpins = int64(200 * time.Microsecond)
	tryEvery  = 32
	// listenerSpins is the most for the listener, which is not waited for.
	listenerSpins = int64(20 * time.Microsecond)
	// mostTries is how often a waiter tries to look in the listener's place.
	mostTries = 256
	// watchTime is how long no goroutine polls before the listener does.
	watchTime = time.Millisecond
)

func (h *hub) start() {
	h.spins.Store(mostSpins)
	h.single = runtime.GOMAXPROCS(0) == 1
	h.oversubscribed = len(h.peers)+1 > runtime.NumCPU()
	h.endpoint.inbox.OnSpace(func() {
		for _, p := range h.peers {
			p.stalled.Store(false)
		}
		h.bell.ring()
		h.takeUnclaimed()
	})
	h.of = make([]*memPeer, h.endpoint.Size())
	for _, p := range h.peers {
		h.of[p.peer] = p
	}
	h.endpoint.poller = h
	h.ended.Go(h.listen)
}

func (h *hub) poll(s sought) bool { return h.look(s, mostSpins) }

func (h *hub) posted(peer int) {
	if p := h.of[peer]; p != nil && p.kept.Load() > 0 {
		h.takeUnclaimed()
	}
}

func (h *hub) hasten(peer int) {
	if p := h.of[peer]; p != nil && p.kept.Load() > 0 {
		p.hasten()
	}
}

// close frees the memory. The carriers have ended before.
func (h *hub) close() {
	h.closed.Store(true)
	h.timer.Stop()
	h.bell.close()
	h.ended.Wait()
	for _, p := range h.peers {
		p.reading.Lock()
		p.pumping.Lock()
		unmap(p.in.mem)
		unmap(p.out.mem)
		p.in, p.out = nil, nil
		p.pumping.Unlock()
		p.reading.Unlock()
		p.bell.close()
	}
}

// listen polls when no other goroutine does.
func (h *hub) listen() {
	for !h.closed.Load() {
		h.look(sought{}, listenerSpins)
		h.bell.wait()
		if h.watching.Load() {
			h.watch()
		}
	}
}

// watch returns when no goroutine has polled for a while.
func (h *hub) watch() {
	defer h.watching.Store(false)
	for !h.closed.Load() {
		seen := h.looks.Load()
		if h.bell.waitFor(watchTime) {
			h.look(sought{}, listenerSpins)
		} else if h.looks.Load() == seen && !h.looking.Load() {
			return
		}
	}
}

// look moves what there is to move, until s is found (who seeks nothing: until the hub
// is closed) or until nothing has come for some time. One looks at a time: two would
// only take each other's processors.
func (h *hub) look(s sought, most int64) bool {
	if !h.looking.CompareAndSwap(false, true) && !h.relieve(s) {
		return h.over(s)
	}
	if s.nothing() {
		h.relief.Store(false)
		h.listener.Store(true)
	}
	found := h.lookFor(s, most)
	h.listener.Store(false)
	h.leave(found)
	return found
}

// relieve takes over from the listener: who waits sees what has come sooner than
// the listener can wake him. It says whether it has.
func (h *hub) relieve(s sought) bool {
	for i := 1; !s.nothing() && h.listener.Load() && i <= mostTries; i++ {
		h.relief.Store(true)
		if h.looking.CompareAndSwap(false, true) {
			return true
		}
		switch {
		case h.single:
			runtime.Gosched() // the listener cannot leave otherwise
		case i%16 == 0:
			yield()
		}
	}
	if s.nothing() {
		return false
	}
	h.relief.Store(false) // or the listener would leave, and none would poll
	return h.looking.CompareAndSwap(false, true)
}

// over says whether there is no more reason to look.
func (h *hub) over(s sought) bool {
	if s.nothing() {
		return h.closed.Load() || h.relief.Load()
	}
	return s.found()
}

// lookFor is look.
// REQUIRES: the caller has set looking.
func (h *hub) lookFor(s sought, most int64) bool {
	if !h.awake.Load() {
		h.say(true)
	}
	var begin int64 // when it last found something, once it has looked in vain
	spins := min(h.spins.Load(), most)
	if h.looks.Add(1)%tryEvery == 0 {
		spins = most
	}
	started := h.endpoint.calls.started.Load()
	for i := 1; !h.over(s); i++ {
		switch {
		case h.work():
			h.foundAfter(begin)
			begin = 0
			if now := h.endpoint.calls.started.Load(); now != started {
				started = now
				runtime.Gosched() // a handler may have no processor but this
			}
		case begin == 0:
			begin = monotonic()
		case i%16 == 0 || h.oversubscribed:
			if monotonic()-begin > spins {
				h.spins.Store(h.spins.Load() * 3 / 4)
				return h.over(s)
			}
			// seldom: this wakes idle threads, which take the peer's processor
			if h.single || i%256 == 0 && !h.oversubscribed {
				runtime.Gosched()
			}
			switch {
			case h.oversubscribed:
				begin += h.yieldProcessor(s)
			case i > 64:
				yield() // the peer may be waiting for this very processor
			}
		}
	}
	return true
}

// yieldProcessor lets others have the processor, and says how long they had it: that time
// was not spent polling. A goroutine that slept instead would be woken on its waker's
// processor, which costs more, and overloads processors.
func (h *hub) yieldProcessor(s sought) int64 {
	if !s.nothing() {
		h.placeThread()
	}
	before := monotonic()
	yield()
	return monotonic() - before
}

// foundAfter learns from something that was found, and looked for since begin.
func (h *hub) foundAfter(begin int64) {
	if begin == 0 {
		return
	}
	if spins := min(4*(monotonic()-begin), mostSpins); spins > h.spins.Load() {
		h.spins.Store(spins)
	}
}

// leave ends polling. A goroutine that has found its message leaves a watch behind.
// Otherwise the rings say that none polls, and it polls once more: something may
// have come before that was said. If so there may be more, for the listener.
func (h *hub) leave(found bool) {
	if found {
		h.looking.Store(false)
		if !h.watching.Load() && h.watching.CompareAndSwap(false, true) {
			h.bell.ring()
		}
		return
	}
	h.say(false)
	h.looking.Store(false)
	any := false
	for _, p := range h.peers {
		p.reading.Lock() // the holder may have polled before that was said
		any = p.takeAll() || any
		p.reading.Unlock()
		any = p.pump(ringSize) || any
	}
	if any {
		h.bell.ring()
	}
}

// say tells the peers whether anybody looks; if not they ring.
// REQUIRES: the caller has set looking.
func (h *hub) say(awake bool) {
	h.awake.Store(awake)
	asleep := uint32(1)
	if awake {
		asleep = 0
	}
	for _, p := range h.peers {
		p.reading.Lock()
		if p.in != nil {
			p.in.asleep.Store(asleep)
		}
		p.reading.Unlock()
	}
}

// work moves what can be moved, and says whether that was anything.
func (h *hub) work() bool {
	any := false
	for _, p := range h.peers {
		any = p.take() || any
		any = p.pump(ringSize) || any
	}
	return any
}

// carry queues a message, and moves what fits at once.
func (p *memPeer) carry(m *Message) {
	p.queue.put(m)
	if p.pump(ringSize/2) && p.queue.waiting() {
		p.hub.bell.ring() // the rest is not the sender's business
	}
}
