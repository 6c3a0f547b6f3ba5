package testflood

import (
	"net"
	"testing"
	"time"
)

// delayedBytes are on their way.
type delayedBytes struct {
	due time.Time
	b   []byte
}

// Forward copies from one connection to another, each piece after a delay, and closes the other at
// the end.
func Forward(from, to net.Conn, delay time.Duration) {
	queue := make(chan delayedBytes, 1024)
	go func() {
		defer close(queue)
		for {
			b := make([]byte, 4096)
			n, err := from.Read(b)
			if n > 0 {
				queue <- delayedBytes{time.Now().Add(delay), b[:n]}
			}
			if err != nil {
				return
			}
		}
	}()
	defer to.Close()
	for piece := range queue {
		time.Sleep(time.Until(piece.due))
		to.Write(piece.b)
	}
}

// Far is an address that leads to another one through a delay in each direction, until the test ends:
// that of opening a connection, then of each message.
func Far(t testing.TB, addr string, delay time.Duration) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			go connect(near, addr, delay)
		}
	}()
	return l.Addr().String()
}

func connect(near net.Conn, addr string, delay time.Duration) {
	time.Sleep(delay)
	far, err := net.Dial("tcp", addr)
	if err != nil {
		near.Close()
		return
	}
	go Forward(near, far, delay)
	Forward(far, near, delay)
}
