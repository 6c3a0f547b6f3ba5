package run

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"starling/dataset/generate"
	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/plan"
	"starling/predict"
	"starling/report"
	"starling/setup"
	"starling/setup/setuptest"
	"starling/spec"
)

// pairSpecs are runs of pairs, small enough for tests.
func pairSpecs(dir string) map[string]spec.Spec {
	list := map[string]spec.Spec{}
	for _, task := range []string{nn.TaskLink, nn.TaskUnsupervised} {
		for _, mode := range []string{"full", "mini"} {
			s := setuptest.Quick(dir)
			s.Task, s.Mode, s.Model.Name, s.Training.Epochs, s.Batches.Size, s.Pairs.RankNegatives,
				s.Pairs.Walks = task, mode, "sage", 6, 200, 10, 1
			if mode == "full" {
				s.Batches.Size = spec.Default().Batches.Size
			}
			if task == nn.TaskLink {
				s.Pairs.Decoder, s.Pairs.Negatives, s.Pairs.NegativesEach, s.Pairs.Walks = "mlp", "degree:0.5", 2,
					spec.Default().Pairs.Walks
			}
			list[task+" "+mode] = s
		}
	}
	return list
}

// TestPairsResume: a run of pairs that was stopped ends as one never disturbed, with
// its measures.
func TestPairsResume(t *testing.T) {
	for name, s := range pairSpecs(setuptest.Block(t, nil)) {
		want := trained(t, s, nil)
		if want.Metric != "auc" || want.AUC == nil || want.MRR == nil || len(want.Hits) != 3 || !(*want.MRR > 0) {
			t.Fatalf("%s: measures %+v", name, want.Measures)
		}
		s.Checkpoints.Dir, s.Checkpoints.Every = filepath.Join(t.TempDir(), "ck"), 1
		ctx, cancel := context.WithCancel(context.Background())
		if r, err := Train(ctx, s, after(3, cancel)); err != nil || r.Reason != "interrupted" {
			t.Fatal(name, r, err)
		}
		cancel()
		s.Checkpoints.Resume = true
		if got := trained(t, s, nil); timeless(got) != timeless(want) {
			t.Errorf("%s: resumed\n%s\nwant\n%s", name, timeless(got), timeless(want))
		}
	}
}

// TestPairsPlanTellsTheMemory: what is planned is what the device uses.
func TestPairsPlanTellsTheMemory(t *testing.T) {
	dir := setuptest.Block(t, func(p *generate.Params) { p.Nodes, p.Edges, p.Features = 5000, 40_000, 40 })
	data, err := graph.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	for name, s := range pairSpecs(dir) {
		s.Training.Epochs, s.Model.Hidden = 2, 64
		s = onFewThreads(s)
		r := trained(t, s, nil)
		if err := s.Complete(); err != nil {
			t.Fatal(err)
		}
		s.Machine.CacheFirst = r.CacheFirst
		p, err := plan.Alone(&s, data)
		if err != nil {
			t.Fatal(err)
		}
		sameMemory(t, name, p.Peak, r.DevicePeakBytes)
	}
}

// TestPairsNeedNoLabels, nor splits.
func TestPairsNeedNoLabels(t *testing.T) {
	dir := setuptest.Block(t, nil)
	d, err := graph.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	bare := filepath.Join(t.TempDir(), "bare")
	if err := graph.Save(bare, &graph.Dataset{Meta: graph.Meta{Name: "bare"}, Graph: d.Graph, Features: d.Features},
		graph.WriterOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, s := range pairSpecs(bare) {
		s.Training.Epochs = 1
		if trained(t, s, nil).AUC == nil {
			t.Errorf("%s: no measures", name)
		}
	}
}

// TestHeldOutFiles: a run's folder lists the pairs it was measured on, and may be
// written again.
func TestHeldOutFiles(t *testing.T) {
	s := pairSpecs(setuptest.Block(t, nil))["link full"]
	s.Output.Dir, s.Training.Epochs, s.Output.Overwrite = filepath.Join(t.TempDir(), "run"), 1, true
	for range 2 {
		trained(t, s, nil)
	}
	for _, name := range setup.HeldOutFiles {
		f, err := os.Open(filepath.Join(s.Output.Dir, name))
		if err != nil {
			t.Fatal(err)
		}
		h, err := graph.ReadNPYHeader(f)
		if f.Close(); err != nil || len(h.Shape) != 2 || h.Shape[0] < 20 || h.Shape[1] != 2 {
			t.Errorf("%s: %+v, %v", name, h, err)
		}
	}
}

// TestPairsOnWorkers: two workers report what one does, and write the same files; from a partition
// without labels too.
func TestPairsOnWorkers(t *testing.T) {
	dir := setuptest.Block(t, nil)
	for name, s := range pairSpecs(dir) {
		if s.Mode != "mini" {
			continue
		}
		s.Training.Epochs = 2
		one := trained(t, s, nil)
		s.Cluster.Workers, s.Cluster.InProcess, s.Output.Dir = 2, true, filepath.Join(t.TempDir(), "run")
		two := trained(t, s, nil)
		if math.Abs(float64(two.Loss[1]-one.Loss[1])) > 1e-4 || math.Abs(float64(*two.MRR-*one.MRR)) > 0.01 ||
			math.Abs(float64(*two.AUC-*one.AUC)) > 0.01 {
			t.Errorf("%s: %v, AUC %v, MRR %v; one worker %v, %v, %v", name, two.Loss, *two.AUC, *two.MRR, one.Loss,
				*one.AUC, *one.MRR)
		}
		_, err := os.Stat(filepath.Join(s.Output.Dir, setup.HeldOutFiles[0]))
		if (err == nil) != (s.Task == "link") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPairsRefuse(t *testing.T) {
	dir := setuptest.Block(t, nil)
	for flag, change := range map[string]func(*spec.Spec){
		"--decoder":        func(s *spec.Spec) { s.Pairs.Decoder = "dots" },
		"--negatives":      func(s *spec.Spec) { s.Pairs.Negatives = "degree:-1" },
		"--negatives-each": func(s *spec.Spec) { s.Pairs.NegativesEach = -1 },
		"--rank-negatives": func(s *spec.Spec) { s.Pairs.RankNegatives = 0 },
		"--val-edges":      func(s *spec.Spec) { s.Pairs.ValEdges, s.Pairs.TestEdges = 0.5, 0.5 },
		"--walks":          func(s *spec.Spec) { s.Pairs.Walks = 9 },
		"--inductive":      func(s *spec.Spec) { s.Training.Inductive = true },
		"one worker":       func(s *spec.Spec) { s.Cluster.Workers, s.Strategy = 2, "halo" },
		"--sampler":        func(s *spec.Spec) { s.Mode, s.Batches.Sampler = "mini", "cluster" },
		"--patience":       func(s *spec.Spec) { s.Training.Patience, s.Pairs.ValEdges = 3, 0 },
		"larger shares":    func(s *spec.Spec) { s.Pairs.ValEdges = 1e-12 },
		"without effect":   func(s *spec.Spec) { s.Task = "auto" },
	} {
		s := pairSpecs(dir)["link full"]
		change(&s)
		if _, err := Train(context.Background(), s, nil); !setuptest.IsMistake(err, flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
	s := pairSpecs(dir)["link full"]
	cut := spec.DefaultPartition()
	cut.Parts, cut.Out = 2, filepath.Join(t.TempDir(), "parts")
	if _, err := Partition(context.Background(), dir, cut, event.All()); err != nil {
		t.Fatal(err)
	}
	s.Dataset = cut.Out
	if _, err := Train(context.Background(), s, nil); !setuptest.IsMistake(err, "--task") ||
		!strings.Contains(err.Error(), "use --mode mini with several") {
		t.Error(err)
	}
	s.Mode, s.Cluster.Workers, s.Strategy = "mini", 2, "naive-hop"
	if _, err := Train(context.Background(), s, nil); !setuptest.IsMistake(err, "--strategy") {
		t.Error(err)
	}
	s = pairSpecs(dir)["unsupervised full"]
	s.Pairs.Decoder = "mlp"
	if _, err := Train(context.Background(), s, nil); !setuptest.IsMistake(err, "--decoder") {
		t.Error(err)
	}
}

// TestPairsOfNoEdges: a graph that nothing can be learnt from is refused before training,
// and by --dry-run too.
func TestPairsOfNoEdges(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "loops")
	list := filepath.Join(t.TempDir(), "edges.csv")
	if err := os.WriteFile(list, []byte("0,0\n1,1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	features := filepath.Join(t.TempDir(), "x.csv")
	if err := os.WriteFile(features, []byte("0,1,2\n1,3,4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Import(t.Context(), "edgelist", list, ImportOptions{KeepSelfLoops: true, Features: features, Seed: 1},
		dir, nil); err != nil {
		t.Fatal(err)
	}
	for name, s := range pairSpecs(dir) {
		if _, _, err := DryRun(s, nil); !setuptest.IsMistake(err, "no edge between two vertices") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPairsInterrupted: an interruption does not wait until all pairs are drawn.
func TestPairsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, s := range pairSpecs(setuptest.Block(t, nil)) {
		if _, err := Train(ctx, s, nil); !errors.Is(err, report.ErrInterrupted) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPredictPairs: a pair scores the same either way round, embeddings are as wide as
// they were asked to be, and what such a model cannot do is refused.
func TestPredictPairs(t *testing.T) {
	dir, tmp := setuptest.Block(t, nil), t.TempDir()
	for _, task := range []string{"link full", "unsupervised full"} {
		s := pairSpecs(dir)[task]
		s.Output.Dir, s.Pairs.Embedding, s.Output.Overwrite = filepath.Join(tmp, "run"), 10, true
		trained(t, s, nil)
		p, err := predict.Run(context.Background(), predict.Options{Run: s.Output.Dir, Dataset: dir, What: "embeddings",
			Out: filepath.Join(tmp, "e.npy"), Overwrite: true})
		if err != nil || p.Width != 10 || p.Vertices != 300 {
			t.Fatal(p, err)
		}
		pairs := filepath.Join(tmp, "pairs.txt")
		if err := os.WriteFile(pairs, []byte("0 1\n1 0\n7,299\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		o := predict.Options{Run: s.Output.Dir, Dataset: dir, What: "scores", Pairs: pairs,
			Out: filepath.Join(tmp, "s.csv"), Overwrite: true}
		if p, err = predict.Run(context.Background(), o); err != nil || p.Pairs != 3 {
			t.Fatal(p, err)
		}
		b, err := os.ReadFile(o.Out)
		lines := strings.Split(string(b), "\n")
		if err != nil || len(lines) != 5 || lines[1][4:] != lines[2][4:] || !strings.HasPrefix(lines[3], "7,299,0.") {
			t.Errorf("%q, %v", b, err)
		}
		for flag, change := range map[string]func(*predict.Options){
			"--pairs":            func(o *predict.Options) { o.Pairs = "" },
			"no such file":       func(o *predict.Options) { o.Pairs = filepath.Join(tmp, "none") },
			"--out":              func(o *predict.Options) { o.Out = filepath.Join(tmp, "s.parquet") },
			"--what scores":      func(o *predict.Options) { o.What = "embeddings" },
			"ask for embeddings": func(o *predict.Options) { o.What, o.Pairs = "labels", "" },
		} {
			o := o
			change(&o)
			if flag == "--what scores" || flag == "ask for embeddings" {
				o.Out = filepath.Join(tmp, "x.npy")
			}
			if _, err := predict.Run(context.Background(), o); !setuptest.IsMistake(err, flag) {
				t.Errorf("%s: %v", flag, err)
			}
		}
		if _, err := predict.Export(s.Output.Dir, "pyg", filepath.Join(tmp, "export"), true); err != nil {
			t.Error(err)
		}
	}
}
