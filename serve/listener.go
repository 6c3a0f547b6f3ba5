package serve

import (
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"starling/wire"
)

// listener accepts a bounded number of connections, and closes them so that what was sent
// arrives: a socket that is closed with unread bytes resets the connection, and the peer may lose an
// answer that is on its way.
type listener struct {
	net.Listener
	places   chan struct{}
	accepted atomic.Int64 // connections so far
	draining atomic.Bool
	open     sync.WaitGroup // connections that are not closed for good
}

func newListener(l net.Listener, most int) *listener {
	return &listener{Listener: l, places: make(chan struct{}, most)}
}

// Accept answers those beyond the limit itself.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := wire.Accept(l.Listener, nil)
		if err != nil {
			return nil, err
		}
		l.accepted.Add(1)
		l.open.Add(1)
		conn := &gentleConn{Conn: c, l: l}
		select {
		case l.places <- struct{}{}:
			conn.placed = true
			return conn, nil
		default:
			conn.refuse()
		}
	}
}

// busy is the answer to a connection that is not read.
var busy = fmt.Sprintf("HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 1\r\n"+
	"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(tooMany), tooMany)

const tooMany = `{"error":"too many connections; ask again later"}` + "\n"

const (
	// lingering is how long a closed connection is read from, so that the peer gets our end first.
	lingering = time.Second
	// lastRequest is how long an idle connection is left open when the server stops, for a request
	// that was sent before its peer could know.
	lastRequest = 50 * time.Millisecond
	// mostLingering bounds what is read from a closed connection.
	mostLingering = 1 << 20
)

// gentleConn is closed in three steps: our end, then the peer's, then the socket.
type gentleConn struct {
	net.Conn
	l      *listener
	placed bool
	once   sync.Once
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
	defer c.l.open.Done()
	if c.l.draining.Load() {
		time.Sleep(lastRequest) // the goroutine that reads from it may still get a request, and answer it
	}
	c.CloseWrite()
	c.SetReadDeadline(time.Now().Add(lingering))
	io.CopyN(io.Discard, c.Conn, mostLingering) // until the peer has closed its end too
	c.Conn.Close()
	if c.placed {
		<-c.l.places
	}
}

// wait returns when all connections are closed for good, or after a while.
func (l *listener) wait(most time.Duration) {
	done := make(chan struct{})
	go func() { l.open.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(most):
	}
}
