package mpi

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"starling/wire"
	"starling/wire/poll"
)

// hub is MPI as one endpoint sees it. MPI moves messages only while it is called,
// and cannot wake a goroutine. So a goroutine that waits for a message calls it itself for a
// while; and another goroutine calls it now and then, so that
// messages move while all compute.
type hub struct {
	endpoint wire.Endpoint
	inbox    *wire.Inbox
	carriers *wire.Carriers
	world    *world
	peers    []*carrier
	job      string
	turn     int

	// Guarded by the world's lock:
	reqs    []request    // under way
	ops     []*operation // what each is for
	done    []*operation // those that have just ended
	pool    [][]byte     // of frame buffers
	missing int          // peers whose hello has not come
	over    int          // peers that have ended

	greeted        chan struct{}
	oversubscribed bool // more processes than processors
	polling        atomic.Bool
	budget         poll.Budget // how long a waiter polls
	moving         atomic.Bool // messages are under way
	roomMade       atomic.Bool
	wake           chan struct{}
	ended          chan struct{}
}

// operation is what a request is for.
type operation struct {
	peer  *carrier
	kind  opKind
	buf   []byte
	sync  bool       // of a frame sent: it ends only when received
	chunk wire.Chunk // of a piece sent
	in    *incoming  // of a piece received
	pin   runtime.Pinner

	at   wire.Place // of a piece received, likewise
	head wire.Header
}

type opKind uint8

const (
	frameOut opKind = iota
	frameIn
	pieceOut
	pieceIn
)

func newHub(w *world, cfg *wire.Config) *hub {
	w.Lock()
	defer w.Unlock()
	h := &hub{carriers: wire.NewCarriers(w.size), world: w, job: cfg.Job, turn: w.turn, missing: w.size - 1,
		greeted: make(chan struct{}), wake: make(chan struct{}, 1), ended: make(chan struct{})}
	h.endpoint = cfg.Endpoint(func(in *wire.Inbox) wire.Transport {
		h.inbox = in
		return h.carriers
	})
	w.turn++
	here := 0
	for r := range w.size {
		if cfg.HostIDs == nil || cfg.SameHost(r) {
			here++
		}
	}
	h.oversubscribed = here > runtime.NumCPU()
	h.budget.Open()
	for r := range w.size {
		if r != w.rank {
			p := newCarrier(h, r)
			h.peers = append(h.peers, p)
			h.carriers.To[r] = p
		}
	}
	return h
}

// start sends hello and begins to receive.
func (h *hub) start(hello []byte) {
	h.inbox.SetPoller(h)
	h.inbox.OnSpace(func() {
		h.roomMade.Store(true)
		h.wakeUp()
	})
	h.carriers.Release = func() {
		h.wakeUp()
		<-h.ended
	}
	h.world.Lock()
	for _, p := range h.peers {
		p.sendText(&wire.Header{Frame: wire.FrameAlive}, hello)
		p.receiveFrame()
	}
	h.world.Unlock()
	if len(h.peers) == 0 {
		close(h.greeted)
	}
	go h.progress()
}

// While something is under way MPI is called without a pause, as programs of MPI do,
// for busyTime after anything has moved; then, and while nothing is, now and then,
// because an idle worker should cost next to nothing. A sleep takes a millisecond
// whatever one asks for, which is why it is not used for messages that are waited for.
const (
	busyTime = 5 * time.Millisecond
	idleTime = 50 * time.Microsecond // the goroutine that called wakeUp may not have begun to wait
	idleRest = time.Millisecond
)

// progress calls MPI when no other goroutine does, until all peers have ended.
func (h *hub) progress() {
	defer close(h.ended)
	last := wire.Monotonic()
	for {
		moved, over := h.work()
		switch {
		case over:
			return
		case moved:
			last = wire.Monotonic()
		case !h.polling.Load() && time.Duration(wire.Monotonic()-last) < h.pollTime():
			poll.Yield()
			runtime.Gosched()
		default:
			if h.sleep(idleRest) {
				last = wire.Monotonic()
			}
		}
	}
}

func (h *hub) Posted(int) {}
func (h *hub) Hasten(int) {}

// pollTime is how long to go on calling MPI since anything has moved.
func (h *hub) pollTime() time.Duration {
	if h.busy() {
		return busyTime
	}
	return idleTime
}

// busy reports whether anything is under way, or any goroutine waits.
func (h *hub) busy() bool { return h.moving.Load() || h.inbox.Waiting() }

// sleep returns after a while, or at once after wakeUp, which it reports.
func (h *hub) sleep(d time.Duration) bool {
	due, timer := wire.Alarm(wire.Real, d)
	defer timer.Stop()
	select {
	case <-h.wake:
		return true
	case <-due:
		return false
	}
}

// wakeUp makes the progress goroutine poll again. It never waits.
func (h *hub) wakeUp() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// Poll calls MPI until a is done, or until nothing has come for as long as the budget says. One
// goroutine polls at a time.
func (h *hub) Poll(a wire.Awaited) (found bool) {
	if !h.polling.CompareAndSwap(false, true) {
		return a.Done()
	}
	defer func() {
		h.polling.Store(false)
		if !found || h.busy() {
			h.wakeUp()
		}
	}()
	begin, spins := wire.Monotonic(), h.budget.Begin(poll.Most)
	for i := 1; !a.Done(); i++ {
		if moved, _ := h.work(); moved {
			h.budget.FoundAfter(wire.Monotonic() - begin)
			begin = wire.Monotonic()
			continue
		}
		if wire.Monotonic()-begin > spins {
			h.budget.InVain()
			return a.Done()
		}
		if h.oversubscribed || i > 64 {
			poll.Yield() // the peer may be waiting for this very processor
		}
		if i%256 == 0 {
			runtime.Gosched()
		}
	}
	return true
}

// work moves what can be moved, and reports whether that was anything, and whether all
// has ended.
func (h *hub) work() (moved, over bool) {
	h.world.Lock()
	defer h.world.Unlock()
	if h.over == len(h.peers) {
		return false, h.endpoint.Err() != nil
	}
	if h.roomMade.CompareAndSwap(true, false) {
		for _, p := range h.peers {
			moved = p.retry() || moved
		}
	}
	for _, p := range h.peers {
		moved = p.pump() || moved
	}
	moved = h.test() || moved
	h.moving.Store(len(h.reqs) > len(h.peers)) // more than a receive for the next frame of each
	if h.endpoint.Err() != nil || h.anyLeaving() {
		for _, p := range h.peers {
			p.windDown()
		}
	}
	return moved, false
}

// anyLeaving reports whether any peer is leaving.
func (h *hub) anyLeaving() bool {
	for _, p := range h.peers {
		if p.receivesNothing && !p.over {
			return true
		}
	}
	return false
}

// test asks MPI what has ended.
// REQUIRES: the world's lock.
func (h *hub) test() bool {
	done, err := h.world.test(h.reqs)
	if err != nil {
		h.broken(err)
		return false
	}
	if len(done) == 0 {
		return false
	}
	h.done = h.done[:0]
	for _, at := range done {
		h.done, h.ops[at] = append(h.done, h.ops[at]), nil
	}
	h.compact()
	for _, op := range h.done {
		h.settle(op, nil)
	}
	return true
}

// settle lets go of an operation's memory and deals with its end.
func (h *hub) settle(op *operation, lost error) {
	op.pin.Unpin()
	if op.kind == frameOut {
		h.pool = append(h.pool, op.buf)
	}
	op.peer.settle(op, lost)
}

// compact drops what has ended.
func (h *hub) compact() {
	k := 0
	for i, op := range h.ops {
		if op != nil {
			h.ops[k], h.reqs[k] = op, h.reqs[i]
			k++
		}
	}
	clear(h.ops[k:])
	h.ops, h.reqs = h.ops[:k], h.reqs[:k]
}

// newFrame is one to be sent.
func (h *hub) newFrame(p *carrier) *operation {
	op := &operation{peer: p, kind: frameOut}
	if last := len(h.pool) - 1; last >= 0 {
		op.buf, h.pool = h.pool[last], h.pool[:last]
	} else {
		op.buf = make([]byte, frameSize)
	}
	return op
}

func (h *hub) send(op *operation, bytes []byte, tag int) {
	op.pin.Pin(unsafe.SliceData(op.buf))
	r, err := h.world.send(bytes, op.peer.peer, tag, op.sync)
	h.add(op, r, err)
}

func (h *hub) receive(op *operation, tag int) {
	op.pin.Pin(unsafe.SliceData(op.buf))
	r, err := h.world.receive(op.buf, op.peer.peer, tag)
	h.add(op, r, err)
}

// add keeps a request that was just made.
func (h *hub) add(op *operation, r request, err error) {
	if err != nil {
		h.settle(op, err)
		h.broken(fmt.Errorf("with rank %d: %w", op.peer.peer, err))
		return
	}
	h.reqs, h.ops = append(h.reqs, r), append(h.ops, op)
}

// stop takes back receives of a peer.
func (h *hub) stop(p *carrier, kind opKind) {
	stopped := false
	for i, op := range h.ops {
		if op.peer == p && op.kind == kind && !h.world.broken {
			stopped = true
			h.world.broken = h.world.stop(h.reqs[i]) != nil
		}
	}
	if stopped {
		h.test() // what was taken back has ended
	}
}

// abandon gives up what never ends. MPI may still use its memory, so that is kept.
func (h *hub) abandon(p *carrier, cause error, kinds ...opKind) {
	var lost []*operation
	for i, op := range h.ops {
		if op.peer == p && slices.Contains(kinds, op.kind) {
			lost, h.ops[i] = append(lost, op), nil
		}
	}
	if len(lost) == 0 {
		return
	}
	h.compact()
	h.world.unclean = true
	abandoned.Lock()
	abandoned.ops = append(abandoned.ops, lost...)
	abandoned.Unlock()
	for _, op := range lost {
		p.settle(op, cause)
	}
}

// broken ends the endpoint when MPI does.
func (h *hub) broken(err error) {
	h.world.broken = true
	h.endpoint.Fail(err)
	for _, p := range h.peers {
		p.finish()
	}
}

// abandoned are operations that never ended: their memory is MPI's for good.
var abandoned struct {
	sync.Mutex
	ops []*operation
}
