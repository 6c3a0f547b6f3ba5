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
// Whoever waits for a message looks for it himself for a while, on his own
// goroutine, which is what makes a round trip take less than waking anybody would.
// When nobody looks, the rings say so, and the peers ring the bell; a goroutine that
// listens for it does the work then.
type hub struct {
	node  *node
	peers []*memPeer
	bell  bell
	spins time.Duration

	lookers atomic.Int32
	closed  atomic.Bool
	ended   sync.WaitGroup
}

// memPeer carries messages to one peer through shared memory. A connection stays
// beside it for goodbyes, failures, and to notice that a process has died.
type memPeer struct {
	*tcpPeer
	hub  *hub
	bell ringer // the peer's

	pumping sync.Mutex // guards out
	out     *ring
	reading sync.Mutex // guards in
	in      *ring
	stalled atomic.Bool // there is no room for what is next in
}

// newHub makes the bell. Peers are added, then start is called.
func newHub(n *node) (*hub, error) {
	b, err := newBell()
	if err != nil {
		return nil, err
	}
	return &hub{node: n, bell: b}, nil
}

// add makes a peer of a connection and the memory shared with it.
func (h *hub) add(control *tcpPeer, m *memory) *memPeer {
	p := &memPeer{tcpPeer: control, hub: h, bell: m.bell, in: m.in, out: m.out}
	control.control = true
	control.drain = func() { p.take(true) }
	h.peers = append(h.peers, p)
	return p
}

// spinTime is how long a waiter looks before it sleeps: a few times what waking it
// would take.
const spinTime = 20 * time.Microsecond

func (h *hub) start() {
	// Where processes outnumber processors, looking keeps others from what is
	// waited for.
	if len(h.peers)+1 <= runtime.NumCPU() {
		h.spins = spinTime
	}
	h.node.poll = h.lookFor
	h.node.box.room = func() {
		for _, p := range h.peers {
			p.stalled.Store(false)
		}
		h.bell.ring()
	}
	h.ended.Go(h.listen)
}

// close frees the memory. The carriers have ended before.
func (h *hub) close() {
	h.closed.Store(true)
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

// listen does the work when nobody else does.
func (h *hub) listen() {
	for !h.closed.Load() {
		h.enter()
		h.work()
		h.leave()
		h.bell.wait()
	}
}

// lookFor looks for messages until p is done or it has gone on for too long.
func (h *hub) lookFor(p *Pending) bool {
	h.enter()
	defer h.leave()
	var until time.Time
	for i := 0; !p.isDone(); i++ {
		switch {
		case h.work():
			until = time.Time{}
		case until.IsZero():
			until = time.Now().Add(h.spins)
		case i%16 == 0:
			if !time.Now().Before(until) {
				return p.isDone()
			}
			runtime.Gosched()
		}
	}
	return true
}

// enter says that somebody looks, so that peers need not ring.
func (h *hub) enter() {
	if h.lookers.Add(1) > 1 {
		return
	}
	h.sleep(0)
}

// leave says that nobody looks any more, and looks once more: something may have
// come before it was said.
func (h *hub) leave() {
	if h.lookers.Add(-1) > 0 {
		return
	}
	h.sleep(1)
	for h.work() {
	}
}

func (h *hub) sleep(asleep uint32) {
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
		any = p.take(false) || any
		any = p.pump(len(p.hub.peers)*ringSize) || any
	}
	return any
}

// carry queues a message, and moves what there is room for at once.
func (p *memPeer) carry(m *message) {
	p.queue.put(m)
	if p.pump(ringSize/2) && p.queue.waiting() {
		p.hub.bell.ring() // the rest is not the sender's business
	}
}
