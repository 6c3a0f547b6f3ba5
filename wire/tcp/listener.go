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

// Listener is the listener of a worker, and the one of all its paths. It stays open during the run: a connection
// that does not belong to the job is refused, with a reason for the log, and disturbs no other. Before a connection has
// authenticated it has a place of the pre-authentication pool, and nothing else.
type Listener struct {
	handshake *Handshake
	check     func(claim []byte) *Refusal
	admit     func(*Introduced) error // an error that is a *Refusal is sent to the dialer
	refused   func(from net.Addr, reason error)
	sockets   []net.Listener
	pool      *PreAuthPool
	wg        sync.WaitGroup
}

// Listen accepts connections of sockets, which it closes. check returns what is wrong with a claim, before
// the dialer has authenticated; admit takes the connection of one that has. refused may be nil. The pool has peers
// places and PreAuthPlaces more.
func Listen(h *Handshake, peers int, check func(claim []byte) *Refusal, admit func(*Introduced) error,
	refused func(net.Addr, error), sockets ...net.Listener) *Listener {
	l := &Listener{handshake: h, check: check, admit: admit, refused: refused, sockets: sockets,
		pool: NewPreAuthPool(peers + PreAuthPlaces)}
	if refused == nil {
		l.refused = func(net.Addr, error) {}
	}
	for _, s := range sockets {
		l.wg.Go(func() { l.run(s) })
	}
	return l
}

// listenAs is the listener of a worker.
func listenAs(id *identity, socket net.Listener, admit func(*candidate) error, refused func(net.Addr, error)) *Listener {
	return Listen(id.handshake(), id.size*id.connections, id.checkClaim,
		func(d *Introduced) error { return admit(newCandidate(d)) }, refused, socket)
}

func (l *Listener) run(socket net.Listener) {
	for {
		conn, err := wire.Accept(socket, func(err error) { l.refused(nil, err) })
		if err != nil {
			return
		}
		c := l.pool.Add(conn)
		if c == nil {
			conn.Close()
			return
		}
		l.wg.Go(func() { l.open(c) })
	}
}

// open authenticates one dialer and admits it.
func (l *Listener) open(c *PreAuthConn) {
	defer c.Remove()
	conn := c.Conn
	conn.SetDeadline(wire.SocketTime(handshakeTime))
	dialer, err := l.handshake.challenge(conn, l.check, c.Promising)
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

// Close closes the sockets and the connections that have not authenticated.
func (l *Listener) Close() error {
	var errs []error
	for _, s := range l.sockets {
		errs = append(errs, s.Close())
	}
	l.pool.Close()
	l.wg.Wait()
	return errors.Join(errs...)
}
