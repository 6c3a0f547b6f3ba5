package watch

import (
	"net"
	"sync"

	"starling/wire"
)

// LimitConns closes connections to a listener beyond the first most that are open.
func LimitConns(l net.Listener, most int) net.Listener {
	return &limited{Listener: l, open: make(chan struct{}, most)}
}

type limited struct {
	net.Listener
	open chan struct{}
}

func (f *limited) Accept() (net.Conn, error) {
	for {
		c, err := wire.Accept(f.Listener, nil)
		if err != nil {
			return nil, err
		}
		select {
		case f.open <- struct{}{}:
			return &limitedConn{Conn: c, open: f.open}, nil
		default:
			c.Close()
		}
	}
}

type limitedConn struct {
	net.Conn
	open chan struct{}
	once sync.Once
}

func (c *limitedConn) Close() error {
	c.once.Do(func() { <-c.open })
	return c.Conn.Close()
}
