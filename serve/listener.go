package serve

import (
	"fmt"
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
	mu       struct {
		sync.Mutex
		conns map[*gentleConn]bool // those that are open
	}
}

func newListener(l net.Listener, most int) *listener {
	out := &listener{Listener: l, places: make(chan struct{}, most)}
	out.mu.conns = map[*gentleConn]bool{}
	return out
}

// Accept answers those beyond the limit itself.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := wire.Accept(l.Listener, nil)
		if err != nil {
			return nil, err
		}
		conn := l.add(c)
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
	// mostLingering bounds what is read from a closed connection.
	mostLingering = 1 << 20
)

func (l *listener) add(c net.Conn) *gentleConn {
	l.mu.Lock()
	defer l.mu.Unlock()
	conn := &gentleConn{Conn: c, l: l}
	l.mu.conns[conn] = true
	l.open.Add(1)
	l.accepted.Add(1)
	return conn
}

func (l *listener) remove(c *gentleConn) {
	l.mu.Lock()
	delete(l.mu.conns, c)
	l.mu.Unlock()
	l.open.Done()
}

// drain has idle connections end soon, now and from now on.
func (l *listener) drain() {
	l.draining.Store(true)
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.mu.conns {
		c.idle.Lock()
		c.setDeadline()
		c.idle.Unlock()
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
