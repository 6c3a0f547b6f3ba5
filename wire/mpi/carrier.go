package mpi

import (
	"time"

	"starling/wire"
)

// carrier carries messages to one peer over MPI. All but the queue is guarded by
// the world's lock.
type carrier struct {
	hub   *hub
	peer  int
	queue *wire.Queue
	ended chan struct{}

	// Sending:
	pieces int // under way
	frames int // under way
	syncs  int // those of them that end only when received
	plain  int // frames since the last such
	tags   []int
	sends  map[*wire.Message]*outgoing

	// Receiving:
	greeted  bool
	frame    []byte      // the last that came
	head     wire.Header // its header
	held     bool        // it does not fit
	incoming map[int]*incoming

	// Ending:
	goodbyeCame      bool // the peer's goodbye has come, though perhaps not all before it
	receivesNothing  bool // the peer receives nothing more
	peerEnded        bool // the peer sends nothing more either
	endingSent       bool // our goodbye or failure was sent
	stoppedReceiving bool // our receives were taken back, and the peer was notified
	limit            time.Time
	over             bool
}

// outgoing is a message of which pieces are to be sent.
type outgoing struct {
	tag  int
	left int64 // bytes that MPI has not sent yet
}

// incoming is a message of which pieces are to come.
type incoming struct {
	head   wire.Header
	tag    int
	next   int64 // the first byte for which no receive is posted
	posted int   // receives
}

// The window: every syncEvery-th frame ends only when it was received, and mostSyncs of
// these may be under way.
const syncEvery, mostSyncs = window / 2, 2

func newCarrier(h *hub, peer int) *carrier {
	p := &carrier{hub: h, peer: peer, queue: wire.NewQueue(h.inbox.Options()), ended: make(chan struct{}),
		sends: map[*wire.Message]*outgoing{}, incoming: map[int]*incoming{}, frame: make([]byte, frameSize)}
	for tag := 1; tag < tagsPerTurn; tag++ {
		p.tags = append(p.tags, tag)
	}
	return p
}

// tag returns the MPI tag for one of this endpoint's: 0 for frames, others for pieces.
func (p *carrier) tag(of int) int { return p.hub.turn%turns*tagsPerTurn + of }

// Carry queues a message and sends it at once, if no other goroutine calls MPI just now.
func (p *carrier) Carry(m *wire.Message) {
	p.queue.Put(m)
	if w := p.hub.world; w.TryLock() {
		p.pump()
		w.Unlock()
	}
	if p.queue.Waiting() {
		p.hub.wakeUp()
	}
}

func (p *carrier) Gone() <-chan struct{} { return p.ended }

// Fail may be called with the world's lock held, and so leaves the rest to windDown; Close likewise.
func (p *carrier) Fail(cause error) {
	p.queue.Fail(cause)
	p.hub.wakeUp()
}

func (p *carrier) Close() {
	p.queue.Close()
	p.hub.wakeUp()
}

// pump sends what the window allows, and reports whether that was anything.
func (p *carrier) pump() (moved bool) {
	for !p.over {
		c, ok := p.cut()
		if !ok {
			return moved
		}
		moved = true
		if c.First() {
			p.sendFrame(&c)
		} else {
			p.sendPiece(&c)
		}
	}
	return moved
}

// cut takes the next chunk that may leave.
func (p *carrier) cut() (c wire.Chunk, ok bool) {
	q := p.queue
	q.Lock()
	defer q.Unlock()
	if q.Empty() {
		return c, false
	}
	m := q.First()
	begun := m.Rest() < int64(m.Len())
	switch {
	case begun && p.pieces < mostPieces:
		return q.Cut(pieceSize), true
	case begun || p.syncs == mostSyncs || m.Len() > inline && len(p.tags) == 0:
		return c, false
	}
	return q.Cut(inline), true
}

// sendFrame sends the first bytes of a message.
func (p *carrier) sendFrame(c *wire.Chunk) {
	h := c.Header()
	if rest := h.Length - int64(h.Chunk); rest > 0 {
		out := &outgoing{tag: p.tags[0], left: rest}
		p.tags = p.tags[1:]
		p.sends[c.Message()] = out
		h.Sum = uint32(out.tag)
	}
	p.sendText(&h, c.Bytes())
	p.queue.Sent(*c, nil)
}

// sendText sends a frame. Its bytes are copied, so they can be used again.
func (p *carrier) sendText(h *wire.Header, text []byte) {
	h.From, h.To = p.hub.inbox.Rank(), p.peer
	if !h.Frame.HasBody() {
		h.Length, h.Chunk = int64(len(text)), len(text)
	}
	op := p.hub.newFrame(p)
	h.Put(op.buf)
	n := wire.HeaderSize + copy(op.buf[wire.HeaderSize:], text)
	if p.plain++; p.plain == syncEvery {
		op.sync, p.plain = true, 0
		p.syncs++
	}
	p.frames++
	p.hub.inbox.Overhead(wire.HeaderSize)
	p.hub.send(op, op.buf[:n], p.tag(0))
}

func (p *carrier) sendPiece(c *wire.Chunk) {
	p.pieces++
	p.hub.send(&operation{peer: p, kind: pieceOut, buf: c.Bytes(), chunk: *c}, c.Bytes(), p.tag(p.sends[c.Message()].tag))
}

// pieceSent gives back the tag after the last piece. It is the last to be used again.
func (p *carrier) pieceSent(c *wire.Chunk) {
	out := p.sends[c.Message()]
	if out.left -= int64(len(c.Bytes())); out.left == 0 {
		delete(p.sends, c.Message())
		p.tags = append(p.tags, out.tag)
	}
	p.queue.Sent(*c, nil)
}

// receiveFrame posts the receive of the next frame.
func (p *carrier) receiveFrame() {
	if !p.over {
		p.hub.receive(&operation{peer: p, kind: frameIn, buf: p.frame}, p.tag(0))
	}
}

// settle handles an operation that has ended; lost is the error of one that never will.
func (p *carrier) settle(op *operation, lost error) {
	switch op.kind {
	case frameOut:
		p.frames--
		if op.sync {
			p.syncs--
		}
	case pieceOut:
		p.pieces--
		if lost != nil {
			p.queue.Sent(op.chunk, lost)
		} else {
			p.pieceSent(&op.chunk)
		}
	case frameIn:
		if lost == nil && !p.over && p.take() {
			p.receiveFrame()
		}
	case pieceIn:
		if lost == nil {
			lost = p.hub.inbox.Err() // it may have been stopped half-way
		}
		op.in.posted--
		p.hub.inbox.Release(op.at, &op.head, lost)
		p.receivePieces(op.in)
	}
}

// take handles the frame that has come, and reports whether to receive the next.
func (p *carrier) take() bool {
	n, h := p.hub.inbox, &p.head
	err := h.Parse(p.frame)
	text := p.frame[wire.HeaderSize:]
	switch {
	case err != nil:
	case h.Belongs(p.peer, n.Rank()) != nil:
		err = h.Belongs(p.peer, n.Rank())
	case h.Chunk > inline || h.Offset != 0 || h.Offered:
		err = wire.ErrFrame
	case h.Frame == wire.FrameAlive && !p.greeted:
		err = p.greet(text[:h.Chunk])
	case h.Frame.HasBody() && p.greeted:
		return p.accept()
	case h.Frame == wire.FrameGoodbye:
		p.goodbyeCame = true
		p.endPeer()
		return false
	case h.Frame == wire.FrameTaken:
		p.receivesNothing = true
	case h.Frame == wire.FrameFailure:
		if err = n.Ended(h, text[:h.Chunk]); err == nil {
			p.receivesNothing, p.peerEnded = true, true
			return false
		}
	case p.greeted && h.Frame > wire.FrameRequest:
		n.Control(h, text[:h.Chunk])
	default:
		err = wire.ErrFrame
	}
	if err != nil {
		n.PeerLost(p.peer, err)
	}
	return true
}

// accept puts the first bytes of a message in place and posts receives for the
// rest. It is false if there is no space yet.
func (p *carrier) accept() bool {
	n, h := p.hub.inbox, p.head
	rest := int64(h.Chunk) < h.Length
	tag := int(h.Sum)
	if rest && (tag < 1 || tag >= tagsPerTurn) {
		n.PeerLost(p.peer, wire.ErrFrame)
		return true
	}
	if rest && p.incoming[tag] != nil {
		// The sender has sent all of the last message of this tag, but not all of it
		// has been received; a receive for this one would take what is left of that.
		p.held = true
		return false
	}
	at, err := n.Place(&h)
	switch {
	case err == wire.ErrNoSpace:
		p.held = true
		return false
	case err != nil:
		n.Fail(err) // and go on: the peer may have sent the cause of its end
		return true
	}
	at.Put(0, p.frame[wire.HeaderSize:][:h.Chunk])
	n.Release(at, &h, nil)
	if rest {
		in := &incoming{head: h, tag: tag, next: int64(h.Chunk)}
		p.incoming[tag] = in
		p.receivePieces(in)
	}
	return true
}

// retry tries again to place a message that did not fit.
func (p *carrier) retry() bool {
	if !p.held || p.over {
		return false
	}
	p.held = false
	if !p.accept() {
		return false
	}
	p.receiveFrame()
	return true
}

// receivePieces posts receives into the places of the next pieces.
func (p *carrier) receivePieces(in *incoming) {
	n := p.hub.inbox
	for in.next < in.head.Length && in.posted < mostPieces && n.Err() == nil {
		h := in.head
		h.Offset, h.Chunk = in.next, int(min(pieceSize, h.Length-in.next))
		at, err := n.Place(&h)
		if err != nil {
			n.Fail(err)
			break
		}
		in.posted++
		in.next += int64(h.Chunk)
		into := n.Space(&at)
		p.hub.receive(&operation{peer: p, kind: pieceIn, buf: into, in: in, at: at, head: h}, p.tag(in.tag))
	}
	if in.posted > 0 || in.next < in.head.Length && n.Err() == nil {
		return
	}
	delete(p.incoming, in.tag)
	if p.held {
		p.hub.roomMade.Store(true) // perhaps it was held for this
	}
	p.endPeer()
}

// endPeer ends what is expected of a peer that has sent its goodbye, when all that it
// sent before has come.
func (p *carrier) endPeer() {
	if !p.goodbyeCame || p.peerEnded || len(p.incoming) > 0 {
		return
	}
	p.receivesNothing, p.peerEnded = true, true
	n := p.hub.inbox
	n.PeerClosed(p.peer)
	p.queue.Fail(n.Lost(p.peer, wire.ErrPeerClosed))
}

// windDown is called again and again while the peer, or this endpoint, ends: what was
// queued leaves, or is given up; then we send our goodbye, and wait for the peer's.
func (p *carrier) windDown() {
	n := p.hub.inbox
	if p.over || n.Err() == nil && !p.receivesNothing {
		return
	}
	now := n.Options().Clock.Now()
	if p.limit.IsZero() {
		p.limit = now.Add(n.Options().Linger)
		if n.Err() == wire.ErrClosed {
			p.limit = now.Add(n.Options().Timeout)
		}
	}
	if n.Err() != nil && !p.stoppedReceiving {
		p.stopReceiving()
	}
	if p.receivesNothing || now.After(p.limit) {
		cause := n.Lost(p.peer, wire.ErrPeerClosed)
		if n.Err() != nil {
			cause = n.Err()
		}
		p.queue.Fail(cause)
		p.hub.abandon(p, cause, pieceOut)
	}
	if (p.peerEnded || n.Err() != nil) && !p.endingSent && !p.queue.Waiting() && p.pieces == 0 {
		p.sendEnding()
	}
	if p.endingSent && (p.peerEnded && p.frames == 0 && p.pieces == 0 && len(p.incoming) == 0 || now.After(p.limit)) {
		p.finish()
	}
}

// stopReceiving takes back the receives that are not waited for any more, and notifies the
// peer, which might wait for us to receive while we wait for it. Only its ending is received
// from then on.
func (p *carrier) stopReceiving() {
	p.stoppedReceiving = true
	// Fail may not have been called yet, and nothing may follow the ending.
	if err := p.hub.inbox.Err(); err != wire.ErrClosed {
		p.queue.Fail(err)
		p.sendEnding()
	} else if p.queue.Close(); !p.peerEnded && (p.queue.Waiting() || p.pieces > 0) {
		p.sendText(&wire.Header{Frame: wire.FrameTaken}, nil)
	}
	p.hub.stop(p, pieceIn)
	if p.held {
		p.held = false
		p.receiveFrame()
	}
}

// sendEnding sends the last frame.
func (p *carrier) sendEnding() {
	if p.endingSent {
		return
	}
	opt := p.hub.inbox.Options()
	p.endingSent, p.limit = true, opt.Clock.Now().Add(opt.Linger)
	h, text := p.hub.inbox.Ending(p.peer)
	p.sendText(&h, text)
}

// finish ends the carrier.
func (p *carrier) finish() {
	if p.over {
		return
	}
	p.over = true
	p.hub.over++
	p.hub.stop(p, frameIn)
	p.hub.abandon(p, p.hub.inbox.Err(), frameOut, pieceOut, pieceIn, frameIn)
	close(p.ended)
}
