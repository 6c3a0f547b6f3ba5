package testflood

import (
	"net"
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
