package shm

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"starling/wire"
	"starling/wire/poll"
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
type Hub struct {
	inbox  *wire.Inbox
	peers  []*Peer
	of     []*Peer // by rank; nil: no shared memory with it
	bell   bell
	budget poll.Budget // how long a waiter polls
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
	watching atomic.Bool // the listener will poll when no other goroutine does
	awake    atomic.Bool // the rings say that a goroutine polls
	closed   atomic.Bool
	lazy     atomic.Bool // the timer runs
	timer    wire.Timer  // for offers without a receive
	ended    sync.WaitGroup
}

// memPeer carries messages to one peer through shared memory. A connection stays
// beside it for goodbyes, failures, and to notice that a process has died.
type Peer struct {
	inbox *wire.Inbox
	hub   *Hub
	peer  int
	queue *wire.Queue
	bell  *ringer // the peer's

	pumping sync.Mutex // guards out
	out     *ring
	reading sync.Mutex // guards in
	in      *ring
	stalled atomic.Bool // the next message in does not fit

	// Of messages that one side reads from the other's memory:
	pid    int                   // the peer, if we can read its memory
	lends  bool                  // it can read ours
	lent   map[uint32]wire.Chunk // by number, until the peer has read them; under the queue's lock
	owed   []uint32              // answers, likewise
	owing  atomic.Int32          // how many
	offers []offer               // under reading
	addend []byte                // for what is read to be added, likewise
	seen   uint64                // how many had asked when offers were looked at, likewise
	kept   atomic.Int32          // how many offers
}

// newHub makes the bell. Peers are added, then start is called.
func NewHub(in *wire.Inbox) (*Hub, error) {
	b, err := newBell()
	if err != nil {
		return nil, err
	}
	h := &Hub{inbox: in, bell: b, cpu: -1}
	h.timer = wire.Real.AfterFunc(time.Hour, h.takeEarly)
	h.timer.Stop()
	return h, nil
}

// Add makes a peer of the memory shared with it, and of the queue of messages to it. With ringsOnly it is offered no
// messages to read from this process's memory.
func (h *Hub) Add(peer int, q *wire.Queue, m *Memory, ringsOnly bool) *Peer {
	p := &Peer{inbox: h.inbox, hub: h, peer: peer, queue: q, bell: m.bell, in: m.in, out: m.out, pid: m.pid,
		lends: m.lends && !ringsOnly, lent: map[uint32]wire.Chunk{}}
	h.peers = append(h.peers, p)
	return p
}

const (
	// listenerSpins is the most for the listener, which is not waited for.
	listenerSpins = int64(20 * time.Microsecond)
	// mostTries is how often a waiter tries to look in the listener's place.
	mostTries = 256
	// watchTime is how long no goroutine polls before the listener does.
	watchTime = time.Millisecond
)

// Start begins to move messages, when all peers were added.
func (h *Hub) Start() {
	h.budget.Open()
	h.single = runtime.GOMAXPROCS(0) == 1
	h.oversubscribed = len(h.peers)+1 > runtime.NumCPU()
	h.inbox.OnSpace(func() {
		for _, p := range h.peers {
			p.stalled.Store(false)
		}
		h.bell.ring()
		h.takeUnclaimed()
	})
	h.of = make([]*Peer, h.inbox.Size())
	for _, p := range h.peers {
		h.of[p.peer] = p
	}
	h.inbox.SetPoller(h)
	h.ended.Go(h.listen)
}

func (h *Hub) Poll(a wire.Awaited) bool { return h.look(a, poll.Most) }

func (h *Hub) Posted(peer int) {
	if p := h.of[peer]; p != nil && p.kept.Load() > 0 {
		h.takeUnclaimed()
	}
}

func (h *Hub) Hasten(peer int) {
	if p := h.of[peer]; p != nil && p.kept.Load() > 0 {
		p.hasten()
	}
}

// Close frees the memory. The peers have ended before.
func (h *Hub) Close() {
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
func (h *Hub) listen() {
	for !h.closed.Load() {
		h.look(wire.Awaited{}, listenerSpins)
		h.bell.wait()
		if h.watching.Load() {
			h.watch()
		}
	}
}

// watch returns when no goroutine has polled for a while.
func (h *Hub) watch() {
	defer h.watching.Store(false)
	for !h.closed.Load() {
		seen := h.budget.Begun()
		if h.bell.waitFor(watchTime) {
			h.look(wire.Awaited{}, listenerSpins)
		} else if h.budget.Begun() == seen && !h.looking.Load() {
			return
		}
	}
}

// look moves what there is to move, until s is found (who seeks nothing: until the hub
// is closed) or until nothing has come for some time. One looks at a time: two would
// only take each other's processors.
func (h *Hub) look(a wire.Awaited, most int64) bool {
	if !h.looking.CompareAndSwap(false, true) && !h.relieve(a) {
		return h.over(a)
	}
	if a.Nothing() {
		h.relief.Store(false)
		h.listener.Store(true)
	}
	found := h.lookFor(a, most)
	h.listener.Store(false)
	h.leave(found)
	return found
}

// relieve takes over from the listener: who waits sees what has come sooner than
// the listener can wake him. It says whether it has.
func (h *Hub) relieve(a wire.Awaited) bool {
	for i := 1; !a.Nothing() && h.listener.Load() && i <= mostTries; i++ {
		h.relief.Store(true)
		if h.looking.CompareAndSwap(false, true) {
			return true
		}
		switch {
		case h.single:
			runtime.Gosched() // the listener cannot leave otherwise
		case i%16 == 0:
			poll.Yield()
		}
	}
	if a.Nothing() {
		return false
	}
	h.relief.Store(false) // or the listener would leave, and none would poll
	return h.looking.CompareAndSwap(false, true)
}

// over says whether there is no more reason to look.
func (h *Hub) over(a wire.Awaited) bool {
	if a.Nothing() {
		return h.closed.Load() || h.relief.Load()
	}
	return a.Done()
}

// lookFor is look.
// REQUIRES: the caller has set looking.
func (h *Hub) lookFor(a wire.Awaited, most int64) bool {
	if !h.awake.Load() {
		h.announce(true)
	}
	var begin int64 // when it last found something, once it has looked in vain
	spins := h.budget.Begin(most)
	started := h.inbox.Handlers()
	for i := 1; !h.over(a); i++ {
		switch {
		case h.work():
			if begin != 0 {
				h.budget.FoundAfter(wire.Monotonic() - begin)
			}
			begin = 0
			if now := h.inbox.Handlers(); now != started {
				started = now
				runtime.Gosched() // a handler may have no processor but this
			}
		case begin == 0:
			begin = wire.Monotonic()
		case i%16 == 0 || h.oversubscribed:
			if wire.Monotonic()-begin > spins {
				h.budget.InVain()
				return h.over(a)
			}
			// seldom: this wakes idle threads, which take the peer's processor
			if h.single || i%256 == 0 && !h.oversubscribed {
				runtime.Gosched()
			}
			switch {
			case h.oversubscribed:
				begin += h.yieldProcessor(a)
			case i > 64:
				poll.Yield() // the peer may be waiting for this very processor
			}
		}
	}
	return true
}

// yieldProcessor lets others have the processor, and says how long they had it: that time
// was not spent polling. A goroutine that slept instead would be woken on its waker's
// processor, which costs more, and overloads processors.
func (h *Hub) yieldProcessor(a wire.Awaited) int64 {
	if !a.Nothing() {
		h.placeThread()
	}
	before := wire.Monotonic()
	poll.Yield()
	return wire.Monotonic() - before
}

// leave ends polling. A goroutine that has found its message leaves a watch behind.
// Otherwise the rings say that none polls, and it polls once more: something may
// have come before that was said. If so there may be more, for the listener.
func (h *Hub) leave(found bool) {
	if found {
		h.looking.Store(false)
		if !h.watching.Load() && h.watching.CompareAndSwap(false, true) {
			h.bell.ring()
		}
		return
	}
	h.announce(false)
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

// announce tells the peers whether a goroutine polls; while none does, they ring the bell.
// REQUIRES: the caller has set looking.
func (h *Hub) announce(awake bool) {
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
func (h *Hub) work() bool {
	any := false
	for _, p := range h.peers {
		any = p.take() || any
		any = p.pump(ringSize) || any
	}
	return any
}

// Carry queues a message, and moves what fits at once.
func (p *Peer) Carry(m *wire.Message) {
	p.queue.Put(m)
	if p.pump(ringSize/2) && p.queue.Waiting() {
		p.hub.bell.ring() // the listener moves the rest
	}
}
