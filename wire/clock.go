package wire

import (
	"context"
	"time"
)

// Clock is the time that a run lives in: that of the host (Real), or one that a simulator
// or a test advances (Virtual). Whatever times out, waits or measures a run reads the clock
// that it was given: of an Endpoint, its Clock.
type Clock interface {
	// Now is the time on this clock.
	Now() time.Time
	// AfterFunc calls f once, when d has passed. f must not block: a virtual clock calls
	// it on the goroutine that advances the clock.
	AfterFunc(d time.Duration, f func()) Timer
}

// Timer is a call that AfterFunc will make.
type Timer interface {
	// Stop takes the call back. It reports whether the call was still to come.
	Stop() bool
	// Reset makes the call come d from now, whether or not it has come before. It reports
	// whether it was still to come.
	Reset(d time.Duration) bool
}

// Since is how long ago t was.
func Since(c Clock, t time.Time) time.Duration { return c.Now().Sub(t) }

// Alarm returns a channel that is closed when d has passed, and the timer behind it, to be
// stopped by a caller that waits no longer.
func Alarm(c Clock, d time.Duration) (<-chan struct{}, Timer) {
	due := make(chan struct{})
	return due, c.AfterFunc(d, func() { close(due) })
}

// Sleep returns nil when d has passed, or before that the cause for which ctx has ended.
func Sleep(ctx context.Context, c Clock, d time.Duration) error {
	due, timer := Alarm(c, d)
	defer timer.Stop()
	select {
	case <-due:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// WithTimeout is context.WithTimeout on a clock. The cause of contexts made from the
// result is context.DeadlineExceeded, as it is there.
func WithTimeout(ctx context.Context, c Clock, d time.Duration) (context.Context, context.CancelFunc) {
	if c == Real {
		return realTimeout(ctx, d)
	}
	at := c.Now().Add(d)
	if before, ok := ctx.Deadline(); ok && before.Before(at) {
		return context.WithCancel(ctx)
	}
	inner, cancel := context.WithCancelCause(ctx)
	timer := c.AfterFunc(d, func() { cancel(context.DeadlineExceeded) })
	return &deadlineContext{inner, at}, func() {
		timer.Stop()
		cancel(context.Canceled)
	}
}

// deadlineContext ends at a time on a clock that package context does not know.
type deadlineContext struct {
	context.Context
	at time.Time
}

func (d *deadlineContext) Deadline() (time.Time, bool) { return d.at, true }

func (d *deadlineContext) Err() error {
	if context.Cause(d.Context) == context.DeadlineExceeded {
		return context.DeadlineExceeded
	}
	return d.Context.Err()
}
