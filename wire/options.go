package wire

import (
	"time"

	"starling/coflow"
)

// Options are what every transport needs to know.
type Options struct {
	// Timeout bounds every wait that has no deadline of its own.
	Timeout time.Duration
	// UnexpectedLimit is how many bytes per peer may be held for which no receive was posted.
	UnexpectedLimit int64
	// ResponseLimit is how many bytes of responses to calls may wait to leave, per peer.
	ResponseLimit int64
	// Linger bounds how long Close waits for peers to read the goodbye, or the
	// cause of a failure.
	Linger time.Duration
	// ServerOf groups ranks into servers; nil: every host is one.
	ServerOf []int
	// Order in which messages to a peer leave; nil: coflow.ByType.
	Order coflow.Order
	// Clock is the run's; nil: Real.
	Clock Clock
}

// DefaultOptions wait a minute and hold a gibibyte.
func DefaultOptions() Options {
	return Options{Timeout: time.Minute, UnexpectedLimit: 1 << 30, ResponseLimit: 64 << 20, Linger: 2 * time.Second,
		Order: coflow.ByType, Clock: Real}
}

// withDefaults fills in what was left at zero.
func (o Options) withDefaults() Options {
	d := DefaultOptions()
	if o.Timeout <= 0 {
		o.Timeout = d.Timeout
	}
	if o.UnexpectedLimit <= 0 {
		o.UnexpectedLimit = d.UnexpectedLimit
	}
	if o.ResponseLimit <= 0 {
		o.ResponseLimit = d.ResponseLimit
	}
	if o.Linger <= 0 {
		o.Linger = d.Linger
	}
	if o.Order == nil {
		o.Order = d.Order
	}
	o.Clock = OrReal(o.Clock)
	return o
}
