package run

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"starling/dataset/generate"
	"starling/event"
	"starling/internal/testseed"
	"starling/setup/setuptest"
	"starling/spec"
	"starling/train"
)

// onFewThreads is a run whose memory is compared: kernels take some for each thread.
func onFewThreads(s spec.Spec) spec.Spec {
	if s.Machine.DType != "f64" { // which has one
		s.Machine.Threads = 1
	}
	return s
}

// sameMemory compares what was planned for a device with what it had at once. Dry runs
// leave out the little that kernels take for themselves.
func sameMemory(t *testing.T, name string, planned, peak int64) {
	t.Helper()
	if low, high := 0.9*float64(peak)-1<<18, 1.1*float64(peak)+1<<18; float64(planned) < low ||
		float64(planned) > high {
		t.Errorf("%s: planned %d, the device had %d at once (%.2f)", name, planned, peak,
			float64(planned)/float64(peak))
	}
}

func oneOf[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// TestDryRunsFindTheMemory: every strategy takes the memory that was planned for it, whatever the
// model, so that a run that will not fit is refused before it starts. STARLING_SEED repeats
// what was drawn.
func TestDryRunsFindTheMemory(t *testing.T) {
	r := testseed.Rand(t)
	dir := setuptest.Block(t, func(p *generate.Params) { p.Nodes, p.Edges, p.Features = 3_000, 24_000, 40 })
	out := filepath.Join(t.TempDir(), "parts")
	cut := spec.DefaultPartition()
	cut.Parts, cut.Servers, cut.Out = 4, 2, out
	if _, err := Partition(context.Background(), dir, cut, event.All()); err != nil {
		t.Fatal(err)
	}
	for _, strategy := range []string{"halo", "pipegcn", "g3", "cagnet", "skipg:1", "sancus", "sancus:variation:0.1",
		"bns:0.3", "bns:0.3:cached", "granndis:1", "granndis:2", "granndis:eas1,4", "neutrontp", "plexus", "plexus:2x1x2", "halo+relay",
		"g3+relay", "pipegcn+relay", "bns:0.3:cached+relay"} {
		s := spec.Default()
		s.Dataset, s.Strategy, s.Model.Hidden = out, strategy, 64
		s.Cluster.Workers, s.Cluster.Servers, s.Cluster.InProcess, s.Output.Quiet = 4, 2, true, true
		s.Training.Epochs, s.Model.Layers = 3, 2+r.IntN(4)
		s.Model.Name, s.Machine.DType = oneOf(r, "gcn", "sage", "gat", "gin", "ressage+"), oneOf(r, "f32", "bf16")
		rows := oneOf(r, "none", "int8")
		s.Training.Inductive = r.IntN(4) == 0
		blocks := slices.Contains([]string{"neutrontp", "plexus"}, train.NameOf(strategy))
		if blocks {
			rows = "none"
			if s.Model.Name == "gat" || s.Model.Name == "gin" {
				s.Model.Name = "resgcn+"
			}
		}
		sparse := rows == "none" && s.Model.Name != "gat" && s.Model.Layers > 2 && !blocks
		set(&s, "wire_dtype="+rows, fmt.Sprintf("sparse_rows=%t", sparse))
		relay := false
		if s.Strategy, _, relay = strings.Cut(strategy, "+"); relay {
			set(&s, "relay")
		}
		name := fmt.Sprintf("%s, %d layers of %s, %s, rows as %s, without zeros %v, inductive %v", strategy,
			s.Model.Layers, s.Model.Name, s.Machine.DType, rows, sparse, s.Training.Inductive)
		report := trained(t, onFewThreads(s), nil)
		sameMemory(t, name, report.DevicePlannedBytes, report.DevicePeakBytes)
		if report.MemoryPlannedBytes < report.DevicePlannedBytes+10<<20 {
			t.Errorf("%s: %d planned, for a device that needs %d", name, report.MemoryPlannedBytes,
				report.DevicePlannedBytes)
		}
	}
}

// TestDeepPipeline: g3 keeps what gradients of weights are computed from for a few layers,
// not for all, so that a deep model takes little more than without its pipeline.
func TestDeepPipeline(t *testing.T) {
	s := setuptest.Quick(setuptest.Block(t, func(p *generate.Params) { p.Nodes, p.Edges, p.Features = 2_000, 8_000, 16 }))
	s.Cluster.Workers, s.Cluster.InProcess, s.Model.Name, s.Model.Layers, s.Model.Hidden = 2, true, "ressage+", 28, 64
	peak := map[string]int64{}
	for _, strategy := range []string{"g3", "g3:none"} {
		s.Strategy = strategy
		_, p, err := DryRun(onFewThreads(s), event.All())
		if err != nil {
			t.Fatal(err)
		}
		peak[strategy] = p.Peak
	}
	if float64(peak["g3"]) > 1.3*float64(peak["g3:none"]) {
		t.Errorf("28 layers have %d at once, and %d without a pipeline", peak["g3"], peak["g3:none"])
	}
}

// TestFarTooLarge: workers of a model that no machine has the memory for are refused.
func TestFarTooLarge(t *testing.T) {
	s := setuptest.Quick(setuptest.Block(t, nil))
	s.Cluster.Workers, s.Cluster.InProcess, s.Model.Hidden, s.Model.Layers = 2, true, 1<<16, 1000
	for _, strategy := range []string{"halo", "granndis:1"} {
		s.Strategy = strategy
		if _, err := Train(context.Background(), s, nil); !setuptest.IsMistake(err, "memory") ||
			!strings.Contains(err.Error(), "at least") {
			t.Errorf("%s: %v", strategy, err)
		}
	}
}

// TestClockDecides: where measured rates decide, a dry run measures them, and the plan follows from
// the choice.
func TestClockDecides(t *testing.T) {
	dir := setuptest.Block(t, func(p *generate.Params) { p.Nodes, p.Edges, p.Features = 500, 2_000, 20 })
	check := func(strategy string) {
		t.Helper()
		s := spec.Default()
		s.Dataset, s.Cluster.Workers, s.Cluster.Servers, s.Cluster.InProcess = dir, 4, 2, true
		relay := false
		if s.Strategy, _, relay = strings.Cut(strategy, "+"); relay {
			set(&s, "relay")
		}
		chooses := s.Strategy == "neutronstar" || s.Strategy == "granndis:auto"
		if chooses {
			set(&s, "memory_budget=3GiB")
		}
		completed, p, err := DryRun(s, event.All())
		if err != nil || p.AtLeast || p.Replicas != 0 || len(p.Each) != 4 || p.Needed() <= p.Processes {
			t.Errorf("%s: %+v, %v", strategy, p, err)
			return
		}
		if _, measured := completed.Settings["rates"]; measured != chooses {
			t.Errorf("%s: settings %v", strategy, completed.Settings)
		}
	}
	for _, strategy := range []string{"halo", "granndis:1", "halo+relay", "g3+relay", "neutronstar", "granndis:auto",
		"neutronstar+relay"} {
		check(strategy)
	}
}
