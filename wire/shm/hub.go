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
// this host, and one wakeup (an eventfd) through which they all notify it.
//
// A goroutine that waits for a message polls for it itself for a while, on its own
// goroutine, so a round trip takes less than waking a goroutine would.
// When none polls, the rings are marked asleep, and the peers notify; a goroutine that
// listens for that, the listener, does the work then. But a goroutine that has found its message
// will soon poll again, and a notification for every message would cost more than the message: so
// the listener watches, and the rings are marked asleep only when none has polled for a while.
type Hub struct {
	inbox  *wire.Inbox
	peers  []*Peer
	of     []*Peer // by rank; nil: no shared memory with it
	wakeup wakeup
	budget poll.Budget // how long a waiter polls
	// oversubscribed: there are more workers here than processors.
	oversubscribed bool
	// single: this process runs one goroutine at a time, so that a goroutine that polls keeps
	// those from running who do what the peer waits for, unless it lets them.
	single bool
	// The goroutine that polls uses:
	cpu   int   // the processor that it polled from
	moved int64 // when it last considered moving

	polling       atomic.Bool
	listenerPolls atomic.Bool // it is the listener that polls
	relief        atomic.Bool // a waiter wants to poll in its place
	watching      atomic.Bool // the listener will poll when no other goroutine does
	awake         atomic.Bool // the rings are not marked asleep
	closed        atomic.Bool
	lazy          atomic.Bool // the timer runs
	timer         wire.Timer  // for offers without a receive
	ended         sync.WaitGroup
}

// Peer carries messages to one peer through shared memory. A connection stays
// beside it for goodbyes, failures, and to notice that a process has died.
type Peer struct {
	inbox    *wire.Inbox
	hub      *Hub
	peer     int
	queue    *wire.Queue
	notifier *notifier // the peer's

	pumping sync.Mutex // guards out
	out     *ring
	reading sync.Mutex // guards in
	in      *ring
	stalled atomic.Bool // the next message in does not fit

	// Messages that one side reads from the other's memory:
	pid    int                   // the peer's process, if we can read its memory
	lends  bool                  // the peer can read ours
	lent   map[uint32]wire.Chunk // by number, until the peer has read them; under the queue's lock
	owed   []uint32              // answers, likewise
	owing  atomic.Int32          // how many
	offers []offer               // under reading
	addend []byte                // for what is read to be added, likewise
	seen   uint64                // receives posted when offers were looked at, likewise
	kept   atomic.Int32          // how many offers
}

// NewHub makes a hub. Peers are added, then Start is called.
func NewHub(in *wire.Inbox) (*Hub, error) {
	b, err := newWakeup()
	if err != nil {
		return nil, err
	}
	h := &Hub{inbox: in, wakeup: b, cpu: -1}
	h.timer = wire.Real.AfterFunc(time.Hour, h.takeEarly)
	h.timer.Stop()
	return h, nil
}

// Add makes a peer of the memory shared with it, and of the queue of messages to it. With ringsOnly it is offered no
// messages to read from this process's memory.
func (h *Hub) Add(peer int, q *wire.Queue, m *Memory, ringsOnly bool) *Peer {
	p := &Peer{inbox: h.inbox, hub: h, peer: peer, queue: q, notifier: m.notifier, in: m.in, out: m.out, pid: m.pid,
		lends: m.lends && !ringsOnly, lent: map[uint32]wire.Chunk{}}
	h.peers = append(h.peers, p)
	return p
}

const (
	// listenerSpins is the most for the listener, which is not waited for.
	listenerSpins = int64(20 * time.Microsecond)
	// mostTries is how often a waiter tries to poll in the listener's place.
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
		h.wakeup.notify()
		h.takeUnclaimed()
	})
	h.of = make([]*Peer, h.inbox.Size())
	for _, p := range h.peers {
		h.of[p.peer] = p
	}
	h.inbox.SetPoller(h)
	h.ended.Go(h.listen)
}

func (h *Hub) Poll(a wire.Awaited) bool { return h.poll(a, poll.Most) }

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
	h.wakeup.close()
	h.ended.Wait()
	for _, p := range h.peers {
		p.reading.Lock()
		p.pumping.Lock()
		unmap(p.in.mem)
		unmap(p.out.mem)
		p.in, p.out = nil, nil
		p.pumping.Unlock()
		p.reading.Unlock()
		p.notifier.close()
	}
}

// listen polls when no other goroutine does.
func (h *Hub) listen() {
	for !h.closed.Load() {
		h.poll(wire.Awaited{}, listenerSpins)
		h.wakeup.wait()
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
		if h.wakeup.waitFor(watchTime) {
			h.poll(wire.Awaited{}, listenerSpins)
		} else if h.budget.Begun() == seen && !h.polling.Load() {
			return
		}
	}
}

// poll moves messages until a is done (nothing awaited: until the hub is closed) or until
// nothing has come for some time. One goroutine polls at a time: two would only take each
// other's processors.
func (h *Hub) poll(a wire.Awaited, most int64) bool {
	if !h.polling.CompareAndSwap(false, true) && !h.relieve(a) {
		return h.over(a)
	}
	if a.Nothing() {
		h.relief.Store(false)
		h.listenerPolls.Store(true)
	}
	found := h.pollFor(a, most)
	h.listenerPolls.Store(false)
	h.leave(found)
	return found
}

// relieve takes over from the listener, and reports whether it has: a waiter sees what has
// come sooner than the listener can wake it.
func (h *Hub) relieve(a wire.Awaited) bool {
	for i := 1; !a.Nothing() && h.listenerPolls.Load() && i <= mostTries; i++ {
		h.relief.Store(true)
		if h.polling.CompareAndSwap(false, true) {
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
	return h.polling.CompareAndSwap(false, true)
}

// over reports whether there is no more reason to poll.
func (h *Hub) over(a wire.Awaited) bool {
	if a.Nothing() {
		return h.closed.Load() || h.relief.Load()
	}
	return a.Done()
}

// pollFor is poll.
// REQUIRES: the caller has set polling.
func (h *Hub) pollFor(a wire.Awaited, most int64) bool {
	if !h.awake.Load() {
		h.announce(true)
	}
	var begin int64 // when it last found something, once it has polled in vain
	spins := h.budget.Begin(most)
	started := h.inbox.Handlers()
	for i := 1; !h.over(a); i++ {
		switch {
		case h.move():
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

// yieldProcessor lets others have the processor, and returns for how long: that time
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
// Otherwise the rings are marked asleep, and it polls once more: something may
// have come before. If so there may be more, for the listener.
func (h *Hub) leave(found bool) {
	if found {
		h.polling.Store(false)
		if !h.watching.Load() && h.watching.CompareAndSwap(false, true) {
			h.wakeup.notify()
		}
		return
	}
	h.announce(false)
	h.polling.Store(false)
	any := false
	for _, p := range h.peers {
		p.reading.Lock() // the holder may have polled before the mark
		any = p.takeAll() || any
		p.reading.Unlock()
		any = p.pump(ringSize) || any
	}
	if any {
		h.wakeup.notify()
	}
}

// announce marks the rings asleep or not: while no goroutine polls, peers notify.
// REQUIRES: the caller has set polling.
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

// move moves what can be moved, and reports whether that was anything.
func (h *Hub) move() bool {
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
		p.hub.wakeup.notify() // the listener moves the rest
	}
}
