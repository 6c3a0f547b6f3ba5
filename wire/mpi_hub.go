package wire

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// mpiHub is MPI as one endpoint sees it. MPI moves messages only while it is called,
// and cannot wake a goroutine. So a goroutine that waits for a message calls it itself for a
// while; and another goroutine calls it now and then, so that
// messages move while all compute.
type mpiHub struct {
	endpoint *endpoint
	world    *mpiWorld
	peers    []*mpiPeer
	job      string
	turn     int

	// Guarded by the world's lock:
	reqs    []mpiRequest // under way
	ops     []*mpiOp     // what each is for
	done    []*mpiOp     // those that have just ended
	pool    [][]byte     // of frame buffers
	missing int          // peers that have not said hello
	over    int          // peers that have ended

	greeted        chan struct{}
	oversubscribed bool // more processes than processors
	looking        atomic.Bool
	spins          atomic.Int64 // how long a waiter looks, in nanoseconds
	looks          atomic.Int64
	moving         atomic.Bool // messages are under way
	roomMade       atomic.Bool
	wake           chan struct{}
	ended          chan struct{}
}

// mpiOp is what a request is for.
type mpiOp struct {
	peer  *mpiPeer
	kind  mpiOpKind
	buf   []byte
	sync  bool      // of a frame sent: it ends only when received
	chunk Chunk     // of a piece sent
	in    *incoming // of a piece received
	pin   runtime.Pinner

	at   place // of a piece received, likewise
	head header
}

type mpiOpKind uint8

const (
	frameOut mpiOpKind = iota
	frameIn
	pieceOut
	pieceIn
)

func newMPIHub(w *mpiWorld, cfg *Config) *mpiHub {
	n := newEndpoint(w.rank, cfg.links(), cfg.Options)
	n.addrs = cfg.Addrs
	to := newCarriers(w.size)
	n.transport = to
	w.Lock()
	defer w.Unlock()
	h := &mpiHub{endpoint: n, world: w, job: cfg.Job, turn: w.turn, missing: w.size - 1, greeted: make(chan struct{}),
		wake: make(chan struct{}, 1), ended: make(chan struct{})}
	w.turn++
	here := 0
	for r := range w.size {
		if cfg.HostIDs == nil || cfg.sameHost(r) {
			here++
		}
	}
	h.oversubscribed = here > runtime.NumCPU()
	h.spins.Store(mostSpins)
	for r := range w.size {
		if r != w.rank {
			p := newMPIPeer(h, r)
			h.peers = append(h.peers, p)
			to.to[r] = p
		}
	}
	return h
}

// start sends hello and sets the endpoint going.
func (h *mpiHub) start(hello []byte) {
	n := h.endpoint
	n.poller = h
	n.inbox.OnSpace(func() {
		h.roomMade.Store(true)
		h.nudge()
	})
	n.transport.(*carriers).release = func() {
		h.nudge()
		<-h.ended
	}
	h.world.Lock()
	for _, p := range h.peers {
		p.say(&header{frame: frameAlive}, hello)
		p.listen()
	}
	h.world.Unlock()
	if len(h.peers) == 0 {
		close(h.greeted)
	}
	go h.attend()
}

// While something is under way MPI is called without a pause, as programs of MPI do,
// for so long after anything has moved; then, and while nothing is, now and then,
// because an idle worker should cost next to nothing. A sleep takes a millisecond
// whatever one asks for, which is why it is not used for messages that are waited for.
const (
	busyTime = 5 * time.Millisecond
	idleTime = 50 * time.Microsecond // the goroutine that nudged may not have begun to wait
	idleRest = time.Millisecond
)

// attend calls MPI when no other goroutine does, until all peers have ended.
func (h *mpiHub) attend() {
	defer close(h.ended)
	last := monotonic()
	for {
		moved, over := h.work()
		switch {
		case over:
			return
		case moved:
			last = monotonic()
		case !h.looking.Load() && time.Duration(monotonic()-last) < h.patience():
			yield()
			runtime.Gosched()
		default:
			if h.rest(idleRest) {
				last = monotonic()
			}
		}
	}
}

func (h *mpiHub) poll(s sought) bool { return h.look(s.found) }
func (h *mpiHub) posted(int)         {}
func (h *mpiHub) hasten(int)         {}

// patience is how long to go on calling MPI since anything has moved.
func (h *mpiHub) patience() time.Duration {
	if h.busy() {
		return busyTime
	}
	return idleTime
}

// busy tells whether anything is under way, or anybody waits.
func (h *mpiHub) busy() bool {
	if h.moving.Load() {
		return true
	}
	h.endpoint.waits.Lock()
	defer h.endpoint.waits.Unlock()
	return len(h.endpoint.waits.all) > 0
}

// rest sleeps, unless nudged, which it says.
func (h *mpiHub) rest(d time.Duration) bool {
	due, timer := Alarm(Real, d)
	defer timer.Stop()
	select {
	case <-h.wake:
		return true
	case <-due:
		return false
	}
}

// nudge makes the attending goroutine look again. It never waits.
func (h *mpiHub) nudge() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// look calls MPI until done, or until nothing has come for some time; how long is
// learnt as in hub. One looks at a time.
func (h *mpiHub) look(done func() bool) (found bool) {
	if !h.looking.CompareAndSwap(false, true) {
		return done()
	}
	defer func() {
		h.looking.Store(false)
		if !found || h.busy() {
			h.nudge()
		}
	}()
	begin, spins := monotonic(), h.spins.Load()
	if h.looks.Add(1)%tryEvery == 0 {
		spins = mostSpins
	}
	for i := 1; !done(); i++ {
		if moved, _ := h.work(); moved {
			h.spins.Store(min(max(h.spins.Load(), 4*(monotonic()-begin)), mostSpins))
			begin = monotonic()
			continue
		}
		if monotonic()-begin > spins {
			h.spins.Store(h.spins.Load() * 3 / 4)
			return done()
		}
		if h.oversubscribed || i > 64 {
			yield() // the peer may be waiting for this very processor
		}
		if i%256 == 0 {
			runtime.Gosched()
		}
	}
	return true
}

// work moves what can be moved, and says whether that was anything, and whether all
// has ended.
func (h *mpiHub) work() (moved, over bool) {
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
	if h.endpoint.Err() != nil || h.parting() {
		for _, p := range h.peers {
			p.wind()
		}
	}
	return moved, false
}

// parting tells whether any peer is leaving.
func (h *mpiHub) parting() bool {
	for _, p := range h.peers {
		if p.deaf && !p.over {
			return true
		}
	}
	return false
}

// test asks MPI what has ended.
// REQUIRES: the world's lock.
func (h *mpiHub) test() bool {
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
func (h *mpiHub) settle(op *mpiOp, lost error) {
	op.pin.Unpin()
	if op.kind == frameOut {
		h.pool = append(h.pool, op.buf)
	}
	op.peer.settle(op, lost)
}

// compact drops what has ended.
func (h *mpiHub) compact() {
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
func (h *mpiHub) newFrame(p *mpiPeer) *mpiOp {
	op := &mpiOp{peer: p, kind: frameOut}
	if last := len(h.pool) - 1; last >= 0 {
		op.buf, h.pool = h.pool[last], h.pool[:last]
	} else {
		op.buf = make([]byte, mpiFrame)
	}
	return op
}

func (h *mpiHub) send(op *mpiOp, bytes []byte, tag int) {
	op.pin.Pin(unsafe.SliceData(op.buf))
	r, err := h.world.send(bytes, op.peer.peer, tag, op.sync)
	h.add(op, r, err)
}

func (h *mpiHub) receive(op *mpiOp, tag int) {
	op.pin.Pin(unsafe.SliceData(op.buf))
	r, err := h.world.receive(op.buf, op.peer.peer, tag)
	h.add(op, r, err)
}

// add keeps a request that was just made.
func (h *mpiHub) add(op *mpiOp, r mpiRequest, err error) {
	if err != nil {
		h.settle(op, err)
		h.broken(fmt.Errorf("with rank %d: %w", op.peer.peer, err))
		return
	}
	h.reqs, h.ops = append(h.reqs, r), append(h.ops, op)
}

// stop takes back receives of a peer.
func (h *mpiHub) stop(p *mpiPeer, kind mpiOpKind) {
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
func (h *mpiHub) abandon(p *mpiPeer, cause error, kinds ...mpiOpKind) {
	var lost []*mpiOp
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
	mpiLost.Lock()
	mpiLost.ops = append(mpiLost.ops, lost...)
	mpiLost.Unlock()
	for _, op := range lost {
		p.settle(op, cause)
	}
}

// broken ends the endpoint when MPI does.
func (h *mpiHub) broken(err error) {
	h.world.broken = true
	h.endpoint.Fail(err)
	for _, p := range h.peers {
		p.finish()
	}
}

// mpiLost are operations that never ended: their memory is MPI's for good.
var mpiLost struct {
	sync.Mutex
	ops []*mpiOp
}
