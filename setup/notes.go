package setup

import "starling/event"

// MinorNotesOnce leaves out minor notes that were shown already: one strategy after the other
// has the same to say of the same parts. Failures are told again.
func MinorNotesOnce(l event.Listener) event.Listener {
	said := map[string]bool{}
	return event.Func(func(e event.Event) {
		if n, ok := e.(event.Note); ok && n.Minor {
			if said[n.Text] {
				return
			}
			said[n.Text] = true
		}
		l.On(e)
	})
}
