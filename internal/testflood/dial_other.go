//go:build !linux

package testflood

import (
	"errors"
	"net"
	"os"
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

func (s socket) send(b []byte) (n int, closed bool) {
	s.SetWriteDeadline(time.Now().Add(time.Millisecond))
	n, err := s.Write(b)
	return n, err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

func (s socket) reset() { s.SetLinger(0); s.Close() }
