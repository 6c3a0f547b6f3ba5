package run

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"starling/dataset/generate"
	"starling/event"
	"starling/partition"
	"starling/spec"
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
	seed, err := strconv.ParseUint(os.Getenv("STARLING_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	t.Logf("STARLING_SEED=%d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	dir := block(t, func(p *generate.Params) { p.Nodes, p.Edges, p.Features = 3_000, 24_000, 40 })
	out := filepath.Join(t.TempDir(), "parts")
	cut := spec.DefaultPartition()
	cut.Parts, cut.Servers, cut.Out = 4, 2, out
	if _, err := Partition(context.Background(), dir, cut, event.All()); err != nil {
		t.Fatal(err)
	}
	for _, strategy := range []string{"halo", "pipegcn", "g3", "cagnet", "skipg:1", "sancus", "sancus:variation:0.1",
		"bns:0.3", "bns:0.3:cached", "granndis:1", "granndis:2", "granndis:eas1,4", "halo+relay",
		"g3+relay", "pipegcn+relay", "bns:0.3:cached+relay"} {
		s := spec.Default()
		s.Dataset, s.Strategy, s.Model.Hidden = out, strategy, 64
		s.Cluster.Workers, s.Cluster.Servers, s.Cluster.InProcess, s.Output.Quiet = 4, 2, true, true
		s.Training.Epochs, s.Model.Layers = 3, 2+r.IntN(4)
		s.Model.Name, s.Machine.DType = oneOf(r, "gcn", "sage", "gat", "gin", "ressage+"), oneOf(r, "f32", "bf16")
		rows := oneOf(r, "none", "int8")
		s.Training.Inductive = r.IntN(4) == 0
		sparse := rows == "none" && s.Model.Name != "gat" && s.Model.Layers > 2
		set(&s, "wire_dtype="+rows, fmt.Sprintf("sparse_rows=%t", sparse))
		relay := false
		if s.Strategy, _, relay = strings.Cut(strategy, "+"); relay {
			set(&s, "relay")
		}
		name := fmt.Sprintf("%s, %d layers of %s, %s, rows as %s, without zeros %v, inductive %v", strategy,
			s.Model.Layers, s.Model.Name, s.Machine.DType, rows, sparse, s.Training.Inductive)
		report := trained(t, onFewThreads(s), nil)
		sameMemory(t, name, report.DevicePlannedBytes, report.DevicePeakBytes)
		if report.MemoryPlannedBytes < report.DevicePlannedBytes+processBytes {
			t.Errorf("%s: %d planned, for a device that needs %d", name, report.MemoryPlannedBytes,
				report.DevicePlannedBytes)
		}
	}
}

// TestDeepPipeline: g3 keeps what gradients of weights are computed from for a few layers,
// not for all, so that a deep model takes little more than without its pipeline.
func TestDeepPipeline(t *testing.T) {
	s := quick(block(t, func(p *generate.Params) { p.Nodes, p.Edges, p.Features = 2_000, 8_000, 16 }))
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

// TestDryRunTogether: workers in one dry run are found to need what each needs alone.
func TestDryRunTogether(t *testing.T) {
	s := quick(block(t, func(p *generate.Params) { p.Nodes, p.Edges, p.Features = 20_000, 100_000, 40 }))
	s.Cluster.Workers, s.Cluster.InProcess, s.Strategy, s.Model.Hidden = 4, true, "halo", 64
	if err := s.Complete(); err != nil {
		t.Fatal(err)
	}
	c, err := prepareCluster(context.Background(), s, nil, event.All())
	if err != nil {
		t.Fatal(err)
	}
	defer c.parts.remove()
	parts := make([]*partition.Part, s.Cluster.Workers)
	for r := range parts {
		if parts[r], err = partition.OpenPart(c.parts.dir, r); err != nil {
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
	aloneMatrices, alone := total(c.dryRunEach(parts, &c.spec))
	matrices, together := total(c.dryRunTogether(parts, &c.spec))
	if matrices != aloneMatrices || math.Abs(float64(together-alone)) > 0.25*float64(alone) {
		t.Errorf("together: matrices %d, graph %d; each alone: %d, %d", matrices, together, aloneMatrices, alone)
	}
}

// TestFarTooLarge: workers of a model that no machine has the memory for are refused.
func TestFarTooLarge(t *testing.T) {
	s := quick(block(t, nil))
	s.Cluster.Workers, s.Cluster.InProcess, s.Model.Hidden, s.Model.Layers = 2, true, 1<<16, 1000
	for _, strategy := range []string{"halo", "granndis:1"} {
		s.Strategy = strategy
		if _, err := Train(context.Background(), s, nil); !isMistake(err, "memory") ||
			!strings.Contains(err.Error(), "at least") {
			t.Errorf("%s: %v", strategy, err)
		}
	}
}

// TestClockDecides: where measured rates decide, a dry run measures them, and the plan follows from
// the choice; what a graph takes that is too large for a dry run of all workers in one process is not
// known before, and the plan says so.
func TestClockDecides(t *testing.T) {
	dir := block(t, func(p *generate.Params) { p.Nodes, p.Edges, p.Features = 500, 2_000, 20 })
	check := func(strategy string, inductive, atLeast bool) {
		t.Helper()
		s := spec.Default()
		s.Dataset, s.Cluster.Workers, s.Cluster.Servers, s.Cluster.InProcess, s.Training.Inductive = dir, 4, 2, true,
			inductive
		relay := false
		if s.Strategy, _, relay = strings.Cut(strategy, "+"); relay {
			set(&s, "relay")
		}
		chooses := s.Strategy == "neutronstar" || s.Strategy == "granndis:auto"
		if chooses {
			set(&s, "memory_budget=3GiB")
		}
		completed, p, err := DryRun(s, event.All())
		if err != nil || p.AtLeast != atLeast || p.Replicas != 0 || len(p.Each) != 4 || p.Needed() <= processBytes {
			t.Errorf("%s, inductive %v: %+v, %v", strategy, inductive, p, err)
			return
		}
		if _, measured := completed.Settings["rates"]; measured != chooses {
			t.Errorf("%s: settings %v", strategy, completed.Settings)
		}
	}
	together := []string{"granndis:1", "halo+relay", "g3+relay"}
	check("halo", false, false)
	for _, strategy := range together {
		check(strategy, false, false)
	}
	for _, strategy := range []string{"neutronstar", "granndis:auto", "neutronstar+relay"} {
		check(strategy, false, false)
	}
	was := mostTogether
	defer func() { mostTogether = was }()
	mostTogether = 100
	check("halo", false, false)
	check("halo", true, true)
	for _, strategy := range together {
		check(strategy, true, true)
	}
}
