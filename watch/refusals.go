package watch

import (
	"fmt"
	"net"
	"sync"
	"time"

	"starling/event"
)

// At most mostRefusals are shown one by one within refusalsEvery; the others are counted, so
// that a peer that connects again and again does not fill the disk with messages.
const (
	mostRefusals  = 20
	refusalsEvery = 10 * time.Second
)

// Refusals tells of peers that were refused.
type Refusals struct {
	who    string // refused them, as a prefix
	events event.Listener
	mu     struct {
		sync.Mutex
		shown, hidden int
		timer         *time.Timer // while there were some lately
		over          bool
	}
}

func NewRefusals(who string, events event.Listener) *Refusals {
	return &Refusals{who: who, events: events}
}

// Refused takes a refusal.
func (r *Refusals) Refused(from, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.mu.over:
		return
	case r.mu.shown == mostRefusals:
		r.mu.hidden++
		return
	case r.mu.shown == 0:
		r.mu.timer = time.AfterFunc(refusalsEvery, r.again)
	}
	r.mu.shown++
	r.events.On(event.Note{Text: fmt.Sprintf("%srefused %s: %s", r.who, from, reason)})
}

// RefusedPeer is Refused for a worker's own listener.
func (r *Refusals) RefusedPeer(from net.Addr, reason error) {
	name := "an unknown address"
	if from != nil {
		name = from.String()
	}
	r.Refused(name, reason.Error())
}

// again tells how many were only counted, and starts a new interval.
func (r *Refusals) again() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.mu.over {
		r.sum()
	}
}

// REQUIRES: mu held.
func (r *Refusals) sum() {
	if r.mu.hidden > 0 {
		r.events.On(event.Note{Text: fmt.Sprintf("%srefused %s within %v", r.who,
			event.Counted(r.mu.hidden, "other"), refusalsEvery)})
	}
	r.mu.shown, r.mu.hidden = 0, 0
}

// Close notes the rest; nothing is shown after it.
func (r *Refusals) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sum()
	r.mu.over = true
	if r.mu.timer != nil {
		r.mu.timer.Stop()
	}
}
