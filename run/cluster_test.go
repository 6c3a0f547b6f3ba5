package run

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"starling/dataset/generate"
	"starling/event"
	"starling/graph"
	"starling/setup/setuptest"
	"starling/spec"
	"starling/wire"
)

// TestWorkersInProcess: every model of the list follows one worker's loss, its plan
// of bytes is exact and its plan of memory about right.
func TestWorkersInProcess(t *testing.T) {
	dir := setuptest.Block(t, func(p *generate.Params) { p.Nodes, p.Edges, p.Features = 4_000, 16_000, 40 })
	for name, s := range models(dir) {
		s.Training.Epochs = 3
		want := trained(t, s, nil)
		s.Cluster.Workers, s.Cluster.InProcess, s.Cluster.Partitioner = 3, true, "chunk"
		got := trained(t, onFewThreads(s), nil)
		tolerance := 1e-4
		if s.Machine.DType == "bf16" { // rows are rounded before they are added up
			tolerance = 2e-2
		}
		for e, x := range want.Loss {
			if d := math.Abs(float64(got.Loss[e] - x)); !(d <= tolerance*float64(x)) {
				t.Errorf("%s: loss %v in epoch %d, one worker has %v", name, got.Loss[e], e, x)
			}
		}
		if got.Bytes.Total == 0 || got.Bytes.Total != got.Bytes.Planned || got.Workers != 3 || got.Strategy != "halo" {
			t.Errorf("%s: %+v", name, got.Bytes)
		}
		for _, d := range got.Bytes.Detail {
			if d.Planned != d.Counted {
				t.Errorf("%s: %+v", name, d)
			}
		}
		sameMemory(t, name, got.DevicePlannedBytes, got.DevicePeakBytes)
	}
}

// TestServersOfTheRun: --servers groups the workers of a partition that was cut for
// one server, for strategies as for the ledger.
func TestServersOfTheRun(t *testing.T) {
	dir := setuptest.Block(t, func(p *generate.Params) { p.Nodes, p.Edges, p.Features = 2_000, 8_000, 40 })
	out := filepath.Join(t.TempDir(), "parts")
	cut := spec.DefaultPartition()
	cut.Parts, cut.Out, cut.Method = 4, out, "chunk"
	if _, err := Partition(context.Background(), dir, cut, event.All()); err != nil {
		t.Fatal(err)
	}
	between := func(strategy string) int64 {
		s := spec.Default()
		s.Dataset, s.Strategy, s.Cluster.Servers, s.Training.Epochs, s.Cluster.InProcess, s.Output.Quiet = out,
			strategy, 2, 2, true, true
		r := trained(t, s, nil)
		if r.Bytes.Total != r.Bytes.Planned {
			t.Errorf("%s: %+v", strategy, r.Bytes)
		}
		return r.Bytes.ByLink[wire.BetweenServers.String()]
	}
	if halo, preloaded := between("halo"), between("granndis:2"); preloaded >= halo {
		t.Errorf("granndis sends %d bytes between servers, halo %d", preloaded, halo)
	}
}

// TestFailureStopsWorkers: what goes wrong on all of them is said once.
func TestFailureStopsWorkers(t *testing.T) {
	s := setuptest.Quick(setuptest.Block(t, nil))
	s.Cluster.Workers, s.Cluster.InProcess, s.Training.Epochs, s.Optimizer.LR = 3, true, 1000, 1e6
	s.Optimizer.Name = "sgd"
	_, err := Train(context.Background(), s, nil)
	if err == nil || !strings.Contains(err.Error(), "diverged") {
		t.Errorf("%v, want a loss that diverged", err)
	}
}

// TestInterruptInProcess: stopped at an epoch's end and resumed, with the bytes as planned.
func TestInterruptInProcess(t *testing.T) {
	s := setuptest.Quick(setuptest.Block(t, nil))
	s.Cluster.Workers, s.Cluster.InProcess, s.Checkpoints.Dir = 3, true, t.TempDir()
	whole := s
	whole.Checkpoints.Dir = ""
	want := trained(t, whole, nil)
	ctx, cancel := context.WithCancel(context.Background())
	r, err := Train(ctx, s, event.Func(func(e event.Event) {
		if e, ok := e.(event.Epoch); ok && e.Epoch == 4 {
			cancel()
		}
	}))
	if err != nil || r.Reason != "interrupted" || r.Bytes.Total != r.Bytes.Planned {
		t.Fatalf("%v, %+v", err, r)
	}
	s.Checkpoints.Resume = true
	if got := trained(t, s, nil); fmt.Sprint(got.Loss) != fmt.Sprint(want.Loss) ||
		got.Bytes.Total != got.Bytes.Planned {
		t.Errorf("losses %v, bytes %d of %d; undisturbed %v", got.Loss, got.Bytes.Total, got.Bytes.Planned, want.Loss)
	}
	// Nothing is left to do but to measure the best weights for the report.
	if got := trained(t, s, nil); got.Epochs != s.Training.Epochs || got.Bytes.Total != got.Bytes.Planned ||
		got.Evaluation == nil {
		t.Errorf("%d of %d bytes were sent to measure once more: %v", got.Bytes.Total, got.Bytes.Planned, got.Evaluation)
	}
}

// cliques is a dataset of three, the first two or the last two of which are joined: cut
// into chunks one worker has nothing to send, and receives nothing.
func cliques(t *testing.T, joined int) string {
	t.Helper()
	const each = 10
	var src, dst []uint32
	for v := range uint32(3 * each) {
		for u := v / each * each; u < v; u++ {
			src, dst = append(src, u), append(dst, v)
		}
	}
	src, dst = append(src, uint32(joined*each)), append(dst, uint32(joined*each+each))
	g, err := graph.FromEdges(3*each, src, dst, nil, graph.BuildOptions{Symmetrize: true})
	if err != nil {
		t.Fatal(err)
	}
	d := &graph.Dataset{Graph: g, Labels: &graph.Labels{Classes: 3}, Features: &graph.Features{Rows: 3 * each, Cols: 8}}
	for v := range uint32(3 * each) {
		d.Labels.Class = append(d.Labels.Class, int32(v%3))
		d.Splits.Train = append(d.Splits.Train, v)
		for c := range uint32(8) {
			d.Features.F32 = append(d.Features.F32, float32(v*c%7)/3)
		}
	}
	dir := filepath.Join(t.TempDir(), "cliques")
	if err := graph.Save(dir, d, graph.WriterOptions{}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// resumes compares a run that is interrupted half-way and goes on with an undisturbed one.
func resumes(t *testing.T, s spec.Spec) {
	t.Helper()
	s.Cluster.InProcess, s.Output.Quiet = true, true
	set(&s, "wire_dtype=int8")
	want, all := trained(t, s, nil), s.Training.Epochs
	s.Checkpoints.Dir, s.Training.Epochs = t.TempDir(), all/2
	trained(t, s, nil)
	s.Checkpoints.Resume, s.Training.Epochs = true, all
	if got := trained(t, s, nil); fmt.Sprint(got.Loss) != fmt.Sprint(want.Loss) {
		t.Errorf("resumed %v, undisturbed %v", got.Loss, want.Loss)
	}
}

// TestResumeBesideAnIdleWorker: a worker that never sends has nothing to remember, and
// what the others remember is saved all the same.
func TestResumeBesideAnIdleWorker(t *testing.T) {
	for joined := range 2 {
		s := setuptest.Quick(cliques(t, joined))
		s.Cluster.Workers, s.Cluster.Partitioner, s.Training.Epochs = 3, "chunk", 6
		resumes(t, s)
	}
}

// TestResumeAfterMeasuring: what a strategy remembers of training is saved after a pass that
// measures, too.
func TestResumeAfterMeasuring(t *testing.T) {
	s := setuptest.Quick(setuptest.Block(t, nil))
	s.Cluster.Workers, s.Cluster.Servers, s.Strategy, s.Training.Epochs = 4, 2, "granndis:eas1,2", 4
	resumes(t, s)
}

// TestResumeAsAnother: a run goes on with another strategy, or as one worker, whatever
// settings its own strategy had; with the same one those must be the same.
func TestResumeAsAnother(t *testing.T) {
	s := setuptest.Quick(setuptest.Block(t, nil))
	s.Cluster.Workers, s.Cluster.Servers, s.Cluster.InProcess, s.Output.Quiet, s.Training.Epochs, s.Checkpoints.Dir = 4,
		2, true, true, 2, t.TempDir()
	s.Strategy = "pipegcn"
	set(&s, "smooth=0.5", "relay", "wire_dtype=int8")
	trained(t, s, nil)
	s.Checkpoints.Resume, s.Training.Epochs, s.Checkpoints.Every = true, 3, 0
	for flag, change := range map[string]func(*spec.Spec){
		"":             func(s *spec.Spec) {},
		"--smooth":     func(s *spec.Spec) { set(s, "smooth=0") },
		"--wire-dtype": func(s *spec.Spec) { set(s, "wire_dtype=none") },
	} {
		c := s
		c.Checkpoints.Dir = copied(t, s.Checkpoints.Dir)
		change(&c)
		if _, err := Train(context.Background(), c, nil); flag == "" && err != nil || flag != "" &&
			!setuptest.IsMistake(err, flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
	for _, strategy := range []string{"none", "halo", "skipg", "sancus"} {
		c := s.ForStrategy(strategy)
		c.Checkpoints.Dir = copied(t, s.Checkpoints.Dir)
		set(&c, "wire_dtype=none")
		if strategy == "none" {
			c.Cluster.Workers, c.Cluster.Servers, c.Cluster.InProcess = 1, 0, false
		}
		if r := trained(t, c, nil); r.Epochs != 3 {
			t.Errorf("%s: %d epochs", strategy, r.Epochs)
		}
	}
}

// copied is a copy of a folder.
func copied(t *testing.T, dir string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(out, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestStrategyMistakes: what a strategy cannot do is the user's mistake, not a failure.
func TestStrategyMistakes(t *testing.T) {
	dir := setuptest.Block(t, nil)
	parts := filepath.Join(t.TempDir(), "parts")
	cut := spec.DefaultPartition()
	cut.Parts, cut.Out = 4, parts
	if _, err := Partition(context.Background(), dir, cut, event.All()); err != nil {
		t.Fatal(err)
	}
	for flag, change := range map[string]func(*spec.Spec){
		"--relay":        func(s *spec.Spec) { set(s, "relay") },
		"--sparse-rows":  func(s *spec.Spec) { s.Model.Name, s.Model.Layers = "gat", 3; set(s, "sparse_rows") },
		"bns:0.1:cached": func(s *spec.Spec) { s.Strategy, s.Model.Name = "bns", "film" },
		"--memory-budget": func(s *spec.Spec) {
			s.Strategy, s.Cluster.Servers = "granndis:2",
				2
			set(s, "memory_budget=1KB")
		}, "--partitioner": func(s *spec.Spec) {
			s.Dataset,
				s.Cluster.Partitioner = parts, "chunk"
		},
	} {
		s := setuptest.Quick(dir)
		s.Cluster.Workers, s.Cluster.InProcess, s.Output.Quiet, s.Training.Epochs = 4, true, true, 1
		change(&s)
		if _, err := Train(context.Background(), s, nil); !setuptest.IsMistake(err, flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}
