package wire

import (
	"context"
	"time"
)

// Real is the host's clock, which is taken wherever none is given.
var Real Clock = realClock{}

// realClock and the functions of this file are the only places that ask the host for the time.
type realClock struct{}

func (realClock) Now() time.Time { return time.Now() }

func (realClock) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

func realTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, d)
}

// OrReal is c, or where that is nil the host's clock.
func OrReal(c Clock) Clock {
	if c == nil {
		return Real
	}
	return c
}

// SocketTime is the host's time d from now on, for deadlines of sockets and pipes, which
// the kernel keeps.
func SocketTime(d time.Duration) time.Time { return time.Now().Add(d) }

// SocketPast is a deadline that has passed, to interrupt waits for a socket.
var SocketPast = time.Unix(1, 0)

var processStart = time.Now()

// monotonic is nanoseconds since the process began. It is for what is about the host
// itself, whatever the run's clock says: how long to poll a ring, how fast a socket takes bytes.
func Monotonic() int64 { return int64(time.Since(processStart)) }
