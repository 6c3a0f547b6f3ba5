package wire

import (
	"errors"
	"net"
	"slices"
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

var (
	errCrowd = errors.New("it was pushed out of a crowded doorway")
	errShut  = errors.New("the worker is about to leave")
)

// door is the one listener of a worker. It stays open during the run: whoever
// comes and does not belong here is refused, with a reason for the log, and
// nobody else notices. When too many stand in the doorway, who has stood there
// longest is sent away: a peer takes no more than a moment to come in, so that
// even a crowd that says nothing keeps it out for no longer than that.
type door struct {
	listener net.Listener
	id       *identity
	admit    func(*guest) error // an error that is a *Refusal is said to the guest
	refused  func(from net.Addr, reason error)
	places   int
	wg       sync.WaitGroup

	mu struct {
		sync.Mutex
		inside []*visit // in the doorway, in the order they came
		closed bool
	}
}

func newDoor(l net.Listener, id *identity, admit func(*guest) error, refused func(net.Addr, error)) *door {
	d := &door{listener: l, id: id, admit: admit, refused: refused, places: id.size*id.connections + strangers}
	if refused == nil {
		d.refused = func(net.Addr, error) {}
	}
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
		v := &visit{conn: conn}
		if !d.enter(v) {
			conn.Close()
			return
		}
		d.wg.Go(func() { d.meet(v) })
	}
}

// visit is one who stands in the doorway.
type visit struct {
	conn   net.Conn
	proved bool  // it belongs here
	sent   error // why it was sent away; nil: it was not
}

// meet sees one dialer through the handshake.
func (d *door) meet(v *visit) {
	conn := v.conn
	conn.SetDeadline(time.Now().Add(handshakeTime))
	g, err := d.id.challenge(conn)
	if sent := d.known(v, err == nil); sent != nil {
		err = sent
	}
	if err == nil {
		err = d.admit(g)
		if r, ok := errors.AsType[*Refusal](err); ok {
			turnAway(conn, r)
		}
	}
	d.leave(v)
	if err != nil {
		conn.Close()
		d.refused(conn.RemoteAddr(), err)
	}
}

// enter makes room for a visit. It is false when the door is shut.
func (d *door) enter(v *visit) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.closed {
		return false
	}
	if len(d.mu.inside) >= d.places {
		if i := slices.IndexFunc(d.mu.inside, func(o *visit) bool { return !o.proved && o.sent == nil }); i >= 0 {
			d.send(d.mu.inside[i], errCrowd)
		}
	}
	d.mu.inside = append(d.mu.inside, v)
	return true
}

// send ends a visit.
// REQUIRES: mu held.
func (d *door) send(v *visit, why error) {
	v.sent = why
	v.conn.Close()
}

// known tells whether a visitor has proved that it belongs here. It returns why that
// one was sent away before, or nil.
func (d *door) known(v *visit, proved bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	v.proved = proved
	return v.sent
}

func (d *door) leave(v *visit) {
	d.mu.Lock()
	d.mu.inside = slices.DeleteFunc(d.mu.inside, func(o *visit) bool { return o == v })
	d.mu.Unlock()
}

// close shuts the door and sends away who stands in it.
func (d *door) close() {
	d.listener.Close()
	d.mu.Lock()
	d.mu.closed = true
	for _, v := range d.mu.inside {
		d.send(v, errShut)
	}
	d.mu.Unlock()
	d.wg.Wait()
}
