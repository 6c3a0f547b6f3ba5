package wire

import "time"

// mpiPeer carries messages to one peer over MPI. All but the queue is guarded by
// the world's lock.
type mpiPeer struct {
	hub   *mpiHub
	peer  int
	queue *sendQueue
	ended chan struct{}

	// Sending:
	pieces int // under way
	frames int // under way
	syncs  int // those of them that end only when received
	plain  int // frames since the last such
	tags   []int
	sends  map[*Message]*outgoing

	// Receiving:
	greeted  bool
	frame    []byte // the last that came
	head     header // its header
	held     bool   // it does not fit
	incoming map[int]*incoming

	// Ending:
	goodbye bool // the peer's has come, though perhaps not all before it
	deaf    bool // the peer receives nothing more
	heard   bool // neither does it send anything
	said    bool // our own goodbye, or failure
	stopped bool // what was being received, and the peer was told
	limit   time.Time
	over    bool
}

// outgoing is a message of which pieces are to be sent.
type outgoing struct {
	tag  int
	left int64 // bytes of which MPI has not said that they have left
}

// incoming is a message of which pieces are to come.
type incoming struct {
	head   header
	tag    int
	next   int64 // the first byte for which no receive is posted
	posted int   // receives
}

// syncEvery and mostSyncs are a window: a frame that ends only when received, every
// so many, and so many of them under way.
const syncEvery, mostSyncs = mpiWindow / 2, 2

func newMPIPeer(h *mpiHub, peer int) *mpiPeer {
	p := &mpiPeer{hub: h, peer: peer, queue: newSendQueue(h.endpoint.opt.Order), ended: make(chan struct{}),
		sends: map[*Message]*outgoing{}, incoming: map[int]*incoming{}, frame: make([]byte, mpiFrame)}
	p.queue.quiet = true
	for tag := 1; tag < mpiTags; tag++ {
		p.tags = append(p.tags, tag)
	}
	return p
}

// tag is MPI's, of ours: 0 for frames, others for pieces.
func (p *mpiPeer) tag(of int) int { return p.hub.turn%mpiTurns*mpiTags + of }

// carry queues a message and sends it at once, if no other goroutine calls MPI just now.
func (p *mpiPeer) carry(m *Message) {
	p.queue.put(m)
	if w := p.hub.world; w.TryLock() {
		p.pump()
		w.Unlock()
	}
	if p.queue.waiting() {
		p.hub.nudge()
	}
}

func (p *mpiPeer) gone() <-chan struct{} { return p.ended }

// fail may be called with the world's lock held, and so leaves the rest to
// wind; close likewise.
func (p *mpiPeer) fail(cause error) {
	p.queue.end(broken, cause)
	p.hub.nudge()
}

func (p *mpiPeer) close() {
	p.queue.end(draining, ErrClosed)
	p.hub.nudge()
}

// pump sends what the window allows, and says whether that was anything.
func (p *mpiPeer) pump() (moved bool) {
	for !p.over {
		c, ok := p.cut()
		if !ok {
			return moved
		}
		moved = true
		if c.offset == 0 {
			p.sendFrame(&c)
		} else {
			p.sendPiece(&c)
		}
	}
	return moved
}

// cut takes the next chunk that may leave.
func (p *mpiPeer) cut() (c Chunk, ok bool) {
	q := p.queue
	q.Lock()
	defer q.Unlock()
	if q.empty() {
		return c, false
	}
	switch m := q.first(); {
	case m.next > 0 && p.pieces < mpiPieces:
		return q.take(mpiPiece), true
	case m.next > 0 || p.syncs == mostSyncs || m.length > mpiInline && len(p.tags) == 0:
		return c, false
	}
	return q.take(mpiInline), true
}

// sendFrame sends the first bytes of a message.
func (p *mpiPeer) sendFrame(c *Chunk) {
	h := c.header()
	if rest := h.length - int64(h.chunk); rest > 0 {
		out := &outgoing{tag: p.tags[0], left: rest}
		p.tags = p.tags[1:]
		p.sends[c.m] = out
		h.sum = uint32(out.tag)
	}
	p.say(&h, c.bytes)
	p.written(c, nil)
}

// say sends a frame. Its bytes are copied, so they can be used again.
func (p *mpiPeer) say(h *header, text []byte) {
	h.from, h.to = p.hub.endpoint.rank, p.peer
	if !h.frame.hasBody() {
		h.length, h.chunk = int64(len(text)), len(text)
	}
	op := p.hub.newFrame(p)
	h.put(op.buf)
	n := headerSize + copy(op.buf[headerSize:], text)
	if p.plain++; p.plain == syncEvery {
		op.sync, p.plain = true, 0
		p.syncs++
	}
	p.frames++
	p.hub.endpoint.ledger.addOverhead(headerSize)
	p.hub.send(op, op.buf[:n], p.tag(0))
}

func (p *mpiPeer) sendPiece(c *Chunk) {
	p.pieces++
	p.hub.send(&mpiOp{peer: p, kind: pieceOut, buf: c.bytes, chunk: *c}, c.bytes, p.tag(p.sends[c.m].tag))
}

func (p *mpiPeer) written(c *Chunk, err error) {
	p.queue.Lock()
	defer p.queue.Unlock()
	p.queue.written(c, err)
}

// pieceSent gives back the tag after the last piece. It is the last to be used again.
func (p *mpiPeer) pieceSent(c *Chunk) {
	out := p.sends[c.m]
	if out.left -= int64(len(c.bytes)); out.left == 0 {
		delete(p.sends, c.m)
		p.tags = append(p.tags, out.tag)
	}
	p.written(c, nil)
}

// listen posts the receive of the next frame.
func (p *mpiPeer) listen() {
	if !p.over {
		p.hub.receive(&mpiOp{peer: p, kind: frameIn, buf: p.frame}, p.tag(0))
	}
}

// settle deals with what has ended; lost is the error of what never will.
func (p *mpiPeer) settle(op *mpiOp, lost error) {
	switch op.kind {
	case frameOut:
		p.frames--
		if op.sync {
			p.syncs--
		}
	case pieceOut:
		p.pieces--
		if lost != nil {
			p.written(&op.chunk, lost)
		} else {
			p.pieceSent(&op.chunk)
		}
	case frameIn:
		if lost == nil && !p.over && p.take() {
			p.listen()
		}
	case pieceIn:
		if lost == nil {
			lost = p.hub.endpoint.Err() // it may have been stopped half-way
		}
		op.in.posted--
		p.hub.endpoint.inbox.release(op.at, &op.head, lost)
		p.receivePieces(op.in)
	}
}

// take deals with the frame that has come, and says whether to listen for the next.
func (p *mpiPeer) take() bool {
	n, h := p.hub.endpoint, &p.head
	err := h.parse(p.frame)
	text := p.frame[headerSize:]
	switch {
	case err != nil:
	case h.belongs(p.peer, n.rank) != nil:
		err = h.belongs(p.peer, n.rank)
	case h.chunk > mpiInline || h.offset != 0 || h.offered:
		err = ErrFrame
	case h.frame == frameAlive && !p.greeted:
		err = p.greet(text[:h.chunk])
	case h.frame.hasBody() && p.greeted:
		return p.accept()
	case h.frame == frameGoodbye:
		p.goodbye = true
		p.farewell()
		return false
	case h.frame == frameTaken:
		p.deaf = true
	case h.frame == frameFailure:
		var f *Failure
		if f, err = h.failure(text[:h.chunk], n.Size()); err == nil {
			p.deaf, p.heard = true, true
			n.Fail(f)
			return false
		}
	case p.greeted && h.frame > frameRequest:
		if err := n.calls.control(h, text[:h.chunk]); err != nil {
			n.Fail(err)
		}
	default:
		err = ErrFrame
	}
	if err != nil {
		n.Fail(n.lost(p.peer, err))
	}
	return true
}

// accept puts the first bytes of a message in place and posts receives for the
// rest. It is false if there is no space yet.
func (p *mpiPeer) accept() bool {
	n, h := p.hub.endpoint, p.head
	rest := int64(h.chunk) < h.length
	tag := int(h.sum)
	if rest && (tag < 1 || tag >= mpiTags) {
		n.Fail(n.lost(p.peer, ErrFrame))
		return true
	}
	if rest && p.incoming[tag] != nil {
		// The sender has sent all of the last message of this tag, but not all of it
		// has been received; a receive for this one would take what is left of that.
		p.held = true
		return false
	}
	at, err := n.inbox.place(&h, false, nil)
	switch {
	case err == ErrNoSpace:
		p.held = true
		return false
	case err != nil:
		n.Fail(err) // and go on, to see what else the peer has to say
		return true
	}
	at.put(0, p.frame[headerSize:][:h.chunk])
	n.inbox.release(at, &h, nil)
	if rest {
		in := &incoming{head: h, tag: tag, next: int64(h.chunk)}
		p.incoming[tag] = in
		p.receivePieces(in)
	}
	return true
}

// retry looks whether it fits now.
func (p *mpiPeer) retry() bool {
	if !p.held || p.over {
		return false
	}
	p.held = false
	if !p.accept() {
		return false
	}
	p.listen()
	return true
}

// receivePieces posts receives into the places of the next pieces.
func (p *mpiPeer) receivePieces(in *incoming) {
	n := p.hub.endpoint
	for in.next < in.head.length && in.posted < mpiPieces && n.Err() == nil {
		h := in.head
		h.offset, h.chunk = in.next, int(min(mpiPiece, h.length-in.next))
		at, err := n.inbox.place(&h, false, nil)
		if err != nil {
			n.Fail(err)
			break
		}
		in.posted++
		in.next += int64(h.chunk)
		into := n.inbox.space(&at)
		p.hub.receive(&mpiOp{peer: p, kind: pieceIn, buf: into, in: in, at: at, head: h}, p.tag(in.tag))
	}
	if in.posted > 0 || in.next < in.head.length && n.Err() == nil {
		return
	}
	delete(p.incoming, in.tag)
	if p.held {
		p.hub.roomMade.Store(true) // perhaps it was held for this
	}
	p.farewell()
}

// farewell ends what is expected of a peer that has said goodbye, when all that it
// said before has come.
func (p *mpiPeer) farewell() {
	if !p.goodbye || p.heard || len(p.incoming) > 0 {
		return
	}
	p.deaf, p.heard = true, true
	n := p.hub.endpoint
	gone := n.lost(p.peer, ErrPeerClosed)
	n.inbox.endPeer(p.peer, gone)
	p.queue.end(broken, gone)
}

// wind is called again and again while the peer, or this endpoint, ends: what was
// queued leaves, or is given up; then we say goodbye, and wait for the peer's.
func (p *mpiPeer) wind() {
	n := p.hub.endpoint
	if p.over || n.Err() == nil && !p.deaf {
		return
	}
	now := n.clock.Now()
	if p.limit.IsZero() {
		p.limit = now.Add(n.opt.Linger)
		if n.Err() == ErrClosed {
			p.limit = now.Add(n.opt.Timeout)
		}
	}
	if n.Err() != nil && !p.stopped {
		p.stopReceiving()
	}
	if p.deaf || now.After(p.limit) {
		cause := n.lost(p.peer, ErrPeerClosed)
		if n.Err() != nil {
			cause = n.Err()
		}
		p.queue.end(broken, cause)
		p.hub.abandon(p, cause, pieceOut)
	}
	if (p.heard || n.Err() != nil) && !p.said && !p.queue.waiting() && p.pieces == 0 {
		p.sayEnding()
	}
	if p.said && (p.heard && p.frames == 0 && p.pieces == 0 && len(p.incoming) == 0 || now.After(p.limit)) {
		p.finish()
	}
}

// stopReceiving takes back the receives that are not waited for any more, tells the
// peer, which might wait for us to receive while we wait for it, and goes on receiving
// its end only.
func (p *mpiPeer) stopReceiving() {
	p.stopped = true
	// The carrier may not have been told yet, and nothing may follow the last word.
	if err := p.hub.endpoint.Err(); err != ErrClosed {
		p.queue.end(broken, err)
		p.sayEnding()
	} else if p.queue.end(draining, ErrClosed); !p.heard && (p.queue.waiting() || p.pieces > 0) {
		p.say(&header{frame: frameTaken}, nil)
	}
	p.hub.stop(p, pieceIn)
	if p.held {
		p.held = false
		p.listen()
	}
}

// sayEnding says the last word.
func (p *mpiPeer) sayEnding() {
	if p.said {
		return
	}
	p.said, p.limit = true, p.hub.endpoint.clock.Now().Add(p.hub.endpoint.opt.Linger)
	h, text := header{frame: frameGoodbye}, ""
	if err := p.hub.endpoint.Err(); err != nil && err != ErrClosed {
		f := root(p.hub.endpoint.rank, err)
		h.frame, h.key.Step, text = frameFailure, uint32(f.Rank), causeText(f.Cause)
	}
	p.say(&h, []byte(text))
}

// finish ends the carrier.
func (p *mpiPeer) finish() {
	if p.over {
		return
	}
	p.over = true
	p.hub.over++
	p.hub.stop(p, frameIn)
	p.hub.abandon(p, p.hub.endpoint.Err(), frameOut, pieceOut, pieceIn, frameIn)
	close(p.ended)
}
