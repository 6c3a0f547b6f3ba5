package wire

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"starling/coflow"
)

const (
	// batchFrames is how many small messages leave in one write.
	batchFrames = 64
	// A write should take about this long: less costs system calls, more costs an
	// urgent message time.
	shortWrite, longWrite = 500 * time.Microsecond, 2 * time.Millisecond
)

// tcpPeer carries messages to one peer over several connections. Each has a
// goroutine that takes chunks from the one queue, so that large messages are
// striped over all of them unless the link is slow, and one that reads straight into
// the buffers of posted receives.
type tcpPeer struct {
	endpoint *endpoint
	peer     int
	queue    *sendQueue
	conns    []*tcpConn
	ended    chan struct{}
	// drain is called when the peer has said goodbye on all connections, before
	// what was expected of it fails.
	drain func()
	// left is called when the peer takes nothing more.
	left func(cause error)
	// control: messages travel by shared memory, and only the ending here.
	control bool
	// late runs from close on, for a peer that takes nothing: a write to it may not
	// even have begun.
	late Timer

	goodbyes atomic.Int32
	running  atomic.Int32 // goroutines
}

// tcpConn is one of the connections.
type tcpConn struct {
	*tcpPeer
	conn   net.Conn
	in     reader
	sides  atomic.Int32  // the writer and the reader, while they run
	cutoff chan struct{} // closed when fail has interrupted the reader

	mu struct {
		sync.Mutex
		writing error // what the writer died of
	}

	first  bool    // of the connections to the peer
	class  int     // of the messages that it carries, if the queue is divided
	piece  int     // bytes in a write: from chunkSize to maxChunk, by what the link can do
	kernel *kernel // nil: not known
	paced  bool    // by what the link takes, because it leaves the host
	pace   pace
	out    linkHeader    // of the last frame written
	last   atomic.Uint64 // when the last frame that was read had been sent
	frames atomic.Uint32 // the sequence of that frame
	heads  [batchFrames * frameHead]byte
	chunks []Chunk
	vec    net.Buffers
}

func newTCPPeer(n *endpoint, peer int, conns []net.Conn) *tcpPeer {
	p := &tcpPeer{endpoint: n, peer: peer, queue: newSendQueue(n.opt.Order), ended: make(chan struct{}),
		drain: func() {}, left: func(error) {}}
	p.late = n.clock.AfterFunc(time.Hour, func() { p.giveUp(n.lost(peer, errNotReceived)) })
	p.late.Stop()
	for i, c := range conns {
		k := kernelOf(c)
		p.conns = append(p.conns, &tcpConn{tcpPeer: p, conn: c, cutoff: make(chan struct{}), first: i == 0, class: i,
			piece: chunkSize, kernel: k, paced: k != nil && leaves(c)})
	}
	return p
}

// start sets the goroutines going, when the node is complete.
func (p *tcpPeer) start() {
	p.running.Store(int32(2 * len(p.conns)))
	for _, c := range p.conns {
		if c.kernel != nil {
			c.kernel.tune()
			if !c.paced {
				c.kernel.plain()
			}
		}
		c.in.open(c.conn)
		c.sides.Store(2)
		go c.write()
		go c.read()
	}
}

func (p *tcpPeer) carry(m *Message) { p.queue.put(m) }

func (p *tcpPeer) gone() <-chan struct{} { return p.ended }

// fail interrupts both sides of every connection: the reader so that it lets go of
// buffers, the writer so that it says why instead of what was queued.
func (p *tcpPeer) fail(cause error) {
	p.queue.end(broken, cause)
	for _, c := range p.conns {
		c.conn.SetWriteDeadline(SocketTime(p.endpoint.opt.Linger))
		c.conn.SetReadDeadline(SocketPast)
		close(c.cutoff)
	}
}

func (p *tcpPeer) close() {
	p.queue.end(draining, ErrClosed)
	p.late.Reset(p.endpoint.opt.Timeout)
	for _, c := range p.conns {
		c.conn.SetWriteDeadline(SocketTime(p.endpoint.opt.Timeout))
	}
}

// giveUp ends what has not left yet: the peer will not take it.
func (p *tcpPeer) giveUp(cause error) {
	p.queue.end(broken, cause)
	p.left(cause)
}

// sideEnds closes the connection when both sides have ended, and the carrier when
// all connections have.
func (c *tcpConn) sideEnds() {
	if c.sides.Add(-1) == 0 {
		c.conn.Close()
	}
	if c.running.Add(-1) == 0 {
		c.late.Stop()
		close(c.ended)
	}
}

// write sends what is queued, and in the end a goodbye or the cause.
func (c *tcpConn) write() {
	defer c.sideEnds()
	for c.takeBatch() {
		err := c.writeBatch()
		var lost error
		if err != nil {
			lost = c.endpoint.lost(c.peer, err)
		}
		c.queue.Lock()
		if slow := c.pace.slow(); c.first && c.queue.class == nil && slow != c.queue.slow {
			c.queue.slow = slow
			c.queue.wakeAll()
		}
		for i := range c.chunks {
			c.queue.written(&c.chunks[i], lost)
		}
		c.queue.Unlock()
		if err != nil {
			c.writeFailed(err)
			return
		}
	}
	c.writeEnding()
}

// takeBatch waits for something to send. It is false when the queue has ended.
func (c *tcpConn) takeBatch() bool {
	q := c.queue
	q.Lock()
	defer q.Unlock()
	for !c.mayTake() {
		if q.state != open && q.empty() && (q.inFlight == 0 || !c.control) {
			return false
		}
		c.pause()
	}
	clear(c.chunks)
	c.chunks = c.chunks[:0]
	for bytes := 0; c.mayTake() && bytes < c.piece && len(c.chunks) < batchFrames; {
		piece := q.take(c.piece)
		bytes += len(piece.bytes) + frameHead
		c.chunks = append(c.chunks, piece)
	}
	if !q.empty() {
		q.signal() // a message that is large is for the other connections too
	}
	return true
}

// mayTake reports whether the next chunk is for this connection.
// REQUIRES: the queue's lock held.
func (c *tcpConn) mayTake() bool {
	q := c.queue
	switch {
	case q.empty() || c.control:
		return false
	case q.class != nil:
		return coflow.Class(q.first().key.Coflow) == c.class
	}
	return c.first || !q.slow
}

// pause waits until there may be something to take.
// REQUIRES: the queue's lock held.
func (c *tcpConn) pause() {
	q := c.queue
	switch {
	case q.class != nil:
		q.class[c.class].Wait()
	case c.first || !q.slow:
		q.wake.Wait()
	default:
		q.wake.Signal() // if it was this one that was woken
		q.others.Wait()
	}
}

// writeBatch sends the chunks taken in one system call.
func (c *tcpConn) writeBatch() error {
	vec, bytes, now := c.vec[:0], 0, c.endpoint.stamp()
	for i := range c.chunks {
		piece := &c.chunks[i]
		h := piece.header()
		h.sum = checksum(piece.bytes)
		head := c.heads[i*frameHead:][:frameHead]
		h.put(head)
		c.stamp(head[headerSize:], now)
		vec = append(vec, head)
		if len(piece.bytes) > 0 {
			vec = append(vec, piece.bytes)
		}
		bytes += frameHead + len(piece.bytes)
	}
	c.vec = vec
	c.endpoint.ledger.addOverhead(len(c.chunks) * frameHead)
	tells := c.paced && bytes >= chunkSize // a small one tells more of the system call
	before := 0
	if tells {
		before = c.kernel.unacked()
	}
	begin := monotonic()
	n, err := c.writeAll(vec)
	took := time.Duration(monotonic() - begin)
	switch {
	case took > longWrite:
		c.piece = max(c.piece/2, chunkSize)
	case took < shortWrite && int(n) >= c.piece:
		c.piece = min(c.piece*2, maxChunk)
	}
	if tells && c.pace.wrote(before+int(n)-c.kernel.unacked(), took) {
		c.settle()
	}
	return err
}

// writeAll writes what lies in several places: at once, if the connection can.
func (c *tcpConn) writeAll(vec net.Buffers) (int64, error) {
	if several, ok := c.conn.(interface {
		WriteBuffers(*net.Buffers) (int64, error)
	}); ok {
		return several.WriteBuffers(&vec)
	}
	return vec.WriteTo(c.conn)
}

// stamp fills the link's part of a frame's header.
func (c *tcpConn) stamp(b []byte, now uint64) {
	c.out.sequence++
	c.out.sent, c.out.acked, c.out.echo = now, c.frames.Load(), c.last.Load()
	c.out.put(b)
}

// arrived takes in the link's part of a frame's header.
func (c *tcpConn) arrived(b []byte) error {
	var l linkHeader
	if err := l.parse(b); err != nil {
		return err
	}
	c.last.Store(l.sent)
	c.frames.Store(l.sequence)
	return nil
}

// settle judges the link, and tells the kernel.
func (c *tcpConn) settle() {
	least, now := c.kernel.trips()
	if !c.pace.judge(least, now) {
		return
	}
	c.kernel.hold(c.pace.window)
	if c.pace.slow() && least < covered {
		c.kernel.plain()
	}
}

// writeFailed leaves it to the reader to say what happened, because the peer may
// have told the cause before its end of the connection closed. But not for long.
func (c *tcpConn) writeFailed(err error) {
	c.mu.Lock()
	c.mu.writing = err
	c.mu.Unlock()
	c.conn.SetReadDeadline(SocketTime(c.endpoint.opt.Linger))
}

// writeEnding sends the goodbye or the cause of a failure, the last frame.
func (c *tcpConn) writeEnding() {
	h := header{frame: frameGoodbye, from: c.endpoint.rank, to: c.peer}
	var text string
	if err := c.endpoint.Err(); err != nil && err != ErrClosed {
		f := root(c.endpoint.rank, err)
		h.frame, h.key.Step, text = frameFailure, uint32(f.Rank), causeText(f.Cause)
		h.length, h.chunk, h.sum = int64(len(text)), len(text), checksum([]byte(text))
	}
	var head [frameHead]byte
	h.put(head[:])
	c.stamp(head[headerSize:], c.endpoint.stamp())
	c.conn.Write(append(head[:], text...)) // a peer that does not read it sees the connection end
	if half, ok := c.conn.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
	}
	if h.frame == frameGoodbye {
		c.conn.SetReadDeadline(SocketTime(c.endpoint.opt.Linger))
	}
}

// read takes in frames until the peer says goodbye or the connection ends.
func (c *tcpConn) read() {
	defer c.sideEnds()
	err := c.readFrames()
	if err == nil {
		return // nothing comes after a goodbye
	}
	lost := c.endpoint.lost(c.peer, c.cause(err))
	c.endpoint.Fail(lost)
	if c.endpoint.Err() == ErrClosed {
		c.giveUp(lost) // or we have said goodbye, and waited long enough
		return
	}
	// Closing with bytes unread would destroy the cause on its way to the peer.
	<-c.cutoff
	c.conn.SetReadDeadline(SocketTime(c.endpoint.opt.Linger))
	io.Copy(io.Discard, c.conn)
}

// cause makes the end of a connection readable.
func (c *tcpConn) cause(err error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded) && c.mu.writing != nil:
		return c.mu.writing
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return errNoGoodbye
	}
	return err
}

// readFrames returns nil after a goodbye.
func (c *tcpConn) readFrames() error {
	var h header
	for {
		head, err := c.in.take(frameHead)
		if err != nil {
			return err
		}
		if err := h.parse(head); err != nil {
			return err
		}
		if err := c.arrived(head[headerSize:]); err != nil {
			return err
		}
		if err := h.belongs(c.peer, c.endpoint.rank); err != nil {
			return err
		}
		switch {
		case h.offered:
			err = ErrFrame
		case h.frame.hasBody():
			err = c.readMessage(&h)
		case h.frame == frameGoodbye:
			c.goodbye()
			return nil
		case h.frame == frameFailure:
			err = c.readFailure(&h)
		case h.frame == frameAlive:
			err = c.in.skip(h.chunk)
		default:
			err = c.readControl(&h)
		}
		if err != nil {
			return err
		}
	}
}

// readControl reads a frame of calls that is no message.
func (c *tcpConn) readControl(h *header) error {
	text, err := c.in.take(h.chunk)
	if err == nil {
		err = h.check(text)
	}
	if err != nil {
		return err
	}
	if err := c.endpoint.calls.control(h, text); err != nil {
		c.endpoint.Fail(err)
	}
	return nil // to see what else the peer has to say
}

// readMessage reads a chunk to its place.
func (c *tcpConn) readMessage(h *header) error {
	at, err := c.endpoint.inbox.place(h, true, nil)
	if err != nil {
		c.endpoint.Fail(err)
		return c.in.skip(h.chunk) // to see what else the peer has to say
	}
	into := c.endpoint.inbox.space(&at)
	err = c.in.read(into)
	if err == nil {
		err = h.check(into)
	}
	c.endpoint.inbox.release(at, h, err)
	return err
}

func (c *tcpConn) readFailure(h *header) error {
	text, err := c.in.take(h.chunk)
	if err != nil {
		return err
	}
	if err := h.check(text); err != nil {
		return err
	}
	f, err := h.failure(text, c.endpoint.Size())
	if err == nil {
		c.endpoint.Fail(f)
	}
	return err
}

// goodbye ends the carrier when it was said on every connection: messages may
// still be on their way on the others.
func (c *tcpConn) goodbye() {
	if int(c.goodbyes.Add(1)) < len(c.conns) {
		return
	}
	for _, other := range c.conns {
		other.conn.SetWriteDeadline(SocketTime(c.endpoint.opt.Linger)) // it reads no longer than that
	}
	c.drain()
	gone := c.endpoint.lost(c.peer, ErrPeerClosed)
	c.endpoint.inbox.endPeer(c.peer, gone)
	c.giveUp(gone)
}
