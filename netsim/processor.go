package netsim

import (
	"context"
	"sync"
	"time"

	"starling/wire"
)

// Processor charges work to the virtual time of a worker. Computing on a simulated worker
// takes no virtual time by itself; whatever runs it calls Charge with the seconds that it
// would take, measured on other hosts or given. For a run, intercept the worker's tensor.Device:
//
//	tensor.Intercept(dev, func(c *tensor.Call) {
//		c.Run(dev)
//		p.Charge(secondsOf(c))
//	})
//
// Goroutines of one worker that compute at the same time take their turns, as on one device.
// Moving messages (Options.Host) goes before computing, which takes so much longer: a kernel
// lets what was waiting for a packet run first.
type Processor struct {
	clock wire.Clock
	mu    struct {
		sync.Mutex
		free  time.Time     // when the work charged so far ends
		rest  float64       // seconds below a nanosecond
		moved time.Time     // when the messages that are being moved are
		taken time.Duration // by messages, from work under way
	}
}

// NewProcessor returns the processor of a worker with this clock, its endpoint's.
func NewProcessor(clock wire.Clock) *Processor { return &Processor{clock: clock} }

// Charge returns when these seconds of computing, what was charged before, and messages that
// were moved meanwhile have passed.
func (p *Processor) Charge(seconds float64) {
	p.mu.Lock()
	now := p.clock.Now()
	p.mu.rest += seconds
	whole := time.Duration(p.mu.rest * 1e9)
	p.mu.rest -= whole.Seconds()
	if !p.mu.free.After(now) {
		p.mu.free = now
		if p.mu.moved.After(now) {
			p.mu.free = p.mu.moved
		}
	}
	p.mu.free = p.mu.free.Add(whole)
	end, taken := p.mu.free, p.mu.taken
	p.mu.Unlock()
	for wait := end.Sub(now); wait > 0; {
		_ = wire.Sleep(context.Background(), p.clock, wait) // a background context never ends
		p.mu.Lock()
		wait, taken = p.mu.taken-taken, p.mu.taken
		p.mu.Unlock()
	}
}

// take interrupts computing for a duration; all messages that were begun are moved by until.
func (p *Processor) take(d time.Duration, until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.moved = until; p.mu.free.After(p.clock.Now()) {
		p.mu.free = p.mu.free.Add(d)
		p.mu.taken += d
	}
}
