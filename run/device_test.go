package run

import (
	"strings"
	"testing"

	"starling/event"
	"starling/spec"
)

// TestNoCard: where no card is to be had, auto takes the CPU and says why, and cuda is refused.
func TestNoCard(t *testing.T) {
	t.Setenv("CUDA_VISIBLE_DEVICES", "") // hides all there are
	s := spec.Default()
	s.Device = "auto"
	var notes []string
	events := event.Func(func(e event.Event) {
		if n, ok := e.(event.Note); ok {
			notes = append(notes, n.Text)
		}
	})
	if err := chooseDevice(&s, &Plan{}, events); err != nil || s.Device != "cpu" {
		t.Errorf("auto became %s: %v", s.Device, err)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "computing on the CPU") ||
		!strings.Contains(notes[0], "CUDA_VISIBLE_DEVICES") {
		t.Errorf("it says %q", notes)
	}
	s.Device = "cuda:1"
	if err := chooseDevice(&s, &Plan{}, events); !isMistake(err, "--device") ||
		!strings.Contains(err.Error(), "unset it") {
		t.Errorf("cuda:1 gives %v", err)
	}
}

// TestDeviceNames: what --device may be.
func TestDeviceNames(t *testing.T) {
	for name, ok := range map[string]bool{"cpu": true, "cuda": true, "cuda:0": true, "cuda:12": true, "auto": true,
		"cuda:": false, "cuda:x": false, "cuda:-1": false, "cpu:0": false, "gpu": false} {
		s := spec.Default()
		s.Device = name
		if err := s.Validate(); (err == nil) != ok {
			t.Errorf("--device %s: %v", name, err)
		}
	}
}
