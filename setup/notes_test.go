package setup

import (
	"slices"
	"testing"

	"starling/event"
)

// TestMinorNotesOnce: the same minor note of several strategies is told once, failures every time.
func TestMinorNotesOnce(t *testing.T) {
	var shown []string
	l := MinorNotesOnce(event.Func(func(e event.Event) { shown = append(shown, e.(event.Note).Text) }))
	for range 2 {
		l.On(event.Note{Text: "a hint", Minor: true})
		l.On(event.Note{Text: "lost rank 1"})
	}
	if want := []string{"a hint", "lost rank 1", "lost rank 1"}; !slices.Equal(shown, want) {
		t.Errorf("shown %q, want %q", shown, want)
	}
}
