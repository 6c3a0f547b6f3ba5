package watch

import (
	"sync"
	"time"

	"starling/event"
)

// At most mostNotes are shown one by one within notesEvery; the others are counted, so that a peer that connects again
// and again, or a link that comes and goes, does not fill the disk with messages.
const (
	mostNotes  = 20
	notesEvery = 10 * time.Second
)

// Notes shows notes of which there may be very many.
type Notes struct {
	events event.Listener
	others func(hidden int) string // of those that were only counted
	mu     struct {
		sync.Mutex
		shown, hidden int
		timer         *time.Timer // while there were some lately
		over          bool
	}
}

// NewNotes shows notes to a listener; others is the text of those that were only counted.
func NewNotes(events event.Listener, others func(hidden int) string) *Notes {
	return &Notes{events: events, others: others}
}

// Show takes a note.
func (n *Notes) Show(e event.Note) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.mu.over:
		return
	case n.mu.shown == mostNotes:
		n.mu.hidden++
		return
	case n.mu.shown == 0:
		n.mu.timer = time.AfterFunc(notesEvery, n.again)
	}
	n.mu.shown++
	n.events.On(e)
}

// again notes how many were only counted, and starts a new interval.
func (n *Notes) again() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.mu.over {
		n.sum()
	}
}

// REQUIRES: mu held.
func (n *Notes) sum() {
	if n.mu.hidden > 0 {
		n.events.On(event.Note{Text: n.others(n.mu.hidden)})
	}
	n.mu.shown, n.mu.hidden = 0, 0
}

// Close notes the rest; nothing is shown after it.
func (n *Notes) Close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sum()
	n.mu.over = true
	if n.mu.timer != nil {
		n.mu.timer.Stop()
	}
}
