package run

import (
	"fmt"
	"net"
	"sync"
	"time"

	"starling/event"
)

// So many refusals are told one by one, in so long; the others are counted. Whoever
// knocks without end fills no disk.
const (
	mostRefusals  = 20
	refusalsEvery = 10 * time.Second
)

// refusals tells of those who were not let in.
type refusals struct {
	who    string // refused them
	events event.Listener
	mu     struct {
		sync.Mutex
		told, untold int
		timer        *time.Timer // while there were some lately
		over         bool
	}
}

func newRefusals(who string, events event.Listener) *refusals {
	return &refusals{who: who, events: events}
}

func (r *refusals) refused(from, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.mu.over:
		return
	case r.mu.told == mostRefusals:
		r.mu.untold++
		return
	case r.mu.told == 0:
		r.mu.timer = time.AfterFunc(refusalsEvery, r.again)
	}
	r.mu.told++
	r.events.On(event.Note{Text: fmt.Sprintf("%srefused %s: %s", r.who, from, reason)})
}

// atDoor is refused, of a worker's own door.
func (r *refusals) atDoor(from net.Addr, reason error) {
	name := "somebody"
	if from != nil {
		name = from.String()
	}
	r.refused(name, reason.Error())
}

// again tells of those that were only counted, and begins anew.
func (r *refusals) again() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.mu.over {
		r.sum()
	}
}

// REQUIRES: mu held.
func (r *refusals) sum() {
	if r.mu.untold > 0 {
		r.events.On(event.Note{Text: fmt.Sprintf("%srefused %d others within %v", r.who, r.mu.untold, refusalsEvery)})
	}
	r.mu.told, r.mu.untold = 0, 0
}

// close tells the rest; nothing is told after it.
func (r *refusals) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sum()
	r.mu.over = true
	if r.mu.timer != nil {
		r.mu.timer.Stop()
	}
}
