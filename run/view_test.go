package run

import (
	"bytes"
	"testing"

	"starling/event"
)

// TestSilent: with --quiet one sees what went wrong, and not what is good to know.
func TestSilent(t *testing.T) {
	var out bytes.Buffer
	v := Silent(&out)
	v.On(event.Note{Text: "lost rank 1"})
	v.On(event.Note{Text: "rows take 3 MiB", Minor: true})
	v.On(event.Epoch{})
	if out.String() != "lost rank 1\n" {
		t.Errorf("showed %q", &out)
	}
	Silent(nil).On(event.Note{Text: "without a listener"})
}
