//go:build !linux

package testflood

import (
	"net"
	"time"
)

type socket struct{ *net.TCPConn }

func dial(addr string, _ int) (connection, error) {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return nil, err
	}
	return socket{c.(*net.TCPConn)}, nil
}

func (s socket) reset() { s.SetLinger(0); s.Close() }
