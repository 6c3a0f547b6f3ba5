package wire

import (
	"errors"
	"net"
	"sync"
	"time"
)

const (
	// handshakeTime bounds a whole handshake, so that who dials and says nothing,
	// or says it slowly, holds nothing for long.
	handshakeTime = 5 * time.Second
	// strangers is how many may stand in the doorway beyond the peers themselves.
	strangers = 16
)

// door is the one listener of a worker. It stays open during the run: whoever
// comes and does not belong here is refused, with a reason for the log, and
// nobody else notices.
type door struct {
	listener net.Listener
	id       *identity
	admit    func(*guest) error // an error that is a *Refusal is said to the guest
	refused  func(from net.Addr, reason error)
	places   chan struct{}
	wg       sync.WaitGroup

	mu struct {
		sync.Mutex
		inside map[net.Conn]bool // in the doorway
		closed bool
	}
}

func newDoor(l net.Listener, id *identity, admit func(*guest) error, refused func(net.Addr, error)) *door {
	d := &door{listener: l, id: id, admit: admit, refused: refused, places: make(chan struct{}, id.size*id.connections+strangers)}
	if refused == nil {
		d.refused = func(net.Addr, error) {}
	}
	d.mu.inside = map[net.Conn]bool{}
	d.wg.Go(d.run)
	return d
}

func (d *door) run() {
	for {
		conn, err := d.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of descriptors, or the dialer hung up: the listener is still good
			d.refused(nil, err)
			time.Sleep(10 * time.Millisecond)
			continue
		}
		select {
		case d.places <- struct{}{}:
		default:
			d.refused(conn.RemoteAddr(), errors.New("too many at once"))
			conn.Close()
			continue
		}
		if !d.enter(conn) {
			conn.Close()
			return
		}
		d.wg.Go(func() { d.meet(conn) })
	}
}

// meet sees one dialer through the handshake.
func (d *door) meet(conn net.Conn) {
	defer func() { <-d.places }()
	conn.SetDeadline(time.Now().Add(handshakeTime))
	g, err := d.id.challenge(conn)
	if err == nil {
		err = d.admit(g)
		var r *Refusal
		if errors.As(err, &r) {
			turnAway(conn, r)
		}
	}
	d.leave(conn)
	if err != nil {
		conn.Close()
		d.refused(conn.RemoteAddr(), err)
	}
}

func (d *door) enter(conn net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.inside[conn] = true
	return !d.mu.closed
}

func (d *door) leave(conn net.Conn) {
	d.mu.Lock()
	delete(d.mu.inside, conn)
	d.mu.Unlock()
}

// close shuts the door and sends away who stands in it.
func (d *door) close() {
	d.listener.Close()
	d.mu.Lock()
	d.mu.closed = true
	for conn := range d.mu.inside {
		conn.Close()
	}
	d.mu.Unlock()
	d.wg.Wait()
}
