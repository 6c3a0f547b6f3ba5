package web

import (
	"net"
	"sync"

	"starling/wire"
)

// limited accepts a bounded number of connections; those beyond are closed. The server closes those that stay idle.
type limited struct {
	net.Listener
	places chan struct{}
}

func newLimited(l net.Listener, most int) *limited { return &limited{l, make(chan struct{}, most)} }

func (l *limited) Accept() (net.Conn, error) {
	for {
		c, err := wire.Accept(l.Listener, nil)
		if err != nil {
			return nil, err
		}
		select {
		case l.places <- struct{}{}:
			return &limitedConn{Conn: c, places: l.places}, nil
		default:
			c.Close()
		}
	}
}

type limitedConn struct {
	net.Conn
	places chan struct{}
	once   sync.Once
}

func (c *limitedConn) Close() error {
	c.once.Do(func() { <-c.places })
	return c.Conn.Close()
}
