package cluster

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// fakeNet is a network in memory, in fake time, that behaves as TCP does where it
// hurts: bytes take a while, those of a host that is cut off wait, a process that is
// stopped neither reads nor writes though its host still takes connections, and one
// that is killed hangs up, with a reset where it left something unread.
type fakeNet struct {
	mu        sync.Mutex
	change    chan struct{} // closed and made anew whenever something has changed
	delay     time.Duration
	listeners map[string]*fakeListener
	nextIP    byte
	nextNum   int
}

func newFakeNet(delay time.Duration) *fakeNet {
	return &fakeNet{change: make(chan struct{}), delay: delay, listeners: map[string]*fakeListener{}, nextNum: 1000}
}

// fakeHost is a host with one process on it.
type fakeHost struct {
	*fakeNet
	ip                 net.IP
	cut, stopped, dead bool
	conns              []*fakeConn
	own                []*fakeListener
}

// fakeConn is one end of a connection.
type fakeConn struct {
	host          *fakeHost
	local, remote *net.TCPAddr
	peer          *fakeConn
	in            []parcel
	held          int  // bytes in in
	reset, closed bool // by the peer; by us
	shut          bool // we say no more
	reads, writes time.Time
}

// parcel is bytes on their way, or the end of them.
type parcel struct {
	at    time.Time
	bytes []byte
	end   bool
}

// window is how many unread bytes a connection holds.
const window = 256 << 10

// host adds one to the network.
func (n *fakeNet) host() *fakeHost {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.nextIP++
	return &fakeHost{fakeNet: n, ip: net.IPv4(10, 0, 0, n.nextIP)}
}

// set changes the network, for all to see.
func (n *fakeNet) set(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	f()
	n.changed()
}

// REQUIRES: mu held.
func (n *fakeNet) changed() {
	close(n.change)
	n.change = make(chan struct{})
}

// until tries until it is done or an end has come, whenever something has changed or a
// time has come that try names.
func (n *fakeNet) until(ended <-chan struct{}, try func(now time.Time) (done bool, again time.Time)) bool {
	for {
		n.mu.Lock()
		now := time.Now()
		done, again := try(now)
		change := n.change
		n.mu.Unlock()
		if done {
			return true
		}
		var timer <-chan time.Time
		if !again.IsZero() {
			timer = time.After(again.Sub(now))
		}
		select {
		case <-change:
		case <-timer:
		case <-ended:
			return false
		}
	}
}

// kill ends the process of a host. Its peers hear of that, unless the host is gone
// with it.
func (h *fakeHost) kill() {
	h.set(func() {
		h.dead, h.stopped = true, false
		for _, c := range slices.Clone(h.conns) {
			c.close()
		}
		for _, d := range h.own {
			d.close()
		}
	})
}

// reaches reports whether bytes go from one host to another now.
func (h *fakeHost) reaches(o *fakeHost) bool { return !h.cut && !o.cut }

// listen opens a listener of the host.
func (h *fakeHost) listen(addr string) (listener, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, port, err := net.SplitHostPort(addr)
	if err != nil || h.dead {
		return nil, fmt.Errorf("listen %s: %w", addr, net.ErrClosed)
	}
	at := &net.TCPAddr{IP: h.ip}
	if fmt.Sscan(port, &at.Port); at.Port == 0 {
		h.nextNum++
		at.Port = h.nextNum
	}
	d := &fakeListener{host: h, at: at}
	h.listeners[at.String()] = d
	h.own = append(h.own, d)
	return d, nil
}

// dial connects with a listener.
func (h *fakeHost) dial(ctx context.Context, addr string) (net.Conn, error) {
	var conn *fakeConn
	var err error
	arrives := time.Now().Add(h.delay)
	whole := h.until(ctx.Done(), func(now time.Time) (bool, time.Time) {
		d := h.listeners[addr]
		switch {
		case h.dead:
			err = net.ErrClosed
			return true, time.Time{}
		case h.stopped || h.cut || d != nil && d.host.cut:
			return false, time.Time{}
		case now.Before(arrives):
			return false, arrives
		case d == nil || d.closed:
			err = fmt.Errorf("dial %s: %w", addr, syscall.ECONNREFUSED)
			return true, time.Time{}
		}
		conn = h.connect(d)
		h.changed()
		return true, time.Time{}
	})
	if !whole {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// REQUIRES: mu held.
func (h *fakeHost) connect(d *fakeListener) *fakeConn {
	h.nextNum++
	ours, theirs := &fakeConn{host: h, local: &net.TCPAddr{IP: h.ip, Port: h.nextNum},
		remote: d.at}, &fakeConn{host: d.host, local: d.at}
	theirs.remote, ours.peer, theirs.peer = ours.local, theirs, ours
	h.conns, d.host.conns = append(h.conns, ours), append(d.host.conns, theirs)
	d.queue = append(d.queue, theirs)
	return ours
}

// fakeListener is a listener.
type fakeListener struct {
	host   *fakeHost
	at     *net.TCPAddr
	queue  []*fakeConn
	closed bool
	end    time.Time
}

func (d *fakeListener) Addr() net.Addr { return d.at }

func (d *fakeListener) Accept() (conn net.Conn, err error) {
	d.host.until(nil, func(now time.Time) (bool, time.Time) {
		switch {
		case d.closed:
			err = net.ErrClosed
		case d.host.stopped:
			return false, time.Time{}
		case len(d.queue) > 0:
			conn, d.queue = d.queue[0], d.queue[1:]
		case !d.end.IsZero() && !now.Before(d.end):
			err = os.ErrDeadlineExceeded
		default:
			return false, d.end
		}
		return true, time.Time{}
	})
	return conn, err
}

func (d *fakeListener) SetDeadline(t time.Time) error {
	d.host.set(func() { d.end = t })
	return nil
}

func (d *fakeListener) Close() error {
	d.host.set(d.close)
	return nil
}

// REQUIRES: mu held.
func (d *fakeListener) close() {
	if d.closed {
		return
	}
	d.closed = true
	delete(d.host.listeners, d.at.String())
	for _, c := range d.queue {
		c.close()
	}
}

func (c *fakeConn) LocalAddr() net.Addr  { return c.local }
func (c *fakeConn) RemoteAddr() net.Addr { return c.remote }

func (c *fakeConn) Read(b []byte) (n int, err error) {
	c.host.until(nil, func(now time.Time) (bool, time.Time) {
		switch {
		case c.closed:
			err = net.ErrClosed
			return true, time.Time{}
		case c.host.stopped:
			return false, time.Time{}
		}
		flows := c.host.reaches(c.peer.host)
		first := parcel{at: c.reads}
		if len(c.in) > 0 && flows {
			first = c.in[0]
		}
		switch {
		case flows && c.reset:
			err = syscall.ECONNRESET
		case flows && len(c.in) > 0 && !now.Before(first.at) && first.end:
			err = io.EOF
		case flows && len(c.in) > 0 && !now.Before(first.at):
			n = c.take(b)
			c.host.changed()
		case !c.reads.IsZero() && !now.Before(c.reads):
			err = os.ErrDeadlineExceeded
		case c.reads.IsZero() || first.at.Before(c.reads):
			return false, first.at
		default:
			return false, c.reads
		}
		return true, time.Time{}
	})
	return n, err
}

// take moves bytes out of the first parcel.
func (c *fakeConn) take(b []byte) int {
	n := copy(b, c.in[0].bytes)
	c.held -= n
	if c.in[0].bytes = c.in[0].bytes[n:]; len(c.in[0].bytes) == 0 {
		c.in = c.in[1:]
	}
	return n
}

func (c *fakeConn) Write(b []byte) (n int, err error) {
	c.host.until(nil, func(now time.Time) (bool, time.Time) {
		switch {
		case c.closed || c.shut:
			err = net.ErrClosed
		case c.host.stopped:
			return false, time.Time{}
		case c.reset || c.peer.closed && c.host.reaches(c.peer.host):
			err = syscall.EPIPE
		case !c.writes.IsZero() && !now.Before(c.writes):
			err = os.ErrDeadlineExceeded
		case c.peer.held >= window:
			return false, c.writes
		default:
			c.peer.put(parcel{at: now.Add(c.host.delay), bytes: slices.Clone(b)})
			n = len(b)
			c.host.changed()
		}
		return true, time.Time{}
	})
	return n, err
}

func (c *fakeConn) put(p parcel) {
	if !c.closed {
		c.in = append(c.in, p)
		c.held += len(p.bytes)
	}
}

func (c *fakeConn) Close() error {
	c.host.set(c.close)
	return nil
}

// REQUIRES: mu held.
func (c *fakeConn) close() {
	if c.closed {
		return
	}
	c.closed = true
	if c.held > 0 {
		c.peer.reset = true
	}
	c.endOut()
	c.host.conns = slices.DeleteFunc(c.host.conns, func(o *fakeConn) bool { return o == c })
}

// endOut says that nothing follows.
// REQUIRES: mu held.
func (c *fakeConn) endOut() {
	if !c.shut {
		c.shut = true
		c.peer.put(parcel{at: time.Now().Add(c.host.delay), end: true})
	}
}

func (c *fakeConn) CloseWrite() error {
	c.host.set(c.endOut)
	return nil
}

func (c *fakeConn) SetDeadline(t time.Time) error {
	c.host.set(func() { c.reads, c.writes = t, t })
	return nil
}

func (c *fakeConn) SetReadDeadline(t time.Time) error {
	c.host.set(func() { c.reads = t })
	return nil
}

func (c *fakeConn) SetWriteDeadline(t time.Time) error {
	c.host.set(func() { c.writes = t })
	return nil
}
