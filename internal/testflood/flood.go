// Package testflood opens silent connections to a port, as many per second as a test asks for: what an
// attacker does to keep peers out.
package testflood

import (
	"sync"
	"sync/atomic"
	"time"
)

// kept is how many connections are open at once; the oldest is reset for another.
const kept = 800

// connection is a silent one, or a slow one.
type connection interface {
	reset()
	// send sends what the connection takes without waiting; closed: the other end takes no more.
	send(b []byte) (n int, closed bool)
}

// Flood is under way until Stop.
type Flood struct {
	opened, failed atomic.Int64
	began          time.Time
	done           chan struct{}
	wg             sync.WaitGroup
}

// Start opens perSecond connections to an address of loopback in each second, or as many as the machine
// can. Half of them come from 127.0.0.1, where peers are too, the others from eight more addresses.
func Start(addr string, perSecond int) *Flood {
	f := &Flood{began: time.Now(), done: make(chan struct{})}
	f.wg.Go(func() { f.run(addr, perSecond) })
	return f
}

func (f *Flood) run(addr string, perSecond int) {
	var open []connection
	defer func() {
		for _, c := range open {
			c.reset() // so that no port stays in use
		}
	}()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for n := 0; ; {
		select {
		case <-f.done:
			return
		case <-tick.C:
		}
		due := int(time.Since(f.began).Seconds() * float64(perSecond))
		n = max(n, due-perSecond/10) // what a busy machine has missed is not made up for all at once
		for ; n < due; n++ {
			c, err := dial(addr, n)
			if err != nil {
				f.failed.Add(1)
				continue
			}
			f.opened.Add(1)
			if open = append(open, c); len(open) > kept {
				open[0].reset()
				open = open[1:]
			}
		}
	}
}

// Opened are the connections so far, and how many per second that is.
func (f *Flood) Opened() (n int64, perSecond float64) {
	n = f.opened.Load()
	return n, float64(n) / time.Since(f.began).Seconds()
}

// Stop ends the flood and returns what Opened does.
func (f *Flood) Stop() (n int64, perSecond float64) {
	n, perSecond = f.Opened()
	close(f.done)
	f.wg.Wait()
	return n, perSecond
}
