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
	"testing"

	"starling/predict"
	"starling/report"
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
	for i, model := range []string{"rgcn", "hsage", "rgat"} {
		s := setuptest.QuickTyped(dir, model)
		s.Cluster.Workers, s.Cluster.InProcess, s.Output.Dir = i+1, i > 0, filepath.Join(t.TempDir(), "run")
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
