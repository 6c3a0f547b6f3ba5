package paths

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"starling/wire"
	"starling/wire/tcp"
)

const (
	// tick is how often connections are looked after.
	tick = 100 * time.Millisecond
	// A path that was silent for pingAfter is asked; one that was silent for silentAfter, though asked, has
	// failed, unless it is the last.
	pingAfter, silentAfter = 250 * time.Millisecond, 800 * time.Millisecond
	// graceTime is how long a connection waits for a path when it has none.
	graceTime = 2 * time.Second
	// closeTime bounds how long what was written may take to leave after Close.
	closeTime = 2 * time.Second
	// batchBytes is what one write has at most.
	batchBytes = 4 * segmentSize
	// mostBuffers is how many a connection keeps for later.
	mostBuffers = 64
)

// Conn is a connection over several paths. To its user it is like one TCP connection: what is written is read, once and
// in order. Each segment goes by the path that the policy chooses; a path that fails is left, what it did not
// acknowledge goes by another, and it is taken back when it works again. Only the last path's failure is the
// connection's.
type Conn struct {
	clock   wire.Clock
	start   time.Time // of the process's paths
	local   net.Addr
	remote  net.Addr
	onClose func(*Conn)

	mu struct {
		sync.Mutex
		readable  sync.Cond // there may be something to read, or a reason not to wait for it
		writable  sync.Cond // the same of space, and of what Close waits for
		out       *sender
		in        receiver
		links     []*link // by path; nil: down
		announced uint64  // the limit that the peer knows
		cause     error   // why nothing works any more
		closed    bool    // by the user
		hasty     bool    // it waits for no path
		ended     bool    // writing has
		without   time.Time
		last      error // of the path that failed last
		read      deadline
		write     deadline
		switched  int // paths that have failed
		lost      []loss
		changed   func(path int, cause error) // see notify; nil: none is called
		bufferSet [][]byte
	}
	timer wire.Timer
}

// link is the TCP connection of a path.
type link struct {
	c        *Conn
	path     int
	conn     net.Conn
	wake     sync.Cond
	arrived  uint32    // segments
	acked    uint32    // of those the peer knows
	received time.Time // when a frame came last
	asked    bool      // a ping is to be sent
	answer   bool      // an acknowledgement is to be sent
	ended    bool      // the end was sent here
	dead     bool
	lingers  bool // the reader closes the connection
}

// deadline of reads or writes.
type deadline struct {
	timer   wire.Timer
	expired bool
}

func newConn(clock wire.Clock, c *chooser, local, remote net.Addr) *Conn {
	k := &Conn{clock: clock, start: c.start, local: local, remote: remote, onClose: func(*Conn) {}}
	k.mu.readable.L, k.mu.writable.L = &k.mu.Mutex, &k.mu.Mutex
	k.mu.out, k.mu.links, k.mu.announced = newSender(c), make([]*link, len(c.plan.File.Paths)), window
	k.mu.lost = make([]loss, len(k.mu.links))
	k.mu.without = clock.Now()
	k.timer = clock.AfterFunc(tick, k.look)
	return k
}

func (k *Conn) now() float64 { return wire.Since(k.clock, k.start).Seconds() }

// attach gives the connection a path. It reports whether it took conn.
func (k *Conn) attach(path int, conn net.Conn) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mu.cause != nil || path < 0 || path >= len(k.mu.links) {
		return false
	}
	if old := k.mu.links[path]; old != nil { // the peer has noticed that it failed before we did
		k.lose(old, errors.New("it was opened anew"))
	}
	l := &link{c: k, path: path, conn: conn, received: k.clock.Now()}
	l.wake.L = &k.mu.Mutex
	k.mu.links[path] = l
	k.mu.out.raise(k.now(), path)
	k.wakeAll()
	tcp.TunePath(conn, k.mu.out.paths[path].most/2)
	go l.write()
	go l.read()
	return true
}

// wakeLinks wakes the writers of those paths that have something to send.
// REQUIRES: mu held.
func (k *Conn) wakeLinks() {
	for _, l := range k.mu.links {
		if l != nil && l.due() {
			l.wake.Signal()
		}
	}
}

// wakeAll lets everybody look at what has become of the connection.
// REQUIRES: mu held.
func (k *Conn) wakeAll() {
	k.mu.readable.Broadcast()
	k.mu.writable.Broadcast()
	k.wakeLinks()
}

// lose takes a path away. What it did not acknowledge goes by another.
// REQUIRES: mu held.
func (k *Conn) lose(l *link, cause error) {
	if l.dead {
		return
	}
	l.dead = true
	l.wake.Signal()
	abort(l.conn)
	if k.mu.links[l.path] != l {
		return
	}
	k.mu.links[l.path], k.mu.last = nil, cause
	if lost := &k.mu.lost[l.path]; !lost.noted {
		lost.cause, lost.at = cause, k.clock.Now()
	}
	k.mu.switched++
	k.mu.out.down(k.now(), l.path)
	if !k.anyLink() {
		k.mu.without = k.clock.Now()
		switch {
		case k.mu.closed || k.mu.in.finished() && k.mu.ended && k.mu.out.idle():
			k.fail(io.EOF)
		case k.mu.hasty:
			k.fail(k.allFailed())
		}
	}
	k.wakeAll()
}

// REQUIRES: mu held.
func (k *Conn) anyLink() bool {
	return slices.ContainsFunc(k.mu.links, func(l *link) bool { return l != nil })
}

// fail ends everything.
// REQUIRES: mu held.
func (k *Conn) fail(cause error) {
	if k.mu.cause != nil {
		return
	}
	k.mu.cause = cause
	k.timer.Stop()
	for _, l := range k.mu.links {
		if l != nil {
			l.dead = true
			l.wake.Signal()
			l.hangUp(cause)
		}
	}
	k.mu.out.abandon()
	k.wakeAll()
	go k.onClose(k)
}

// hangUp closes the TCP connection. After a failure at once; else when the peer has closed it too, for closing with
// bytes unread would destroy what is on its way there.
func (l *link) hangUp(cause error) {
	half, ok := l.conn.(interface{ CloseWrite() error })
	if cause != net.ErrClosed || !ok {
		abort(l.conn)
		return
	}
	l.lingers = true
	l.conn.SetDeadline(wire.SocketTime(closeTime))
	go half.CloseWrite() // of TLS, it waits for a write that is under way
}

// abort closes a connection at once: TLS would send the peer a last record first, over a path that may be dead.
func abort(conn net.Conn) {
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secure.NetConn()
	}
	conn.Close()
}

// look is called every tick.
func (k *Conn) look() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mu.cause != nil {
		return
	}
	now, alive := k.clock.Now(), 0
	for _, l := range k.mu.links {
		if l != nil {
			alive++
		}
	}
	for _, l := range k.mu.links {
		if l == nil {
			continue
		}
		switch silent := now.Sub(l.received); {
		case silent > silentAfter && alive > 1:
			alive--
			k.lose(l, fmt.Errorf("it was silent for %v", silent.Round(time.Millisecond)))
		case silent > pingAfter:
			l.asked = true
			l.wake.Signal()
		}
	}
	if alive == 0 && now.Sub(k.mu.without) > graceTime {
		k.fail(k.allFailed())
		return
	}
	k.notify()
	k.timer.Reset(tick)
}

// allFailed is the error of a connection that no path is left of.
// REQUIRES: mu held.
func (k *Conn) allFailed() error {
	last := k.mu.last
	if last == nil {
		last = os.ErrDeadlineExceeded
	}
	return fmt.Errorf("all paths to the peer have failed: %v", last)
}

// WaitForNoPath makes the connection fail as soon as it has no path, instead of waiting graceTime for another. Its user
// has failed: what is still to be sent is why, and most likely the peer has gone.
func (k *Conn) WaitForNoPath() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mu.hasty = true
	if !k.anyLink() {
		k.fail(k.allFailed())
	}
}

// Read implements net.Conn.
func (k *Conn) Read(b []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for {
		if n := k.mu.in.read(b, k.give); n > 0 || len(b) == 0 {
			if k.mu.in.limit()-k.mu.announced >= window/4 {
				k.answerAll()
			}
			return n, nil
		}
		switch {
		case k.mu.in.finished():
			return 0, io.EOF
		case k.mu.closed:
			return 0, net.ErrClosed
		case k.mu.cause != nil:
			return 0, k.mu.cause
		case k.mu.read.expired:
			return 0, os.ErrDeadlineExceeded
		}
		k.mu.readable.Wait()
	}
}

// answerAll lets the peer know that there is space again.
// REQUIRES: mu held.
func (k *Conn) answerAll() {
	for _, l := range k.mu.links {
		if l != nil {
			l.answer = true
			l.wake.Signal()
		}
	}
}

// Write implements net.Conn. It returns when all of b is on its way or waits for a path: b may change then.
func (k *Conn) Write(b []byte) (int, error) {
	one := net.Buffers{b}
	n, err := k.WriteBuffers(&one)
	return int(n), err
}

// WriteBuffers is Write for what lies in several places, such as a head and its data, so that they need not be segments
// of their own. It consumes v.
func (k *Conn) WriteBuffers(v *net.Buffers) (n int64, err error) {
	left := 0
	for _, b := range *v {
		left += len(b)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for left > 0 {
		if err := k.writeError(); err != nil {
			return n, err
		}
		size := evenly(left)
		if !k.mu.out.takes(k.now(), size) {
			k.mu.writable.Wait()
			continue
		}
		data := k.buffer(size)
		v.Read(data)
		k.mu.out.put(k.now(), data)
		k.wakeLinks()
		left, n = left-size, n+int64(size)
	}
	return n, nil
}

// evenly returns the length of the first part of n bytes, cut into as few segments as possible of about the same size.
func evenly(bytes int) int {
	parts := (bytes + segmentSize - 1) / segmentSize
	return (bytes + parts - 1) / parts
}

// writeError is why nothing can be written.
// REQUIRES: mu held.
func (k *Conn) writeError() error {
	switch {
	case k.mu.closed || k.mu.ended:
		return net.ErrClosed
	case k.mu.cause != nil:
		return k.mu.cause
	case k.mu.write.expired:
		return os.ErrDeadlineExceeded
	}
	return nil
}

// buffer is one for a segment: see memoryOf.
// REQUIRES: mu held.
func (k *Conn) buffer(bytes int) []byte {
	if bytes <= segmentSize/2 {
		return make([]byte, bytes)
	}
	if n := len(k.mu.bufferSet); n > 0 {
		b := k.mu.bufferSet[n-1]
		k.mu.bufferSet = k.mu.bufferSet[:n-1]
		return b[:bytes]
	}
	return make([]byte, segmentSize)[:bytes]
}

// give takes a buffer back.
// REQUIRES: mu held.
func (k *Conn) give(b []byte) {
	if cap(b) == segmentSize && len(k.mu.bufferSet) < mostBuffers {
		k.mu.bufferSet = append(k.mu.bufferSet, b[:segmentSize])
	}
}

// CloseWrite ends writing: the peer reads to the end.
func (k *Conn) CloseWrite() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.mu.ended = true
	k.wakeLinks()
	return nil
}

// Close ends the connection. What was written still leaves, within some time.
func (k *Conn) Close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.mu.closed {
		return net.ErrClosed
	}
	k.mu.closed, k.mu.ended = true, true
	k.wakeAll()
	if k.mu.cause != nil {
		return nil
	}
	late := k.clock.AfterFunc(closeTime, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.fail(net.ErrClosed)
	})
	go k.leave(late)
	return nil
}

// leave waits until everything was acknowledged, and the end was sent.
func (k *Conn) leave(late wire.Timer) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for k.mu.cause == nil && !(k.mu.out.idle() && k.endSent()) {
		k.mu.writable.Wait()
	}
	late.Stop()
	k.fail(net.ErrClosed)
}

// endSent reports whether a path has taken the end.
// REQUIRES: mu held.
func (k *Conn) endSent() bool {
	for _, l := range k.mu.links {
		if l != nil && l.ended {
			return true
		}
	}
	return !k.anyLink()
}

// LocalAddr, RemoteAddr and the deadlines implement net.Conn.
func (k *Conn) LocalAddr() net.Addr { return k.local }

// RemoteAddr is the peer's address on the path by which the connection was opened.
func (k *Conn) RemoteAddr() net.Addr { return k.remote }

// SetDeadline implements net.Conn.
func (k *Conn) SetDeadline(t time.Time) error {
	k.SetReadDeadline(t)
	return k.SetWriteDeadline(t)
}

// SetReadDeadline implements net.Conn.
func (k *Conn) SetReadDeadline(t time.Time) error { return k.setDeadline(&k.mu.read, t) }

// SetWriteDeadline implements net.Conn.
func (k *Conn) SetWriteDeadline(t time.Time) error { return k.setDeadline(&k.mu.write, t) }

func (k *Conn) setDeadline(d *deadline, t time.Time) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
	}
	d.timer, d.expired = nil, false
	if !t.IsZero() {
		left := t.Sub(k.clock.Now())
		if d.expired = left <= 0; !d.expired {
			timer := new(wire.Timer)
			*timer = k.clock.AfterFunc(left, func() {
				k.mu.Lock()
				defer k.mu.Unlock()
				if d.timer == *timer {
					d.expired = true
					k.wakeAll()
				}
			})
			d.timer = *timer
		}
	}
	k.wakeAll()
	return nil
}

// Switched is how often a path was left.
func (k *Conn) Switched() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.mu.switched
}

// write sends what the path has to send.
func (l *link) write() {
	k := l.c
	var segments []*segment
	var heads []byte
	var vec net.Buffers
	k.mu.Lock()
	defer k.mu.Unlock()
	for {
		for !l.dead && !l.due() {
			l.wake.Wait()
		}
		if l.dead {
			return
		}
		segments = k.mu.out.take(l.path, batchBytes, segments[:0])
		heads, vec = l.frames(segments, heads[:0], vec[:0])
		k.mu.Unlock()
		_, err := vec.WriteTo(l.conn)
		k.mu.Lock()
		if err != nil {
			k.lose(l, err)
			return
		}
		if k.mu.ended {
			k.mu.writable.Broadcast() // leave waits for the end
		}
	}
}

// due reports whether there is anything to send.
// REQUIRES: mu held.
func (l *link) due() bool {
	return len(l.c.mu.out.paths[l.path].waiting) > 0 || l.asked || l.answer || l.c.mu.ended && !l.ended
}

// frames are the heads and data of segments, and whatever else is to be sent.
// REQUIRES: mu held.
func (l *link) frames(segments []*segment, heads []byte, vec net.Buffers) ([]byte, net.Buffers) {
	k := l.c
	if need := (len(segments) + 2) * frameSize; cap(heads) < need {
		heads = make([]byte, 0, 2*need)
	}
	add := func(kind byte, offset uint64, data []byte) {
		h := frameHead{kind: kind, length: uint32(len(data)), offset: offset, acked: l.arrived,
			limit: k.mu.in.limit()}
		heads = heads[:len(heads)+frameSize]
		h.put(heads[len(heads)-frameSize:])
		vec = append(vec, heads[len(heads)-frameSize:])
		if len(data) > 0 {
			vec = append(vec, data)
		}
	}
	for _, g := range segments {
		add(frameData, g.offset, g.data)
	}
	if l.asked {
		add(framePing, 0, nil)
	} else if len(segments) == 0 && l.answer {
		add(frameAck, 0, nil)
	}
	if k.mu.ended && !l.ended {
		l.ended = true
		add(frameEnd, k.mu.out.next, nil)
	}
	l.asked, l.answer, l.acked = false, false, l.arrived
	k.mu.announced = max(k.mu.announced, k.mu.in.limit())
	return heads, vec
}

// read takes in frames until the path fails.
func (l *link) read() {
	k := l.c
	err := l.readFrames()
	k.mu.Lock()
	defer k.mu.Unlock()
	if l.lingers {
		k.mu.Unlock()
		io.Copy(io.Discard, l.conn)
		l.conn.Close()
		k.mu.Lock()
		return
	}
	k.lose(l, err)
	if errors.Is(err, errStream) {
		k.fail(err) // no path brings what is wrong into order
	}
}

func (l *link) readFrames() error {
	var h frameHead
	var b [frameSize]byte
	k := l.c
	for {
		if _, err := io.ReadFull(l.conn, b[:]); err != nil {
			return err
		}
		if err := h.parse(b[:]); err != nil {
			return err
		}
		var data []byte
		if h.kind == frameData {
			k.mu.Lock()
			data = k.buffer(int(h.length))
			k.mu.Unlock()
			if _, err := io.ReadFull(l.conn, data); err != nil {
				return err
			}
		}
		if err := l.take(&h, data); err != nil {
			return err
		}
	}
}

// take receives a frame.
func (l *link) take(h *frameHead, data []byte) error {
	k := l.c
	k.mu.Lock()
	defer k.mu.Unlock()
	if l.dead {
		return net.ErrClosed
	}
	l.received = k.clock.Now()
	before := k.mu.out.limit
	done, err := k.mu.out.acknowledged(k.now(), l.path, h.acked, h.limit, func(g *segment) { k.give(g.data) })
	if err != nil {
		return err
	}
	if done > 0 || k.mu.out.limit > before {
		k.mu.writable.Broadcast()
	}
	switch h.kind {
	case frameData:
		l.arrived++
		l.answer = true
		kept, err := k.mu.in.arrived(h.offset, data)
		if err != nil {
			return err
		}
		if !kept {
			k.give(data)
		}
		if len(k.mu.in.ready) > 0 {
			k.mu.readable.Broadcast()
		}
	case framePing:
		l.answer = true
	case frameEnd:
		if k.mu.in.ended && k.mu.in.end != h.offset || h.offset < k.mu.in.next {
			return fmt.Errorf("%w: an end at %d", errStream, h.offset)
		}
		k.mu.in.ended, k.mu.in.end = true, h.offset
		k.wakeAll()
	}
	k.wakeLinks()
	return nil
}
