package spec

import (
	"encoding/json"
	"strings"
	"testing"
)

// An interval survives the text forms of a spec; a plain number is one of epochs.
func TestInterval(t *testing.T) {
	for text, want := range map[string]Interval{"10": 10, "5epochs": 5, "500steps": -500, "0": 0} {
		s := Default()
		if err := s.Checkpoints.Every.Set(text); err != nil || s.Checkpoints.Every != want {
			t.Errorf("%s: %v, %v", text, s.Checkpoints.Every, err)
		}
		b, err := json.Marshal(s)
		got := Default()
		if err == nil {
			err = json.Unmarshal(b, &got)
		}
		if err != nil || got.Checkpoints.Every != want {
			t.Errorf("%s through JSON: %v, %v", text, got.Checkpoints.Every, err)
		}
		if got, err := Parse([]byte(s.String())); err != nil || got.Checkpoints.Every != want {
			t.Errorf("%s through YAML: %v, %v", text, got.Checkpoints.Every, err)
		}
		if got, err := Parse([]byte("checkpoint_every: " + text)); err != nil || got.Checkpoints.Every != want {
			t.Errorf("%s as YAML: %v, %v", text, got.Checkpoints.Every, err)
		}
	}
	for _, text := range []string{"", "steps", "-3", "1.5", "0steps", "3 weeks", "99999999999"} {
		if err := new(Interval).Set(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	if _, err := Parse([]byte("checkpoint_every: 1.5")); err == nil || !strings.Contains(err.Error(), "500steps") {
		t.Errorf("1.5 epochs: %v", err)
	}
}
