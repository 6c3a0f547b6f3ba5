package setup

import (
	"slices"
	"testing"

	"starling/event"
)

// TestMinorNotesOnce: the same minor note of several strategies is told once, failures every time.
func TestMinorNotesOnce(t *testing.T) {
	var heard []string
	l := MinorNotesOnce(event.Func(func(e event.Event) { heard = append(heard, e.(event.Note).Text) }))
	for range 2 {
		l.On(event.Note{Text: "a hint", Minor: true})
		l.On(event.Note{Text: "lost rank 1"})
	}
	if want := []string{"a hint", "lost rank 1", "lost rank 1"}; !slices.Equal(heard, want) {
		t.Errorf("heard %q, want %q", heard, want)
	}
}
