package watch

import (
	"net"
	"sync"

	"starling/wire"
	"starling/wire/tcp"
)

// LimitConns keeps at most that many connections of a listener open. One that comes to a full house takes the place
// of the oldest one of the address that has most, so that silent and slow clients keep no other one out.
func LimitConns(l net.Listener, most int) net.Listener {
	return &limited{Listener: l, pool: tcp.NewPreAuthPool(most)}
}

type limited struct {
	net.Listener
	pool *tcp.PreAuthPool
}

func (f *limited) Accept() (net.Conn, error) {
	c, err := wire.Accept(f.Listener, nil)
	if err != nil {
		return nil, err
	}
	place := f.pool.Add(c)
	if place == nil {
		c.Close()
		return nil, net.ErrClosed
	}
	return &limitedConn{Conn: c, place: place}, nil
}

func (f *limited) Close() error {
	err := f.Listener.Close()
	f.pool.Close()
	return err
}

type limitedConn struct {
	net.Conn
	place *tcp.PreAuthConn
	once  sync.Once
}

func (c *limitedConn) Close() error {
	c.once.Do(c.place.Remove)
	return c.Conn.Close()
}
