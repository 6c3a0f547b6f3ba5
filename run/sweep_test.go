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
	"starling/report"
	"starling/setup/setuptest"
	"starling/spec"
)

func sweeping(dir string, seeds int, over ...string) spec.Sweep {
	return spec.Sweep{Spec: setuptest.Quick(dir), Seeds: seeds, Over: over}
}

// TestSeeds: the mean and the deviation over seeds agree with single runs.
func TestSeeds(t *testing.T) {
	s := sweeping(setuptest.Block(t, nil), 3)
	got, err := Sweep(context.Background(), s, nil)
	if err != nil || len(got.Rows) != 1 || len(got.Rows[0].Runs) != 3 {
		t.Fatalf("%v %+v", err, got)
	}
	var sum, squares float64
	for i := range 3 {
		one := s.Spec
		one.Seed += uint64(i)
		r := trained(t, one, nil)
		if r.TestAccuracy != got.Rows[0].Runs[i].TestAccuracy || got.Rows[0].Seeds[i] != one.Seed {
			t.Errorf("seed %d: %v, alone %v", one.Seed, got.Rows[0].Runs[i].TestAccuracy, r.TestAccuracy)
		}
		sum += float64(r.TestAccuracy)
		squares += float64(r.TestAccuracy * r.TestAccuracy)
	}
	mean := sum / 3
	deviation := math.Sqrt(max(squares-3*mean*mean, 0) / 2)
	if d := math.Abs(float64(got.Rows[0].Test) - mean); d > 1e-9 {
		t.Errorf("mean %v, want %v", got.Rows[0].Test, mean)
	}
	if d := math.Abs(float64(got.Rows[0].Spread) - deviation); d > 1e-6 {
		t.Errorf("deviation %v, want %v", got.Rows[0].Spread, deviation)
	}
	if !strings.Contains(got.String(), " ± ") {
		t.Error(got)
	}
}

// TestSweep: every combination is a row; on several workers the graph is cut once.
func TestSweep(t *testing.T) {
	s := sweeping(setuptest.Block(t, nil), 2, "lr=0.1,0.01 hidden=8,16", "model=gcn,sage")
	s.Cluster.Workers, s.Cluster.InProcess, s.Training.Epochs = 2, true, 3
	cuts := 0
	got, err := Sweep(context.Background(), s, event.Func(func(e event.Event) {
		if n, ok := e.(event.Note); ok && strings.Contains(n.Text, "cut into") {
			cuts++
		}
	}))
	if err != nil || got.Err() != nil || len(got.Rows) != 8 || cuts != 1 {
		t.Fatalf("%v, %d cuts\n%v", err, cuts, got)
	}
	if r := got.Rows[5]; r.Label() != "lr=0.01 hidden=8 model=sage" || r.Runs[1].Model != "sage" || r.Runs[1].Workers != 2 {
		t.Errorf("%+v", r)
	}
	for i, r := range got.Rows {
		if r.Val > got.Rows[got.Best].Val {
			t.Errorf("row %d is better than the best, %d", i, got.Best)
		}
	}
}

// TestSweepResumes: runs that have ended are read, others are trained, and other settings refused.
func TestSweepResumes(t *testing.T) {
	s := sweeping(setuptest.Block(t, nil), 2, "lr=0.1,0.01")
	s.Checkpoints.Dir = t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	ended := 0
	part, err := Sweep(ctx, s, event.Func(func(e event.Event) {
		if _, ok := e.(event.Done); ok {
			if ended++; ended == 3 {
				cancel()
			}
		}
	}))
	if !errors.Is(err, report.ErrInterrupted) || len(part.Rows) != 2 || len(part.Rows[1].Runs) != 1 {
		t.Fatalf("%v\n%v", err, part)
	}
	s.Checkpoints.Resume = true
	trainedAgain := 0
	whole, err := Sweep(context.Background(), s, event.Func(func(e event.Event) {
		if _, ok := e.(event.Done); ok {
			trainedAgain++
		}
	}))
	if err != nil || whole.Err() != nil || trainedAgain != 1 {
		t.Fatalf("%v, %d runs trained\n%v", err, trainedAgain, whole)
	}
	s.Checkpoints.Dir, s.Checkpoints.Resume = "", false
	fresh, err := Sweep(context.Background(), s, nil)
	if err != nil || fresh.Rows[0].Test != whole.Rows[0].Test || fresh.Rows[1].Test != whole.Rows[1].Test {
		t.Errorf("%v\n%v\nundisturbed\n%v", err, whole, fresh)
	}
}

// TestSweepRefusesOtherRuns: a result of other settings or data is not taken for this sweep's.
func TestSweepRefusesOtherRuns(t *testing.T) {
	s := sweeping(setuptest.Block(t, nil), 1, "lr=0.1")
	s.Checkpoints.Dir = t.TempDir()
	if _, err := Sweep(context.Background(), s, nil); err != nil {
		t.Fatal(err)
	}
	s.Checkpoints.Resume = true
	for want, change := range map[string]func(s *spec.Sweep){
		"--hidden":     func(s *spec.Sweep) { s.Model.Hidden = 24 },
		"--epochs":     func(s *spec.Sweep) { s.Training.Epochs++ },
		"another data": func(s *spec.Sweep) { s.Dataset = setuptest.Block(t, func(p *generate.Params) { p.Seed = 77 }) },
	} {
		other := s
		change(&other)
		got, err := Sweep(context.Background(), other, nil)
		if err != nil || got.Err() == nil || !strings.Contains(got.Rows[0].Error, want) {
			t.Errorf("%s: %v %v", want, err, got)
		}
	}
	name := filepath.Join(s.Checkpoints.Dir, "lr=0.1,seed=1.json")
	if err := os.WriteFile(name, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := Sweep(context.Background(), s, nil); err != nil || got.Err() == nil {
		t.Errorf("a damaged result: %v %v", err, got)
	}
}

// TestSweepMistakes are named before anything runs.
func TestSweepMistakes(t *testing.T) {
	dir := setuptest.Block(t, nil)
	for text, want := range map[string]string{
		"lr":               "lr=0.1,0.01",
		"lrr=1,2":          "did you mean lr?",
		"lr=0.1 lr=0.2":    "twice",
		"lr=fast":          "found lr=fast, want a number",
		"lr=0.1,-5":        "lr=-5",
		"json=a,b":         "a setting of training",
		"layers=2,3,x":     "found layers=x, want a whole number",
		"model=gcn,gcnn":   "did you mean gcn",
		"dropout=0.5,0,2 ": "dropout=2",
	} {
		if _, err := Sweep(context.Background(), sweeping(dir, 1, text), nil); !setuptest.IsMistake(err, want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := Sweep(context.Background(), sweeping(dir, 0), nil); !setuptest.IsMistake(err, "--seeds") {
		t.Error(err)
	}
}
