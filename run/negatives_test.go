package run

import (
	"context"
	"math"
	"path/filepath"
	"testing"

	"starling/dataset/generate"
	"starling/graph"
	"starling/plan"
	"starling/setup/setuptest"
	"starling/spec"
)

// TestNegativesEverywhere: a run with any --negatives takes the memory that was planned, resumes to the same bits, and
// has the losses of two workers.
func TestNegativesEverywhere(t *testing.T) {
	dir := setuptest.Block(t, func(p *generate.Params) { p.Nodes, p.Edges, p.Features = 1000, 8000, 20 })
	data, err := graph.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	for _, negatives := range []string{"in-batch", "joint", "joint:50", "hard", "hard:2"} {
		s := onFewThreads(pairSpecs(dir)["link mini"])
		s.Training.Epochs, s.Pairs.Negatives, s.Pairs.NegativesEach, s.Model.Hidden = 2, negatives, 0, 32
		want := trained(t, s, nil)
		two := s
		two.Cluster.Workers, two.Cluster.InProcess = 2, true
		if got := trained(t, two, nil); math.Abs(float64(got.Loss[1]-want.Loss[1])) > 1e-3 {
			t.Errorf("%s: losses %v, of two workers %v", negatives, want.Loss, got.Loss)
		}
		half := s
		half.Checkpoints.Dir, half.Training.Epochs = filepath.Join(t.TempDir(), "ck"), 1
		trained(t, half, nil)
		half.Checkpoints.Resume, half.Training.Epochs = true, 2
		if got := trained(t, half, nil); got.Loss[1] != want.Loss[1] || *got.MRR != *want.MRR {
			t.Errorf("%s: losses %v, resumed %v; MRR %v and %v", negatives, want.Loss, got.Loss, *want.MRR, *got.MRR)
		}
		if err := s.Complete(); err != nil {
			t.Fatal(err)
		}
		s.Machine.CacheFirst = want.CacheFirst
		p, err := plan.Alone(&s, data)
		if err != nil {
			t.Fatal(err)
		}
		sameMemory(t, negatives, p.Peak, want.DevicePeakBytes)
	}
}

// TestNegativesRefuse what they cannot be, and to be a worker's own on a typed graph.
func TestNegativesRefuse(t *testing.T) {
	dir := setuptest.Block(t, nil)
	for _, c := range []struct {
		want   string
		change func(s *spec.Spec)
	}{
		{"--negatives", func(s *spec.Spec) { s.Pairs.Negatives = "uniform:2" }},
		{"--negatives", func(s *spec.Spec) { s.Pairs.Negatives = "joint:0" }},
		{"--negatives", func(s *spec.Spec) { s.Pairs.Negatives = "joint:x" }},
		{"--negatives", func(s *spec.Spec) { s.Pairs.Negatives = "hard:1" }},
		{"--negatives", func(s *spec.Spec) { s.Pairs.Negatives = "degree:nan" }},
		{"at most 65536", func(s *spec.Spec) { s.Pairs.Negatives, s.Pairs.NegativesEach = "hard:1000", 100 }},
		{"--mode full", func(s *spec.Spec) { s.Mode, s.Batches, s.Pairs.Negatives = "full", spec.Default().Batches, "joint" }},
		{"--mode full", func(s *spec.Spec) {
			s.Mode, s.Batches, s.Pairs.Negatives = "full", spec.Default().Batches, "in-batch"
		}},
		{"--negatives-from", func(s *spec.Spec) {
			s.Cluster.Workers, s.Cluster.InProcess, s.Pairs.NegativesFrom, s.Pairs.Negatives = 2, true, "local", "joint"
		}},
	} {
		s := pairSpecs(dir)["link mini"]
		c.change(&s)
		if _, err := Train(context.Background(), s, nil); !setuptest.IsMistake(err, c.want) {
			t.Errorf("%s: %v", c.want, err)
		}
	}
	typed := setuptest.Typed(t)
	for negatives, want := range map[string]string{"uniform": "--negatives-from local with --model rgcn",
		"degree:0.75": "of the destination's type", "in-batch": "--negatives-from local with --negatives in-batch"} {
		s := setuptest.QuickTyped(typed, "rgcn")
		s.Task, s.Target, s.Mode, s.Cluster.Workers, s.Cluster.InProcess = "link", "cites", "mini", 2, true
		s.Pairs.Negatives = negatives
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		s.Pairs.NegativesFrom = "local"
		if _, err := Train(context.Background(), s, nil); !setuptest.IsMistake(err, want) {
			t.Errorf("--negatives-from local of %s: %v", negatives, err)
		}
	}
	s := pairSpecs(dir)["link full"]
	s.Pairs.Negatives = "hard"
	trained(t, s, nil)
}
