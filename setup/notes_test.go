package setup

import (
	"slices"
	"testing"

	"starling/event"
	"starling/nn"
	"starling/spec"
)

// TestIgnoredEdgeFeaturesAreNoted: every model that is given edges with features and does not use them says so.
func TestIgnoredEdgeFeaturesAreNoted(t *testing.T) {
	for _, model := range nn.Models {
		for _, c := range []struct {
			use bool
			dim int
		}{{false, 4}, {true, 4}, {false, 0}} {
			s := spec.Default()
			s.Model.Name, s.Model.EdgeFeatures = model, c.use
			var notes []string
			NoteEdges(&s, false, c.dim, event.Func(func(e event.Event) { notes = append(notes, e.(event.Note).Text) }))
			if want := c.dim > 0 && !c.use; (len(notes) == 1) != want {
				t.Errorf("%s, %+v: %q", model, c, notes)
			}
		}
	}
}

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
