package tcp

import (
	"errors"
	"net"
	"sync"
	"time"

	"starling/wire"
)

// handshakeTime bounds a whole handshake, so that a peer that sends nothing, or sends slowly,
// holds nothing for long.
const handshakeTime = 5 * time.Second

// listener is the one listener of a worker. It stays open during the run: a connection
// that does not belong to the job is refused, with a reason for the log, and disturbs
// no other.
type listener struct {
	socket  net.Listener
	id      *identity
	admit   func(*candidate) error // an error that is a *Refusal is sent to the candidate
	refused func(from net.Addr, reason error)
	pool    *PreAuthPool
	wg      sync.WaitGroup
}

func newListener(socket net.Listener, id *identity, admit func(*candidate) error,
	refused func(net.Addr, error)) *listener {
	l := &listener{socket: socket, id: id, admit: admit, refused: refused,
		pool: NewPreAuthPool(id.size*id.connections + PreAuthPlaces)}
	if refused == nil {
		l.refused = func(net.Addr, error) {}
	}
	l.wg.Go(l.run)
	return l
}

func (l *listener) run() {
	for {
		conn, err := wire.Accept(l.socket, func(err error) { l.refused(nil, err) })
		if err != nil {
			return
		}
		c := l.pool.Add(conn)
		if c == nil {
			conn.Close()
			return
		}
		l.wg.Go(func() { l.handshake(c) })
	}
}

// handshake authenticates one dialer and admits it.
func (l *listener) handshake(c *PreAuthConn) {
	defer c.Remove()
	conn := c.Conn
	conn.SetDeadline(wire.SocketTime(handshakeTime))
	dialer, err := l.id.challenge(conn, c.Promising)
	if err = c.Authenticated(err); err == nil {
		err = l.admit(dialer)
		if r, ok := errors.AsType[*Refusal](err); ok {
			sendRefusal(conn, r)
		}
	}
	if err != nil {
		conn.Close()
		l.refused(conn.RemoteAddr(), err)
	}
}

// close closes the listener and the connections that have not authenticated.
func (l *listener) close() {
	l.socket.Close()
	l.pool.Close()
	l.wg.Wait()
}
