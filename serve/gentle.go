package serve

import (
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// lastRequest is how long an idle connection is left open when the server stops, for a request
// that was sent before its peer could know.
const lastRequest = 100 * time.Millisecond

// gentleConn is closed in three steps: our end, then the peer's, then the socket. When the server stops, an idle one
// ends only after a look at the socket that found no byte of a next request; once there is one, the request has the
// server's own deadlines and is answered.
type gentleConn struct {
	net.Conn
	l      *listener
	placed bool
	once   sync.Once
	idle   struct {
		sync.Mutex
		now      bool      // between two requests: no byte of the next one was read
		deadline time.Time // for reading, as the server has set it
	}
}

// follow is the server's ConnState: it tells connections when they wait for a next request.
func follow(conn net.Conn, state http.ConnState) {
	if c, ok := conn.(*gentleConn); ok {
		c.setIdle(state == http.StateIdle)
	}
}

func (c *gentleConn) setIdle(now bool) {
	c.idle.Lock()
	defer c.idle.Unlock()
	if c.idle.now != now {
		c.idle.now = now
		c.setDeadline()
	}
}

// SetReadDeadline keeps the server's deadline for the time when a request has begun.
func (c *gentleConn) SetReadDeadline(t time.Time) error {
	c.idle.Lock()
	defer c.idle.Unlock()
	c.idle.deadline = t
	return c.setDeadline()
}

// setDeadline is the server's deadline, or an earlier one if the server stops and c is idle.
// REQUIRES: idle held
func (c *gentleConn) setDeadline() error {
	t := c.idle.deadline
	if c.ending() {
		if soon := time.Now().Add(lastRequest); t.IsZero() || soon.Before(t) {
			t = soon
		}
	}
	return c.Conn.SetReadDeadline(t)
}

// ending reports whether c waits for a request while the server stops.
// REQUIRES: idle held
func (c *gentleConn) ending() bool { return c.idle.now && c.l.draining.Load() }

// Read looks at the socket once more when an idle connection's time is over: on a busy host a request may have
// arrived long before the reader was told.
func (c *gentleConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) && c.over() {
		if n = readNow(c.Conn, b); n > 0 {
			err = nil
		}
	}
	if n > 0 {
		c.setIdle(false)
	}
	return n, err
}

func (c *gentleConn) over() bool {
	c.idle.Lock()
	defer c.idle.Unlock()
	return c.ending()
}

// refuse answers without reading, and closes.
func (c *gentleConn) refuse() {
	c.SetWriteDeadline(time.Now().Add(lingering))
	io.WriteString(c.Conn, busy) // the peer may be gone
	c.Close()
}

// CloseWrite is what net/http looks for.
func (c *gentleConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close returns at once; wait says when all are closed.
func (c *gentleConn) Close() error {
	c.once.Do(func() { go c.end() })
	return nil
}

func (c *gentleConn) end() {
	defer c.l.remove(c)
	c.CloseWrite()
	c.Conn.SetReadDeadline(time.Now().Add(lingering))
	io.CopyN(io.Discard, c.Conn, mostLingering) // until the peer has closed its end too
	c.Conn.Close()
	if c.placed {
		<-c.l.places
	}
}
