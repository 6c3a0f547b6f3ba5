package setup

import "starling/event"

// MinorNotesOnce leaves out minor notes that were shown already: one strategy after the other
// has the same notes about the same parts. Failures are shown every time.
func MinorNotesOnce(l event.Listener) event.Listener {
	shown := map[string]bool{}
	return event.Func(func(e event.Event) {
		if n, ok := e.(event.Note); ok && n.Minor {
			if shown[n.Text] {
				return
			}
			shown[n.Text] = true
		}
		l.On(e)
	})
}
