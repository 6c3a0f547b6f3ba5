package tcp

import (
	"net"
	"time"
)

const (
	// A link is judged once writes have taken judgeTime, or judgeBytes have arrived.
	judgeTime, judgeBytes = 50 * time.Millisecond, 8 << 20
	// covered is how long the kernel should have something to send between two writes.
	covered = 15 * time.Millisecond
	// The bounds of the kernel's send buffer, where we set it. Every kernel allows the larger.
	leastHeld, mostHeld = 96 << 10, 208 << 10
)

// pace is how fast a connection is.
//
// A slow link is filled by little. What TCP sends beyond that stands in a queue before
// the link, until packets are dropped. Connections that share it then lose unequally,
// and the one that lost most, for which everybody waits, has to find out anew how much
// the link takes when the others have finished: eight connections at 100 Mbit/s were
// slower by a tenth. So where the link is slow the kernel holds little of a connection,
// and only one leads to a peer.
type pace struct {
	window int // bytes that the kernel should hold, in flight or not; 0: as it sees fit
	acked  int // what has arrived during large writes, and how long these took
	took   time.Duration
}

// slow reports whether the link is.
func (p *pace) slow() bool { return p.window > 0 }

// wrote learns from a large write, during which acked bytes arrived at the peer. It
// reports whether it is time to judge the link.
func (p *pace) wrote(acked int, took time.Duration) bool {
	p.acked += max(acked, 0)
	p.took += took
	return p.took >= judgeTime || p.acked >= judgeBytes
}

// judge finds the window, from the shortest trip to the peer and back and the trip of late.
// What arrives in two of the former never slows the connection down. It reports whether
// the window has changed.
func (p *pace) judge(least, now time.Duration) bool {
	n := float64(p.acked) / p.took.Seconds() * (covered + 2*least).Seconds()
	before, most := p.window, float64(mostHeld)
	if !p.slow() {
		most /= 2 // a link in between is not to be judged now so, now so
		if now < covered+2*least {
			most = 0 // nothing stands in a queue: the peer is slow to read, not the link
		}
	}
	p.window = max(int(min(n, most)), leastHeld)
	if n >= most {
		p.window = 0
	}
	p.acked, p.took = 0, 0
	return p.window != before
}

// leaves reports whether a connection leads to another host.
func leaves(conn net.Conn) bool {
	here, ok := conn.LocalAddr().(*net.TCPAddr)
	there, also := conn.RemoteAddr().(*net.TCPAddr)
	return ok && also && !here.IP.Equal(there.IP)
}
