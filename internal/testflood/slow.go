package testflood

import (
	"bytes"
	"time"
)

// Slow is connections that each send many bytes slowly, as one who wants them held does.
type Slow struct {
	Connections int
	First       []byte // that each begins with; zeros follow
	Bytes       int    // that each sends in all
	Steps       int    // into which they are divided: in the first half of them one byte each
	Pause       time.Duration
}

// slowConn is a connection; nil: the other end has closed it.
type slowConn struct {
	connection
	steps, sent int
}

// Send opens the connections and sends, and returns when each has sent all or was closed by the other end, or does not
// take bytes any more. They are closed then. Sent and closed are how many bytes left, and how many were closed before.
// It calls each after every step.
func (s *Slow) Send(addr string, each func()) (opened int, sent int64, closed int) {
	body := append(bytes.Clone(s.First), make([]byte, 2*s.Bytes/s.Steps+1)...)
	var open []slowConn
	defer func() {
		for _, c := range open {
			if c.connection != nil {
				c.reset()
			}
		}
	}()
	failures := 0
	for idle := 0; idle < s.Steps; {
		moved := false
		for n := 0; len(open) < s.Connections && n < s.Connections/10+1 && failures < s.Connections; n++ {
			c, err := dial(addr, len(open))
			if err != nil { // out of ports or descriptors
				failures++
				break
			}
			open = append(open, slowConn{connection: c})
			moved = true
		}
		for i := range open {
			n, over := s.step(&open[i], body)
			sent += int64(n)
			moved = moved || n > 0
			if over {
				closed++
			}
		}
		if idle++; moved {
			idle = 0
		}
		each()
		time.Sleep(s.Pause)
	}
	return len(open), sent, closed
}

// step sends the next bytes of a connection.
func (s *Slow) step(c *slowConn, body []byte) (n int, closed bool) {
	if c.connection == nil || c.sent >= s.Bytes {
		return 0, false
	}
	size := 2 * s.Bytes / s.Steps
	if c.steps++; c.steps <= s.Steps/2 {
		size = 1
	}
	if c.sent == 0 && len(s.First) > 0 {
		size = len(s.First)
	}
	from := body[min(c.sent, len(s.First)):]
	n, closed = c.send(from[:min(len(from), size, s.Bytes-c.sent)])
	if closed {
		c.reset()
		c.connection = nil
	}
	c.sent += n
	return n, closed
}
