package tcp

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"starling/wire"
	"starling/wire/shm"
)

const (
	// batchFrames is how many small messages leave in one write.
	batchFrames = 64
	// A write should take about this long: less costs system calls, more costs an
	// urgent message time.
	shortWrite, longWrite = 500 * time.Microsecond, 2 * time.Millisecond
)

// errNoGoodbye is the cause of a peer whose connection ended without a goodbye:
// its process has died.
var errNoGoodbye = errors.New("its connection ended without a goodbye")

// errNotReceived is the cause of what a peer has not taken in time when this end was closed.
var errNotReceived = errors.New("it did not receive what was sent to it")

// carrier carries messages to one peer over several connections. Each has a goroutine that takes chunks from
// the one queue, so that large messages are striped over all of them unless the link is slow, and one that reads
// straight into the buffers of posted receives.
type carrier struct {
	inbox *wire.Inbox
	peer  int
	queue *wire.Queue
	lanes lanes
	conns []*connection
	start time.Time // from which frames count their time
	ended chan struct{}
	// memory carries the messages of a peer on this host; the connection only ends them. nil: none is shared.
	memory *shm.Peer
	// late runs from Close on, for a peer that takes nothing: a write to it may not even have begun.
	late wire.Timer

	goodbyes atomic.Int32
	running  atomic.Int32 // goroutines
}

// connection is one of the connections to a peer.
type connection struct {
	*carrier
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
	chunks []wire.Chunk
	vec    net.Buffers
}

func newCarrier(in *wire.Inbox, peer int, conns []net.Conn) *carrier {
	clock := in.Options().Clock
	p := &carrier{inbox: in, peer: peer, queue: wire.NewQueue(in.Options()), start: clock.Now(), ended: make(chan struct{})}
	p.lanes.open(p.queue)
	p.late = clock.AfterFunc(time.Hour, func() { p.giveUp(in.Lost(peer, errNotReceived)) })
	p.late.Stop()
	for i, c := range conns {
		k := kernelOf(c)
		p.conns = append(p.conns, &connection{carrier: p, conn: c, cutoff: make(chan struct{}), first: i == 0, class: i,
			piece: wire.ChunkSize, kernel: k, paced: k != nil && leaves(c)})
	}
	return p
}

// run starts the goroutines, when the endpoint is complete.
func (p *carrier) run() {
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

// share makes messages travel through memory.
func (p *carrier) share(m *shm.Peer) {
	p.memory = m
	p.queue.OnPut(func() {}) // the goroutine that puts a message also sends it
}

// Carry puts a message on its way.
func (p *carrier) Carry(m *wire.Message) {
	if p.memory != nil {
		p.memory.Carry(m)
		return
	}
	p.queue.Put(m)
}

func (p *carrier) Gone() <-chan struct{} { return p.ended }

// Fail interrupts both sides of every connection: the reader so that it lets go of
// buffers, the writer so that it sends the cause instead of what was queued.
func (p *carrier) Fail(cause error) {
	p.queue.Fail(cause)
	for _, c := range p.conns {
		c.conn.SetWriteDeadline(wire.SocketTime(p.inbox.Options().Linger))
		c.conn.SetReadDeadline(wire.SocketPast)
		if several, ok := c.conn.(interface{ WaitForNoPath() }); ok {
			several.WaitForNoPath()
		}
		close(c.cutoff)
	}
	if p.memory != nil {
		p.memory.Withdraw(cause)
	}
}

// Close lets what is queued leave.
func (p *carrier) Close() {
	p.queue.Close()
	timeout := p.inbox.Options().Timeout
	p.late.Reset(timeout)
	for _, c := range p.conns {
		c.conn.SetWriteDeadline(wire.SocketTime(timeout))
	}
}

// giveUp ends what has not left yet: the peer will not take it.
func (p *carrier) giveUp(cause error) {
	p.queue.Fail(cause)
	if p.memory != nil {
		p.memory.Withdraw(cause)
	}
}

// stamp is the time for the headers of frames that leave now; never 0.
func (p *carrier) stamp() uint64 { return uint64(wire.Since(p.inbox.Options().Clock, p.start)) | 1 }

// sideEnds closes the connection when both sides have ended, and the carrier when
// all connections have.
func (c *connection) sideEnds() {
	if c.sides.Add(-1) == 0 {
		c.conn.Close()
	}
	if c.running.Add(-1) == 0 {
		c.late.Stop()
		close(c.ended)
	}
}

// write sends what is queued, and in the end a goodbye or the cause.
func (c *connection) write() {
	defer c.sideEnds()
	for c.takeBatch() {
		err := c.writeBatch()
		var lost error
		if err != nil {
			lost = c.inbox.Lost(c.peer, err)
		}
		c.queue.Lock()
		if c.first {
			c.lanes.setSlow(c.pace.slow())
		}
		for i := range c.chunks {
			c.queue.Written(&c.chunks[i], lost)
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
func (c *connection) takeBatch() bool {
	q := c.queue
	q.Lock()
	defer q.Unlock()
	for !c.mayTake() {
		if q.Ended() && q.Empty() && (q.Idle() || c.memory == nil) {
			return false
		}
		c.lanes.wait(c.first, c.class)
	}
	clear(c.chunks)
	c.chunks = c.chunks[:0]
	for bytes := 0; c.mayTake() && bytes < c.piece && len(c.chunks) < batchFrames; {
		piece := q.Cut(c.piece)
		bytes += len(piece.Bytes()) + frameHead
		c.chunks = append(c.chunks, piece)
	}
	if !q.Empty() {
		c.lanes.signal() // a message that is large is for the other connections too
	}
	return true
}

// mayTake reports whether the next chunk is for this connection.
// REQUIRES: the queue's lock held.
func (c *connection) mayTake() bool {
	return c.memory == nil && !c.queue.Empty() && c.lanes.admit(c.first, c.class)
}

// writeBatch sends the chunks taken in one system call.
func (c *connection) writeBatch() error {
	vec, bytes, now := c.vec[:0], 0, c.stamp()
	for i := range c.chunks {
		piece := &c.chunks[i]
		h := piece.Header()
		h.Sum = wire.Checksum(piece.Bytes())
		head := c.heads[i*frameHead:][:frameHead]
		h.Put(head)
		c.putLink(head[wire.HeaderSize:], now)
		vec = append(vec, head)
		if len(piece.Bytes()) > 0 {
			vec = append(vec, piece.Bytes())
		}
		bytes += frameHead + len(piece.Bytes())
	}
	c.vec = vec
	c.inbox.Overhead(len(c.chunks) * frameHead)
	judged := c.paced && bytes >= wire.ChunkSize // a small one measures the system call
	before := 0
	if judged {
		before = c.kernel.unacked()
	}
	begin := wire.Monotonic()
	n, err := c.writeAll(vec)
	took := time.Duration(wire.Monotonic() - begin)
	switch {
	case took > longWrite:
		c.piece = max(c.piece/2, wire.ChunkSize)
	case took < shortWrite && int(n) >= c.piece:
		c.piece = min(c.piece*2, wire.MaxChunk)
	}
	if judged && c.pace.wrote(before+int(n)-c.kernel.unacked(), took) {
		c.settle()
	}
	return err
}

// writeAll writes what lies in several places: at once, if the connection can.
func (c *connection) writeAll(vec net.Buffers) (int64, error) {
	if several, ok := c.conn.(interface {
		WriteBuffers(*net.Buffers) (int64, error)
	}); ok {
		return several.WriteBuffers(&vec)
	}
	return vec.WriteTo(c.conn)
}

// putLink fills the link's part of a frame's header.
func (c *connection) putLink(b []byte, now uint64) {
	c.out.sequence++
	c.out.sent, c.out.acked, c.out.echo = now, c.frames.Load(), c.last.Load()
	c.out.put(b)
}

// arrived takes in the link's part of a frame's header.
func (c *connection) arrived(b []byte) error {
	var l linkHeader
	if err := l.parse(b); err != nil {
		return err
	}
	c.last.Store(l.sent)
	c.frames.Store(l.sequence)
	return nil
}

// settle judges the link, and sets the kernel's buffer.
func (c *connection) settle() {
	least, now := c.kernel.trips()
	if !c.pace.judge(least, now) {
		return
	}
	c.kernel.hold(c.pace.window)
	if c.pace.slow() && least < covered {
		c.kernel.plain()
	}
}

// writeFailed leaves it to the reader to find the cause, because the peer may
// have sent it before its end of the connection closed. But not for long.
func (c *connection) writeFailed(err error) {
	c.mu.Lock()
	c.mu.writing = err
	c.mu.Unlock()
	c.conn.SetReadDeadline(wire.SocketTime(c.inbox.Options().Linger))
}

// writeEnding sends the goodbye or the cause of a failure, the last frame.
func (c *connection) writeEnding() {
	h, text := c.inbox.Ending(c.peer)
	h.Sum = wire.Checksum(text)
	var head [frameHead]byte
	h.Put(head[:])
	c.putLink(head[wire.HeaderSize:], c.stamp())
	c.conn.Write(append(head[:], text...)) // a peer that does not read it sees the connection end
	if half, ok := c.conn.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
	}
	if h.Frame == wire.FrameGoodbye {
		c.conn.SetReadDeadline(wire.SocketTime(c.inbox.Options().Linger))
	}
}

// read takes in frames until the peer's goodbye or the end of the connection.
func (c *connection) read() {
	defer c.sideEnds()
	err := c.readFrames()
	if err == nil {
		return // nothing comes after a goodbye
	}
	lost := c.inbox.Lost(c.peer, c.cause(err))
	c.inbox.Fail(lost)
	if c.inbox.Err() == wire.ErrClosed {
		c.giveUp(lost) // or we have sent a goodbye, and waited long enough
		return
	}
	// Closing with bytes unread would destroy the cause on its way to the peer.
	<-c.cutoff
	c.conn.SetReadDeadline(wire.SocketTime(c.inbox.Options().Linger))
	io.Copy(io.Discard, c.conn)
}

// cause makes the end of a connection readable.
func (c *connection) cause(err error) error {
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
func (c *connection) readFrames() error {
	var h wire.Header
	for {
		head, err := c.in.take(frameHead)
		if err != nil {
			return err
		}
		if err := h.Parse(head); err != nil {
			return err
		}
		if err := c.arrived(head[wire.HeaderSize:]); err != nil {
			return err
		}
		if err := h.Belongs(c.peer, c.inbox.Rank()); err != nil {
			return err
		}
		switch {
		case h.Offered:
			err = wire.ErrFrame
		case h.Frame.HasBody():
			err = c.readMessage(&h)
		case h.Frame == wire.FrameGoodbye:
			c.goodbye()
			return nil
		case h.Frame == wire.FrameFailure:
			err = c.readFailure(&h)
		case h.Frame == wire.FrameAlive:
			err = c.in.skip(h.Chunk)
		default:
			err = c.readControl(&h)
		}
		if err != nil {
			return err
		}
	}
}

// readControl reads a frame of calls that has no body.
func (c *connection) readControl(h *wire.Header) error {
	text, err := c.in.take(h.Chunk)
	if err == nil {
		err = h.Check(text)
	}
	if err != nil {
		return err
	}
	c.inbox.Control(h, text)
	return nil // also after an error: the peer may have sent the cause of its end
}

// readMessage reads a chunk to its place.
func (c *connection) readMessage(h *wire.Header) error {
	at, err := c.inbox.AwaitPlace(h)
	if err != nil {
		c.inbox.Fail(err)
		return c.in.skip(h.Chunk) // the peer may have sent the cause of its end
	}
	into := c.inbox.Space(&at)
	err = c.in.read(into)
	if err == nil {
		err = h.Check(into)
	}
	c.inbox.Release(at, h, err)
	return err
}

func (c *connection) readFailure(h *wire.Header) error {
	text, err := c.in.take(h.Chunk)
	if err != nil {
		return err
	}
	if err := h.Check(text); err != nil {
		return err
	}
	return c.inbox.Ended(h, text)
}

// goodbye ends the carrier when one has come on every connection: messages may
// still be on their way on the others.
func (c *connection) goodbye() {
	if int(c.goodbyes.Add(1)) < len(c.conns) {
		return
	}
	for _, other := range c.conns {
		other.conn.SetWriteDeadline(wire.SocketTime(c.inbox.Options().Linger)) // it reads no longer than that
	}
	if c.memory != nil {
		c.memory.Drain()
	}
	c.inbox.PeerClosed(c.peer)
	c.giveUp(c.inbox.Lost(c.peer, wire.ErrPeerClosed))
}
