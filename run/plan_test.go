package run

import (
	"fmt"
	"strings"
	"testing"

	"starling/spec"
	"starling/train"
)

// TestDryRunOfStrategies: every strategy has a plan, or says when it will have one.
func TestDryRunOfStrategies(t *testing.T) {
	dir := block(t, nil)
	for _, name := range train.Names() {
		s := quick(dir)
		s.Strategy, s.Mode, s.Cluster.Workers, s.Cluster.Servers, s.Output.Quiet = name, string(train.Find(name).Mode),
			4, 2, true
		s.Cluster.InProcess = true // some measure their workers
		_, p, err := DryRun(s, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		text := p.String()
		if p.Unplanned != strings.Contains(text, "once the workers have joined") || !p.Unplanned && p.SentEpoch == 0 {
			t.Errorf("%s: %s", name, text)
		}
	}
	for _, relay := range []bool{false, true} {
		s := quick(dir)
		s.Strategy, s.Cluster.Workers, s.Cluster.Servers = "halo", 4, 2
		set(&s, fmt.Sprintf("relay=%t", relay))
		if _, p, err := DryRun(s, nil); err != nil || p.Unplanned != relay ||
			strings.Contains(p.String(), "--relay would") == relay {
			t.Errorf("relay %v: %v %v", relay, p, err)
		}
	}
	s := quick(dir)
	s.Strategy, s.Cluster.Workers, s.Cluster.Servers, s.Model.Layers = "halo", 4, 2, 3
	set(&s, "sparse_rows")
	if _, p, err := DryRun(s, nil); err != nil || !p.AtMost || !strings.Contains(p.String(), "or less") {
		t.Errorf("%v %v", p, err)
	}
	s = quick(dir)
	s.Strategy, s.Cluster.Workers, s.Cluster.Servers = "sancus", 4, 2
	set(&s, "staleness=variation:0.1")
	if _, p, err := DryRun(s, nil); err != nil || !p.AtMost || !strings.Contains(p.String(), "or less") {
		t.Errorf("%v %v", p, err)
	}
}

// TestDryRunIsASpec: what --dry-run prints is a file to train with, to the same bits.
func TestDryRunIsASpec(t *testing.T) {
	for _, s := range models(block(t, nil)) {
		s.Training.Epochs = 2
		completed, _, err := DryRun(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		read, err := spec.Parse([]byte(completed.String()))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := trained(t, read, nil), trained(t, s, nil); timeless(got) != timeless(want) {
			t.Errorf("from the dry run's file\n%s\nfrom flags\n%s", timeless(got), timeless(want))
		}
	}
}
