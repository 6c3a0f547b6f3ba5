package wire

import (
	"errors"
	"net"
	"slices"
	"sync"
)

var (
	errCrowd = errors.New("it was pushed out of a crowded doorway")
	errShut  = errors.New("the door was shut")
)

// Doorway holds connections that have not proved yet that they belong here, so many
// at most. When too many come, who has stood there longest is sent away: a peer takes
// no more than a moment to come in, so even a crowd that says nothing keeps it out for
// no longer than that.
type Doorway struct {
	places int
	mu     struct {
		sync.Mutex
		inside []*Visit // in the order they came
		shut   bool
	}
}

// Visit is one who stands in the doorway.
type Visit struct {
	Conn   net.Conn
	door   *Doorway
	proved bool
	sent   error // why it was sent away; nil: it was not
}

// NewDoorway has so many places.
func NewDoorway(places int) *Doorway { return &Doorway{places: places} }

// Enter makes room for a connection; nil: the door is shut.
func (d *Doorway) Enter(conn net.Conn) *Visit {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.mu.shut {
		return nil
	}
	if len(d.mu.inside) >= d.places {
		if i := slices.IndexFunc(d.mu.inside, func(o *Visit) bool { return !o.proved && o.sent == nil }); i >= 0 {
			d.mu.inside[i].send(errCrowd)
		}
	}
	v := &Visit{Conn: conn, door: d}
	d.mu.inside = append(d.mu.inside, v)
	return v
}

// Shut sends away who stands in the doorway, and lets in nobody else.
func (d *Doorway) Shut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mu.shut = true
	for _, v := range d.mu.inside {
		v.send(errShut)
	}
}

// REQUIRES: the doorway's mu held.
func (v *Visit) send(why error) {
	v.sent = why
	v.Conn.Close()
}

// Known says whether the visitor has proved that it belongs here, with err == nil: then
// it is not sent away for others any more. It returns why it was before, or err.
func (v *Visit) Known(err error) error {
	v.door.mu.Lock()
	defer v.door.mu.Unlock()
	if v.sent != nil {
		return v.sent
	}
	v.proved = err == nil
	return err
}

// Leave ends the visit; the connection stays open.
func (v *Visit) Leave() {
	v.door.mu.Lock()
	defer v.door.mu.Unlock()
	v.door.mu.inside = slices.DeleteFunc(v.door.mu.inside, func(o *Visit) bool { return o == v })
}
