package run

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"starling/dataset/generate"
	"starling/event"
	"starling/graph"
	"starling/spec"
)

// addEdgeFeatures puts edge_features.npy into a dataset folder: whether the two ends
// are of one class, and noise.
func addEdgeFeatures(t *testing.T, dir string) {
	t.Helper()
	d, err := graph.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	g := *d.Graph
	g.EdgeDim = 2
	for v := range g.Nodes() {
		for _, u := range g.Neighbors(uint32(v)) {
			same := float32(0)
			if d.Labels.Class[u] == d.Labels.Class[v] {
				same = 1
			}
			g.EdgeFeatures = append(g.EdgeFeatures, same, float32(u%7)/7)
		}
	}
	other := filepath.Join(t.TempDir(), "edges")
	w, err := graph.Create(other, graph.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Graph(&g); err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(other, "edge_features.npy"))
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "edge_features.npy"), b, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestEdgeFeatures: models learn from them, the plan tells their memory, and where they
// cannot be used they are refused.
func TestEdgeFeatures(t *testing.T) {
	dir := block(t, func(p *generate.Params) { p.Nodes, p.Edges = 600, 3000 })
	missing := quick(dir)
	missing.Model.Name, missing.Model.EdgeFeatures = "gat", true
	if _, err := Train(t.Context(), missing, nil); err == nil || !strings.Contains(err.Error(), "edge_features.npy") {
		t.Errorf("edges without features: %v", err)
	}
	addEdgeFeatures(t, dir)
	for _, model := range []string{"gat", "gatv2", "gin"} {
		for _, inductive := range []bool{false, true} {
			s := quick(dir)
			s.Model.Name, s.Model.EdgeFeatures, s.Training.Inductive, s.Training.Epochs = model, true, inductive, 1
			with := trained(t, s, nil)
			s.Model.EdgeFeatures = false
			if without := trained(t, s, nil); with.Loss[0] == without.Loss[0] {
				t.Errorf("%s: the loss is the same without features of edges", model)
			}
		}
	}
	for _, change := range []func(*spec.Spec){
		func(s *spec.Spec) { s.Mode = "mini" },
		func(s *spec.Spec) { s.Mode, s.Model.Name, s.Batches.Sampler = "mini", "gin", "cluster" },
		func(s *spec.Spec) { s.Task, s.Training.EvalEvery = "link", 0 },
		func(s *spec.Spec) { s.Task, s.Training.EvalEvery, s.Mode = "link", 0, "mini" },
	} {
		s := quick(dir)
		s.Model.Name, s.Model.EdgeFeatures, s.Training.Epochs = "gat", true, 1
		change(&s)
		with := trained(t, s, nil)
		s.Model.EdgeFeatures = false
		if without := trained(t, s, nil); with.Loss[0] == without.Loss[0] {
			t.Errorf("%s %s: the loss is the same without features of edges", s.Mode, s.Task)
		}
	}
	workersUseEdgeFeatures(t, dir)
	for _, change := range []func(*spec.Spec){
		func(s *spec.Spec) { s.Model.Name = "gcn" },
		func(s *spec.Spec) { s.Model.Name, s.Mode, s.Batches.Sampler = "gin", "mini", "ladies" },
		func(s *spec.Spec) { s.Model.Name, s.Mode, s.Batches.Weighted = "gin", "mini", true },
	} {
		s := quick(dir)
		s.Model.Name, s.Model.EdgeFeatures = "gat", true
		change(&s)
		if err := s.Complete(); err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), "--edge-features") {
			t.Errorf("%s, %s, %d workers: %v", s.Model.Name, s.Mode, s.Cluster.Workers, err)
		}
	}
}

// workersUseEdgeFeatures: workers and a partition have the loss of one worker; a
// partition without them, and a strategy that cannot use them, are refused by name.
func workersUseEdgeFeatures(t *testing.T, dir string) {
	t.Helper()
	parts := filepath.Join(t.TempDir(), "parts")
	cut := spec.DefaultPartition()
	cut.Parts, cut.Out, cut.Verify = 2, parts, true
	if _, err := Partition(t.Context(), dir, cut, event.All()); err != nil {
		t.Fatal(err)
	}
	for _, model := range []string{"gat", "gatv2", "gin"} {
		s := quick(dir)
		s.Model.Name, s.Model.EdgeFeatures, s.Machine.DType, s.Training.Epochs = model, true, "f64", 3
		want := trained(t, s, nil)
		for _, data := range []string{dir, parts} {
			s.Dataset, s.Cluster.Workers, s.Cluster.InProcess = data, 2, true
			got := trained(t, s, nil)
			for e := range want.Loss {
				if a, b := float64(got.Loss[e]), float64(want.Loss[e]); math.Abs(a-b) > 1e-9*b {
					t.Errorf("%s: loss %g on two workers, %g on one", model, a, b)
				}
			}
		}
	}
	s := quick(dir)
	s.Model.Name, s.Model.EdgeFeatures, s.Cluster.Workers, s.Cluster.InProcess, s.Strategy = "gin", true, 2, true,
		"bns:0.5"
	if _, err := Train(t.Context(), s, nil); err == nil || !strings.Contains(err.Error(), "--edge-features") ||
		!strings.Contains(err.Error(), "bns") {
		t.Errorf("bns: %v", err)
	}
	s.Dataset, s.Strategy = block(t, nil), "halo"
	if _, err := Train(t.Context(), s, nil); err == nil || !strings.Contains(err.Error(), "--edge-features") {
		t.Errorf("a partition without: %v", err)
	}
}
