package plan

import (
	"context"
	"math"
	"testing"

	"starling/dataset/generate"
	"starling/event"
	"starling/partition"
	"starling/setup"
	"starling/setup/setuptest"
	"starling/spec"
	"starling/tensor/cpu/simd"
)

// TestDryRunTogether: workers in one dry run are found to need what each needs alone.
func TestDryRunTogether(t *testing.T) {
	s := setuptest.Quick(setuptest.Block(t, func(p *generate.Params) { p.Nodes, p.Edges, p.Features = 20_000, 100_000, 40 }))
	s.Cluster.Workers, s.Cluster.InProcess, s.Strategy, s.Model.Hidden = 4, true, "halo", 64
	c := planOn(t, s)
	var err error
	parts := make([]*partition.Part, s.Cluster.Workers)
	for r := range parts {
		if parts[r], err = partition.OpenPart(c.Parts.Dir, r); err != nil {
			t.Fatal(err)
		}
		defer parts[r].Close()
	}
	total := func(needs []*need, err error) (matrices, graph int64) {
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range needs {
			matrices, graph = matrices+n.matrices, graph+n.graph(false)
		}
		return matrices, graph
	}
	aloneMatrices, alone := total(c.dryRunEach(parts, c.Spec))
	matrices, together := total(c.dryRunTogether(parts, c.Spec))
	if matrices != aloneMatrices || math.Abs(float64(together-alone)) > 0.25*float64(alone) {
		t.Errorf("together: matrices %d, graph %d; each alone: %d, %d", matrices, together, aloneMatrices, alone)
	}
}

// planOn is a run to plan, its spec completed from its data.
func planOn(t *testing.T, s spec.Spec) *Run {
	t.Helper()
	if err := s.Complete(); err != nil {
		t.Fatal(err)
	}
	parts, err := setup.FindParts(context.Background(), &s, event.All())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(parts.Remove)
	s.ForData(&parts.Meta, simd.Best().String())
	return &Run{Spec: &s, Parts: parts}
}

// TestTooLargeTogether: what a graph takes that is too large for a dry run of all workers in one process is not
// known before, and the plan says so.
func TestTooLargeTogether(t *testing.T) {
	was := mostTogether
	defer func() { mostTogether = was }()
	mostTogether = 100
	dir := setuptest.Block(t, func(p *generate.Params) { p.Nodes, p.Edges, p.Features = 500, 2_000, 20 })
	for _, c := range []struct {
		strategy, option   string
		inductive, atLeast bool
	}{{"halo", "", false, false}, {"halo", "", true, true}, {"granndis:1", "", true, true},
		{"halo", "relay", true, true}, {"g3", "relay", true, true}} {
		s := spec.Default()
		s.Dataset, s.Cluster.Workers, s.Cluster.Servers, s.Cluster.InProcess, s.Training.Inductive = dir, 4, 2, true,
			c.inductive
		s.Strategy = c.strategy
		if c.option != "" {
			if err := s.Set(c.option, "true"); err != nil {
				t.Fatal(err)
			}
		}
		p, err := planOn(t, s).Plan(event.All())
		if err != nil || p.AtLeast != c.atLeast || p.Replicas != 0 || len(p.Each) != 4 || p.Needed() <= processBytes {
			t.Errorf("%+v: %+v, %v", c, p, err)
		}
	}
}
