package run

import (
	"strings"
	"testing"
)

// TestDryRunOfStrategies: every strategy has a plan, or says when it will have one.
func TestDryRunOfStrategies(t *testing.T) {
	dir := block(t, nil)
	for _, name := range Strategies() {
		s := quick(dir)
		s.Strategy, s.Workers, s.Servers, s.Quiet = name, 4, 2, true
		_, p, err := DryRun(s, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text := p.String()
		if p.Unplanned != strings.Contains(text, "when the workers have met") || !p.Unplanned && p.SentEpoch == 0 {
			t.Errorf("%s: %s", name, text)
		}
	}
	for _, relay := range []bool{false, true} {
		s := quick(dir)
		s.Strategy, s.Workers, s.Servers, s.Relay = "halo", 4, 2, relay
		if _, p, err := DryRun(s, nil); err != nil || p.Unplanned != relay || strings.Contains(p.String(), "--relay would") == relay {
			t.Errorf("relay %v: %v %v", relay, p, err)
		}
	}
	s := quick(dir)
	s.Strategy, s.Workers, s.Servers, s.Layers, s.SparseRows = "halo", 4, 2, 3, true
	if _, p, err := DryRun(s, nil); err != nil || !p.AtMost || !strings.Contains(p.String(), "or less") {
		t.Errorf("%v %v", p, err)
	}
	s = quick(dir)
	s.Strategy, s.Workers, s.Servers, s.Staleness = "sancus", 4, 2, "variation:0.1"
	if _, p, err := DryRun(s, nil); err != nil || !p.AtMost || !strings.Contains(p.String(), "or less") {
		t.Errorf("%v %v", p, err)
	}
}

// TestDryRunIsASpec: what --dry-run prints is a file to train with, to the same bits.
func TestDryRunIsASpec(t *testing.T) {
	for _, s := range models(block(t, nil)) {
		s.Epochs = 2
		completed, _, err := DryRun(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		read, err := ParseSpec([]byte(completed.String()))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := trained(t, read, nil), trained(t, s, nil); timeless(got) != timeless(want) {
			t.Errorf("from the dry run's file\n%s\nfrom flags\n%s", timeless(got), timeless(want))
		}
	}
}
