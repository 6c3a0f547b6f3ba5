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
	doorway  *Doorway
	wg       sync.WaitGroup
}

func newDoor(l net.Listener, id *identity, admit func(*guest) error, refused func(net.Addr, error)) *door {
	d := &door{listener: l, id: id, admit: admit, refused: refused, doorway: NewDoorway(id.size*id.connections + strangers)}
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
		v := d.doorway.Enter(conn)
		if v == nil {
			conn.Close()
			return
		}
		d.wg.Go(func() { d.meet(v) })
	}
}

// meet sees one dialer through the handshake.
func (d *door) meet(v *Visit) {
	defer v.Leave()
	conn := v.Conn
	conn.SetDeadline(time.Now().Add(handshakeTime))
	g, err := d.id.challenge(conn)
	if err = v.Known(err); err == nil {
		err = d.admit(g)
		if r, ok := errors.AsType[*Refusal](err); ok {
			turnAway(conn, r)
		}
	}
	if err != nil {
		conn.Close()
		d.refused(conn.RemoteAddr(), err)
	}
}

// close shuts the door and sends away who stands in it.
func (d *door) close() {
	d.listener.Close()
	d.doorway.Shut()
	d.wg.Wait()
}
