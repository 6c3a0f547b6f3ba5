package run

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"starling/event"
	"starling/nn"
	"starling/predict"
	"starling/report"
	"starling/setup"
	"starling/setup/setuptest"
	"starling/spec"
)

// TestTypedRunsResume: a typed run that ends between epochs goes on, with as many workers or others. With the same ones
// it ends with the same bits; learnt rows of vertices go where their vertices are.
func TestTypedRunsResume(t *testing.T) {
	dir := setuptest.Typed(t)
	at := func(workers int) spec.Spec {
		s := setuptest.QuickTyped(dir, "rgcn")
		s.Cluster.Workers, s.Cluster.InProcess, s.Training.Epochs, s.Machine.Threads = workers, workers > 1, 6, 1
		return s
	}
	for _, c := range []struct{ before, after int }{{1, 1}, {2, 2}, {1, 2}, {3, 1}} {
		label := fmt.Sprintf("%d workers, then %d", c.before, c.after)
		want := trained(t, at(c.after), nil)
		s := at(c.before)
		s.Checkpoints.Dir, s.Training.Epochs = t.TempDir(), 3
		trained(t, s, nil)
		r := at(c.after)
		r.Checkpoints.Dir, r.Checkpoints.Resume, r.Output.Dir = s.Checkpoints.Dir, true, filepath.Join(t.TempDir(), "run")
		got := trained(t, r, nil)
		if c.before == c.after && !slices.Equal(got.Loss, want.Loss) || !sameLosses(got.Loss, want.Loss) {
			t.Errorf("%s: losses %v, want %v", label, got.Loss, want.Loss)
		}
	}
}

// TestEmbeddingsResumeOnOtherWorkers: so do rows of --learn-embeddings. A worker's file that is missing or damaged is
// named, and the checkpoint before is taken.
func TestEmbeddingsResumeOnOtherWorkers(t *testing.T) {
	dir := setuptest.Block(t, nil)
	at := func(workers, epochs int) spec.Spec {
		s := setuptest.Quick(dir)
		s.Mode, s.Model.Name, s.Batches.Size, s.Embeddings.Dim, s.Training.Epochs = "mini", "sage", 100, 4, epochs
		s.Cluster.Workers, s.Cluster.InProcess, s.Machine.Threads = workers, workers > 1, 1
		return s
	}
	s := at(4, 2)
	s.Checkpoints.Dir, s.Checkpoints.Every = t.TempDir(), 1
	trained(t, s, nil)
	for i, after := range []int{4, 2, 3} {
		r := at(after, 4)
		r.Checkpoints.Dir, r.Checkpoints.Resume = filepath.Join(t.TempDir(), "copy"), true
		if err := os.CopyFS(r.Checkpoints.Dir, os.DirFS(s.Checkpoints.Dir)); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(r.Checkpoints.Dir, "epoch-000002", "caches-3.safetensors")
		switch i {
		case 1:
			os.Remove(file)
		case 2:
			os.Truncate(file, 100)
		}
		var warned []string
		got := trained(t, r, event.Func(func(e event.Event) {
			if n, ok := e.(event.Note); ok && strings.HasPrefix(n.Text, "warning: checkpoint") {
				warned = append(warned, n.Text)
			}
		}))
		if want := trained(t, at(after, 4), nil); after == 4 && !slices.Equal(got.Loss, want.Loss) ||
			!sameLosses(got.Loss, want.Loss) {
			t.Errorf("4 workers, then %d: losses %v, want %v", after, got.Loss, want.Loss)
		}
		if len(warned) != min(i, 1) || i > 0 && !strings.Contains(warned[0], file) {
			t.Errorf("4 workers, then %d: %q", after, warned)
		}
	}
}

// TestLearntRowsInShards: the folder of a run on several workers has a file of learnt rows by each, with which it predicts
// what the run measured, and as a folder of one worker with the same rows. A file that is missing, damaged or of another
// run is named.
func TestLearntRowsInShards(t *testing.T) {
	for _, typed := range []bool{false, true} {
		s := setuptest.QuickTyped(setuptest.Typed(t), "rgcn")
		if !typed {
			s = setuptest.Quick(setuptest.Block(t, nil))
			s.Mode, s.Model.Name, s.Batches.Size, s.Embeddings.Dim = "mini", "sage", 100, 4
		}
		s.Training.Epochs, s.Cluster.Workers, s.Cluster.InProcess = 2, 3, true
		s.Output.Dir, s.Output.Overwrite = filepath.Join(t.TempDir(), "run"), true
		want := trained(t, s, nil)
		want = trained(t, s, nil) // in its place
		if list, _ := os.ReadDir(filepath.Dir(s.Output.Dir)); len(list) != 1 {
			t.Errorf("left beside the folder: %v", list)
		}
		predicted := func() (*predict.Predicted, error) {
			return predict.Run(context.Background(), predict.Options{Run: s.Output.Dir, Dataset: s.Dataset, What: "labels",
				Out: filepath.Join(t.TempDir(), "p.csv")})
		}
		p, err := predicted()
		if err != nil || math.Abs(float64(p.Accuracy["test"]-want.TestAccuracy)) > 1e-9 {
			t.Fatalf("predicted with test accuracy %v, trained %v, %v", p, want.TestAccuracy, err)
		}
		file := func(rank int) string { return filepath.Join(s.Output.Dir, setup.ShardFile(rank)) }
		whole, err := os.ReadFile(file(2))
		if err != nil {
			t.Fatal(err)
		}
		other, _ := os.ReadFile(file(1))
		for text, b := range map[string][]byte{"no such file": nil, "bytes with checksum": whole[:len(whole)/2], "with checksum": other} {
			os.Remove(file(2))
			if b != nil {
				os.WriteFile(file(2), b, 0o644)
			}
			if _, err := predicted(); !setuptest.IsMistake(err, file(2)) || !setuptest.IsMistake(err, text) ||
				!setuptest.IsMistake(err, "copy the run's folder again") {
				t.Errorf("%s: %v", text, err)
			}
		}
	}
}

// sameLosses reports whether losses differ by roundings only.
func sameLosses(a, b []report.Number) bool {
	return slices.EqualFunc(a, b, func(x, y report.Number) bool { return math.Abs(float64(x-y)) < 1e-4 })
}

// TestTypedResumeElsewhereIsRefused: another target, or another schema, is another run.
func TestTypedResumeElsewhereIsRefused(t *testing.T) {
	s := setuptest.QuickTyped(setuptest.Typed(t), "rgcn")
	s.Training.Epochs, s.Checkpoints.Dir = 1, t.TempDir()
	trained(t, s, nil)
	s.Checkpoints.Resume = true
	for want, change := range map[string]func(*spec.Spec){
		"--resume": func(s *spec.Spec) { s.Dataset = renamedTypes(t, s.Dataset) },
		"--bases":  func(s *spec.Spec) { s.Model.Bases = 2 },
		"--model":  func(s *spec.Spec) { s.Model.Name = "hsage" },
	} {
		other := s
		change(&other)
		if _, err := Train(context.Background(), other, nil); !setuptest.IsMistake(err, want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestRelationsOnWorkers: workers report what one does on pairs of relations, in both modes, go on after an interruption,
// and write the edges that were held out.
func TestRelationsOnWorkers(t *testing.T) {
	dir := setuptest.Typed(t)
	for _, mode := range []string{"full", "mini"} {
		s := setuptest.QuickTyped(dir, "rgcn")
		s.Task, s.Target, s.Mode, s.Training.Epochs, s.Machine.Threads = "link", "author writes paper; cites", mode, 4, 1
		s.Pairs.Decoder, s.Pairs.RankNegatives = "distmult", 100
		if mode == "mini" {
			s.Batches.Size = 300
		}
		one := trained(t, s, nil)
		s.Cluster.Workers, s.Cluster.InProcess, s.Output.Dir = 2, true, filepath.Join(t.TempDir(), "run")
		two := trained(t, s, nil)
		if !sameLosses(two.Loss, one.Loss) || math.Abs(float64(*two.MRR-*one.MRR)) > 0.01 {
			t.Errorf("%s: losses %v, MRR %v, of one worker %v, %v", mode, two.Loss, *two.MRR, one.Loss, *one.MRR)
		}
		of := two.Relations["author writes paper"]
		if len(two.Relations) != 2 || of == nil || of.MRR == nil || of.Hits["100"] < of.Hits["10"] {
			t.Errorf("%s: measures by relation %+v", mode, two.Relations)
		}
		for _, name := range setup.HeldOutFiles {
			if _, err := os.Stat(filepath.Join(s.Output.Dir, name)); err != nil {
				t.Error(mode, err)
			}
		}
		half := s
		half.Output.Dir, half.Checkpoints.Dir, half.Training.Epochs = "", t.TempDir(), 2
		trained(t, half, nil)
		half.Checkpoints.Resume, half.Training.Epochs = true, 4
		if got := trained(t, half, nil); !slices.Equal(got.Loss, two.Loss) || *got.MRR != *two.MRR {
			t.Errorf("%s: resumed %v, %v, want %v, %v", mode, got.Loss, *got.MRR, two.Loss, *two.MRR)
		}
	}
}

// renamedTypes copies a dataset whose relations are called otherwise.
func renamedTypes(t *testing.T, dir string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "renamed")
	if err := os.CopyFS(out, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(out, "meta.json")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b = bytes.ReplaceAll(b, []byte(`"cites"`), []byte(`"citez"`))
	b = regexp.MustCompile(`,\s*"crc32c": "[0-9a-f]{8}"\s*}\s*$`).ReplaceAll(b, []byte("}"))
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestTypedPredictions: every model predicts what its run measured, for the vertices of the target alone, however many
// workers trained it.
func TestTypedPredictions(t *testing.T) {
	dir := setuptest.Typed(t)
	for i, model := range nn.TypedModels {
		s := setuptest.QuickTyped(dir, model)
		s.Cluster.Workers, s.Cluster.InProcess, s.Output.Dir = i%3+1, i%3 > 0, filepath.Join(t.TempDir(), "run")
		want := trained(t, s, nil)
		p, err := predict.Run(context.Background(), predict.Options{Run: s.Output.Dir, Dataset: dir, What: "labels",
			Out: filepath.Join(t.TempDir(), "p.csv")})
		if err != nil {
			t.Fatal(err)
		}
		if p.Vertices != 400 || p.Target != "paper" || p.Accuracy["test"] != want.TestAccuracy {
			t.Errorf("%s: %+v, want test accuracy %v", model, p, want.TestAccuracy)
		}
		_, err = predict.Run(context.Background(), predict.Options{Run: s.Output.Dir, Dataset: renamedTypes(t, dir),
			What: "labels", Out: filepath.Join(t.TempDir(), "p.csv")})
		if !setuptest.IsMistake(err, "other types or relations") {
			t.Errorf("%s on another schema: %v", model, err)
		}
	}
}
