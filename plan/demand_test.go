package plan

import (
	"context"
	"math"
	"testing"

	"starling/cost"
	"starling/event"
	"starling/setup"
	"starling/setup/setuptest"
	"starling/train"
	"starling/wire"
)

// TestPlansOfPackedRowsAreExact: what is predicted of rows that travel in fewer bytes, from a dry run whose rows travel
// as they are, is what a dry run of packed rows finds: layers have widths of their own, and narrow rows are not packed.
func TestPlansOfPackedRowsAreExact(t *testing.T) {
	dir := setuptest.Block(t, nil)
	for _, c := range []struct {
		model, strategy, option, dtype string
		off                            float64
	}{
		{"gcn", "halo", "wire_dtype", "int8", 0}, {"sage", "halo", "wire_dtype", "int8", 0},
		{"gat", "halo", "wire_dtype", "int8", 0}, {"gat", "halo", "wire_dtype", "bf16", 0},
		{"gcn", "pipegcn", "wire_dtype", "int8", 0}, {"sage", "distdgl", "pull_dtype", "int8", 0.02},
		{"sage", "distdgl", "pull_dtype", "bf16", 0.02},
	} {
		o := Default()
		o.Dataset, o.Cluster.Workers, o.Cluster.Servers, o.Mode = dir, 2, 2, string(train.Find(c.strategy).Mode)
		o.Model.Name, o.Model.Hidden, o.Model.Layers = c.model, 24, 3
		if err := o.Complete(); err != nil {
			t.Fatal(err)
		}
		p := openPlanner(t, &o)
		s := o.Spec.ForStrategy(c.strategy)
		s.Settings = train.Settings{c.option: c.dtype}
		predicted, err := p.demands(&s)
		if err != nil {
			t.Fatal(err)
		}
		s.Settings = train.Settings{c.option: c.dtype}
		exact, _, err := p.dryRun(&s)
		if err != nil {
			t.Fatal(err)
		}
		for r := range exact {
			got, want := rowBytes(predicted[r].Sent), rowBytes(exact[r].Sent)
			if want == 0 || math.Abs(float64(got)/float64(want)-1) > c.off {
				t.Errorf("%+v, worker %d: %d bytes of rows, a dry run has %d: %v and %v", c, r, got, want,
					rowsOf(predicted[r].Sent), rowsOf(exact[r].Sent))
			}
		}
	}
}

func rowsOf(b wire.Bytes) wire.Bytes {
	out := wire.Bytes{}
	for c, bytes := range b {
		if isRow(c.Kind) {
			out.Add(c, bytes)
		}
	}
	return out
}

// openPlanner is a planner on the parts of a spec.
func openPlanner(t *testing.T, o *Options) *planner {
	t.Helper()
	parts, err := setup.FindParts(context.Background(), &o.Spec, event.All())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { parts.Remove() })
	o.Sharing = 1
	p := &planner{Options: o, parts: parts, known: &cost.Known{}, done: map[string]*dryRunOf{}}
	if err := p.openParts(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	return p
}

// TestPlannedEpochsAreSteady: what an epoch is predicted to send is the mean after the first, which sends all rows of
// strategies that skip some later, over epochs of which every third sends.
func TestPlannedEpochsAreSteady(t *testing.T) {
	class, plan := wire.Class{Kind: wire.Activation}, wire.NewPlan()
	plan.Epoch = func(epoch int) wire.Bytes {
		switch {
		case epoch == 0:
			return wire.Bytes{class: 120_000}
		case epoch%3 == 0:
			return wire.Bytes{class: 3_000}
		}
		return wire.Bytes{}
	}
	for epochs, want := range map[int]int64{1: 120_000, 2: 0, 4: 1000, 13: 1000, 200: 1000} {
		if got := epochBytes(plan, epochs)[class]; got != want {
			t.Errorf("%d epochs: %d bytes per epoch, want %d", epochs, got, want)
		}
	}
}
