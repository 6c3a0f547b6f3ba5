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
	s.Machine.Device = "auto"
	var notes []string
	events := event.Func(func(e event.Event) {
		if n, ok := e.(event.Note); ok {
			notes = append(notes, n.Text)
		}
	})
	if err := chooseDevice(&s, &Plan{}, nil, events); err != nil || s.Machine.Device != "cpu" {
		t.Errorf("auto became %s: %v", s.Machine.Device, err)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "computing on the CPU") ||
		!strings.Contains(notes[0], "CUDA_VISIBLE_DEVICES") {
		t.Errorf("it says %q", notes)
	}
	s.Machine.Device = "cuda:1"
	if err := chooseDevice(&s, &Plan{}, nil, events); !isMistake(err, "--device") ||
		!strings.Contains(err.Error(), "unset it") {
		t.Errorf("cuda:1 gives %v", err)
	}
}

// TestDeviceNames: what --device may be.
func TestDeviceNames(t *testing.T) {
	for name, ok := range map[string]bool{"cpu": true, "cuda": true, "cuda:0": true, "cuda:12": true, "auto": true,
		"cuda:": false, "cuda:x": false, "cuda:-1": false, "cpu:0": false, "gpu": false} {
		s := spec.Default()
		s.Machine.Device = name
		if err := s.Validate(); (err == nil) != ok {
			t.Errorf("--device %s: %v", name, err)
		}
	}
}

// TestFittingCard: what would fit a card is counted as the run was, and the first three are named.
func TestFittingCard(t *testing.T) {
	count := func(s *spec.Spec) (*Plan, error) {
		p := &Plan{Matrices: int64(s.Model.Hidden) << 10, Mapped: 40 << 10, Features: 30 << 10}
		if s.Machine.DType == "bf16" {
			p.Matrices /= 2
		}
		if s.Mode == "mini" {
			p.Matrices /= 8
		}
		return p, nil
	}
	fits := func(most int64) func(*spec.Spec, *Plan) bool {
		return func(s *spec.Spec, p *Plan) bool { return p.onCard(s) <= most }
	}
	s := spec.Default()
	s.Machine.Device, s.Model.Hidden, s.Machine.CacheFirst = "cuda", 256, "off"
	for _, c := range []struct {
		mode string
		most int64
		want []string
	}{
		{"full", 210 << 10, []string{"--dtype bf16 (208.0 KiB)", "--dtype bf16 --hidden 128 (144.0 KiB)"}},
		{"full", 60 << 10, []string{"these would fit: --mode mini --features-on host (52.0 KiB);"}},
		{"mini", 60 << 10, []string{"these would fit: --features-on host (52.0 KiB);"}},
		{"full", 1 << 10, nil},
	} {
		s.Mode = c.mode
		text := fittingCard(&s, count, fits(c.most))
		if c.want == nil && text != "" {
			t.Errorf("%s in %d bytes: %q", c.mode, c.most, text)
		}
		for _, w := range c.want {
			if !strings.Contains(text, w) {
				t.Errorf("%s in %d bytes: %q does not say %q", c.mode, c.most, text, w)
			}
		}
	}
}
