package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"starling/event"
	"starling/report"
	"starling/setup/setuptest"
	"starling/spec"
)

func tuning9(t *testing.T, data string, over ...string) spec.Tune {
	s := spec.Tune{Spec: setuptest.Quick(data), Trials: 7, Parallel: 2, Reduction: 3, Over: over}
	s.Training.Epochs, s.Training.EvalEvery = 9, 1
	s.Checkpoints.Dir = filepath.Join(t.TempDir(), "search")
	return s
}

func none(string) bool { return false }

// untimed is a result without its seconds.
func untimed(r *report.Tune) *report.Tune {
	for i := range r.Trials {
		r.Trials[i].Seconds = 0
	}
	return r
}

// TestTuneFindsWhatIsPlanted: the rate that learns wins over those that do not, is the only one trained to the end, and
// has what a run of its settings alone has, though it went on from checkpoints.
func TestTuneFindsWhatIsPlanted(t *testing.T) {
	s := tuning9(t, setuptest.Block(t, nil), "lr=1e-9,1e-8,0.05", "hidden=8..16")
	got, err := Tune(context.Background(), s, none, nil)
	if err != nil || len(got.Trials) != 7 || !slices.Contains(got.Trials[0].Settings, "lr=0.05") || got.Trials[0].Epochs != 9 {
		t.Fatalf("%v %+v", err, got)
	}
	early := 0
	for _, x := range got.Trials {
		if x.Epochs == 1 {
			early++
		}
	}
	if early < 3 {
		t.Errorf("%d of 7 trials were stopped after an epoch", early)
	}
	c := spec.Tune{Spec: s.Spec}
	c.Checkpoints = spec.Default().Checkpoints
	space, err := s.Dimensions(false, none)
	if err != nil {
		t.Fatal(err)
	}
	one, err := drawTrial(&c, space, got.Trials[0].Number)
	if err != nil {
		t.Fatal(err)
	}
	alone := trained(t, one.Spec, nil)
	if alone.BestValAccuracy != got.Trials[0].Val || alone.TestAccuracy != got.Trials[0].Test {
		t.Errorf("%+v, alone %v and %v", got.Trials[0], alone.BestValAccuracy, alone.TestAccuracy)
	}
	if text := got.String(); !strings.Contains(text, "best: --lr=0.05 --hidden=") || !strings.Contains(got.HTML(), "lr=0.05") {
		t.Error(text)
	}
}

// TestTuneGoesOn: a search that is stopped anywhere, and begun again by the same settings, ends in the same table.
func TestTuneGoesOn(t *testing.T) {
	data := setuptest.Block(t, nil)
	over := []string{"lr=1e-4..1e-1", "model=gcn,sage"}
	want, err := Tune(context.Background(), tuning9(t, data, over...), none, nil)
	if err != nil {
		t.Fatal(err)
	}
	for stop := 1; stop < 8; stop += 3 {
		s := tuning9(t, data, over...)
		ctx, cancel := context.WithCancel(context.Background())
		notes, last := 0, ""
		_, err := Tune(ctx, s, none, event.Func(func(e event.Event) {
			if n, ok := e.(event.Note); ok {
				if notes++; notes == stop {
					last, _, _ = strings.Cut(strings.Replace(n.Text, " ", "-", 1), ",")
					cancel()
				}
			}
		}))
		cancel()
		if !errors.Is(err, ErrInterrupted) {
			t.Fatalf("stopped after %d: %v", stop, err)
		}
		if kept, _ := filepath.Glob(filepath.Join(s.Checkpoints.Dir, last+"-*.json")); len(kept) == 0 {
			t.Errorf("stopped after %d: no result of %s is kept", stop, last)
		} else if err := os.Remove(kept[len(kept)-1]); err != nil { // as if killed before it was written
			t.Fatal(err)
		}
		got, err := Tune(context.Background(), s, none, nil)
		if err != nil || !reflect.DeepEqual(untimed(got), untimed(want)) {
			t.Errorf("stopped after %d: %v\n%v\nwant\n%v", stop, err, got, want)
		}
		s.Seed++
		if _, err := Tune(context.Background(), s, none, nil); !setuptest.IsMistake(err, "which has another search") {
			t.Errorf("another seed: %v", err)
		}
	}
}

// TestTuneMistakes: a mistake in the space is one sentence, and nothing is written.
func TestTuneMistakes(t *testing.T) {
	data := setuptest.Block(t, nil)
	file := filepath.Join(t.TempDir(), "space.yaml")
	if err := os.WriteFile(file, []byte("lr: 1e-3..1e-1\nhiden: [8, 16]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for want, set := range map[string]func(*spec.Tune){
		"hidden":                func(s *spec.Tune) { s.Over = []string{"hiden=8,16"} },
		"lr=1e-1..1e-3":         func(s *spec.Tune) { s.Over = []string{"lr=1e-1..1e-3"} },
		"lr twice":              func(s *spec.Tune) { s.Over = []string{"lr=1e-3..1e-1", "lr=1,2"} },
		"lr":                    func(s *spec.Tune) { s.Over = []string{"lr=fast"} },
		"dropout":               func(s *spec.Tune) { s.Over = []string{"dropout="} },
		"give --epochs to all":  func(s *spec.Tune) { s.Over = []string{"epochs=3,9"} },
		"one of --space and":    func(s *spec.Tune) { s.Over, s.Space = []string{"lr=1,2"}, file },
		"--space " + file:       func(s *spec.Tune) { s.Space = file },
		"want 1 to 10000":       func(s *spec.Tune) { s.Trials = 0 },
		"no-such-space.yaml":    func(s *spec.Tune) { s.Space = "no-such-space.yaml" },
		"--parallel":            func(s *spec.Tune) { s.Parallel = 0 },
		"1 (no halving) to 100": func(s *spec.Tune) { s.Reduction = 0 },
		"--weight-decay":        func(s *spec.Tune) { s.Optimizer.WeightDecay = -1 },
		"it is for --task link": func(s *spec.Tune) { s.Pairs.ValCandidates = "c.npz" },
	} {
		s := tuning9(t, data)
		set(&s)
		_, err := Tune(context.Background(), s, none, nil)
		if !setuptest.IsMistake(err, want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", want, err)
		}
		if _, err := os.Stat(s.Checkpoints.Dir); err == nil {
			t.Errorf("%s: a folder is written", want)
		}
	}
}

// TestTuneFailedTrial: settings that do not fit each other are a row, and the others go on.
func TestTuneFailedTrial(t *testing.T) {
	s := tuning9(t, setuptest.Block(t, nil), "heads=2,3", "hidden=8")
	s.Model.Name = "gat"
	got, err := Tune(context.Background(), s, none, nil)
	if err != nil || got.Trials[0].Epochs != 9 || !slices.Contains(got.Trials[0].Settings, "heads=2") {
		t.Fatalf("%v %+v", err, got)
	}
	if last := got.Trials[len(got.Trials)-1]; !strings.Contains(last.Error, "--hidden") {
		t.Errorf("%+v", last)
	}
}
