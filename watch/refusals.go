package watch

import (
	"fmt"
	"net"

	"starling/event"
)

// Refusals tells of peers that were refused.
type Refusals struct {
	who   string // refused them, as a prefix
	notes *Notes
}

func NewRefusals(who string, events event.Listener) *Refusals {
	return &Refusals{who, NewNotes(events, func(hidden int) string {
		return fmt.Sprintf("%srefused %s within %v", who, event.Counted(hidden, "other"), notesEvery)
	})}
}

// Refused takes a refusal.
func (r *Refusals) Refused(from, reason string) {
	r.notes.Show(event.Note{Text: fmt.Sprintf("%srefused %s: %s", r.who, from, reason)})
}

// RefusedPeer is Refused for a worker's own listener.
func (r *Refusals) RefusedPeer(from net.Addr, reason error) {
	name := "an unknown address"
	if from != nil {
		name = from.String()
	}
	r.Refused(name, reason.Error())
}

// Close notes the rest; nothing is shown after it.
func (r *Refusals) Close() { r.notes.Close() }
