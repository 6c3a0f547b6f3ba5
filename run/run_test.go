package run

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"starling/dataset/generate"
	"starling/event"
	"starling/graph"
	"starling/plan"
	"starling/report"
	"starling/setup"
	"starling/setup/setuptest"
	"starling/spec"
	"starling/train"
)

func trained(t *testing.T, s spec.Spec, events event.Listener) *report.Run {
	t.Helper()
	r, err := Train(context.Background(), s, events)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// timeless is a report without what depends on the clock and the machine's state.
func timeless(r *report.Run) string {
	c := *r
	c.EpochSeconds, c.MedianEpochSeconds, c.EpochSecondsSpread, c.Seconds = nil, 0, report.Spread{}, 0
	c.PeakRSSBytes, c.DevicePeakBytes, c.MemoryPlannedBytes = 0, 0, 0
	c.Spec, c.Made = nil, nil
	b, err := json.Marshal(c)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// models are the settings that resuming could get wrong.
func models(dir string) map[string]spec.Spec {
	list := map[string]spec.Spec{}
	add := func(name string, change func(*spec.Spec)) {
		s := setuptest.Quick(dir)
		change(&s)
		list[name] = s
	}
	add("gcn", func(s *spec.Spec) {})
	add("batch norm, dropout on inputs, schedule", func(s *spec.Spec) {
		s.Model.Norm, s.Model.InputDropout, s.Optimizer.Schedule = "batch",
			spec.On, "step:3,0.5"
	})
	add("sage with patience", func(s *spec.Spec) {
		s.Model.Name, s.Training.Patience, s.Optimizer.LR, s.Model.Aggregator = "sage", 3, 0.1, "gcn"
	})
	add("gat, inductive", func(s *spec.Spec) {
		s.Model.Name, s.Model.AttentionDropout, s.Training.Inductive = "gat",
			0.3, true
	})
	add("gatv2, inductive", func(s *spec.Spec) {
		s.Model.Name, s.Model.AttentionDropout, s.Training.Inductive = "gatv2",
			0.3, true
	})
	add("max pooling", func(s *spec.Spec) { s.Model.Name = "sage-pool" })
	add("film", func(s *spec.Spec) { s.Model.Name, s.Model.Norm = "film", "layer" })
	add("deep, sgd", func(s *spec.Spec) {
		s.Model.Name, s.Model.Layers, s.Optimizer.Name, s.Optimizer.Momentum = "resgcn+", 4, "sgd", 0.9
	})
	add("bf16, seldom measured", func(s *spec.Spec) {
		s.Machine.DType, s.Training.EvalEvery,
			s.Machine.CacheFirst = "bf16", 5, "off"
	})
	add("gin in double precision", func(s *spec.Spec) {
		s.Model.Name, s.Machine.DType, s.Model.TrainEps = "gin", "f64",
			true
	})
	return list
}

// after stops a run when this number of epochs is done.
func after(epochs int, stop context.CancelFunc) event.Listener {
	return event.Func(func(e event.Event) {
		if e, ok := e.(event.Epoch); ok && e.Epoch+1 == epochs {
			stop()
		}
	})
}

// A run stopped twice and resumed each time ends as one never disturbed, bit for
// bit: report, weights and all.
func TestResumeIsExact(t *testing.T) {
	dir := setuptest.Block(t, nil)
	for name, s := range models(dir) {
		t.Run(name, func(t *testing.T) {
			tmp := t.TempDir()
			s.Output.Dir = filepath.Join(tmp, "whole")
			want := trained(t, s, nil)

			s.Output.Dir, s.Checkpoints.Dir, s.Checkpoints.Every = filepath.Join(tmp, "pieces"),
				filepath.Join(tmp, "ck"), 4
			for _, stop := range []int{2, 7} {
				ctx, cancel := context.WithCancel(context.Background())
				r, err := Train(ctx, s, after(stop, cancel))
				cancel()
				if err != nil || r.Reason != "interrupted" && want.Epochs > stop {
					t.Fatal(r, err)
				}
				s.Checkpoints.Resume, s.Machine.Threads = true, map[bool]int{true: 0,
					false: 2}[s.Machine.DType == "f64"]
			}
			s.Machine.Threads = 0
			got := trained(t, s, nil)
			if timeless(got) != timeless(want) {
				t.Errorf("resumed\n%s\nwant\n%s", timeless(got), timeless(want))
			}
			for _, file := range []string{spec.WeightsFile} {
				a, _ := os.ReadFile(filepath.Join(tmp, "whole", file))
				b, _ := os.ReadFile(filepath.Join(tmp, "pieces", file))
				if len(a) == 0 || string(a) != string(b) {
					t.Errorf("%s differs", file)
				}
			}
			if again := trained(t, s, nil); timeless(again) != timeless(want) {
				t.Error("resuming a finished run changed it")
			}
		})
	}
}

func TestSameSeedSameResult(t *testing.T) {
	dir := setuptest.Block(t, nil)
	s := setuptest.Quick(dir)
	first := trained(t, s, nil)
	if second := trained(t, s, nil); timeless(first) != timeless(second) {
		t.Error("two runs differ")
	}
	s.Machine.Threads = 1
	one := trained(t, s, nil)
	s.Machine.Threads = 2
	two := trained(t, s, nil)
	for i := range one.Loss {
		if d := math.Abs(float64(one.Loss[i] - two.Loss[i])); d > 1e-5 {
			t.Fatalf("epoch %d: 1 and 2 threads differ by %g", i, d)
		}
	}
}

func TestLearns(t *testing.T) {
	s := setuptest.Quick(setuptest.Block(t, nil))
	s.Training.Epochs = 40
	if r := trained(t, s, nil); r.TestAccuracy < 0.7 || r.Bytes.Total != 0 || r.Epochs != 40 ||
		len(r.ValAccuracy) != 40 {
		t.Errorf("%+v", r)
	}
}

// Without validation and test vertices metrics are unknown, and still all works.
func TestNoValidationSplit(t *testing.T) {
	dir := setuptest.Block(t, func(p *generate.Params) { p.Val, p.Test = 0, 0 })
	s := setuptest.Quick(dir)
	s.Checkpoints.Dir, s.Output.JSON = filepath.Join(t.TempDir(), "ck"), filepath.Join(t.TempDir(), "r.json")
	want := trained(t, s, nil)
	if err := want.Write(s.Output.JSON, nil); err != nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile(s.Output.JSON)
	if !strings.Contains(string(b), `"test_accuracy":null`) || !json.Valid(b) {
		t.Errorf("%s", b)
	}
	s.Checkpoints.Resume, s.Training.Epochs = true, 13
	if r := trained(t, s, nil); r.Epochs != 13 || r.BestEpoch != 12 {
		t.Errorf("%+v", r)
	}
	s.Training.Patience = 2
	if _, err := Train(context.Background(), s, nil); !setuptest.IsMistake(err, "--patience") {
		t.Error(err)
	}
}

// set sets options of strategies, as NAME or NAME=VALUE.
func set(s *spec.Spec, options ...string) {
	for _, option := range options {
		name, value, ok := strings.Cut(option, "=")
		if !ok {
			value = "true"
		}
		if err := s.Set(name, value); err != nil {
			panic(err)
		}
	}
}

// get is an option's value.
func get(s spec.Spec, name string) any {
	for _, o := range train.AllOptions() {
		if o.Name == name {
			return s.Settings.Get(o)
		}
	}
	panic("no option is called " + name)
}

func TestContradictoryResume(t *testing.T) {
	dir := setuptest.Block(t, nil)
	s := setuptest.Quick(dir)
	s.Training.Epochs, s.Checkpoints.Dir = 3, filepath.Join(t.TempDir(), "ck")
	trained(t, s, nil)
	if _, err := Train(context.Background(), s, nil); !setuptest.IsMistake(err, "--checkpoint-dir") {
		t.Error("checkpoints of an earlier run were not noticed:", err)
	}
	s.Checkpoints.Resume = true
	for flag, change := range map[string]func(*spec.Spec){
		"--model":         func(s *spec.Spec) { s.Model.Name = "sage" },
		"--seed":          func(s *spec.Spec) { s.Seed = 2 },
		"--lr":            func(s *spec.Spec) { s.Optimizer.LR = 0.5 },
		"--weight-decay":  func(s *spec.Spec) { s.Optimizer.WeightDecay = 0.5 },
		"--cache-first":   func(s *spec.Spec) { s.Machine.CacheFirst = "off" },
		"--eval-every":    func(s *spec.Spec) { s.Training.EvalEvery = 2 },
		"--epochs":        func(s *spec.Spec) { s.Training.Epochs = 2 },
		"another dataset": func(s *spec.Spec) { s.Dataset = setuptest.Block(t, func(p *generate.Params) { p.Seed = 5 }) },
		"no checkpoint":   func(s *spec.Spec) { s.Checkpoints.Dir = t.TempDir() },
	} {
		c := s
		change(&c)
		if _, err := Train(context.Background(), c, nil); !setuptest.IsMistake(err, flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

// The newest checkpoint is damaged: the one before it serves, with a warning, and
// the result is the same.
func TestResumePastADamagedCheckpoint(t *testing.T) {
	s := setuptest.Quick(setuptest.Block(t, nil))
	want := trained(t, s, nil)
	s.Training.Epochs, s.Checkpoints.Dir, s.Checkpoints.Every = 9, filepath.Join(t.TempDir(), "ck"), 3
	trained(t, s, nil)
	if err := os.Truncate(filepath.Join(s.Checkpoints.Dir, "epoch-000009", "model.safetensors"), 100); err != nil {
		t.Fatal(err)
	}
	var notes string
	s.Checkpoints.Resume, s.Training.Epochs = true, 12
	got := trained(t, s, event.Func(func(e event.Event) {
		if n, ok := e.(event.Note); ok {
			notes += n.Text
		}
	}))
	if timeless(got) != timeless(want) || !strings.Contains(notes, "damaged") {
		t.Errorf("%q\n%s\n%s", notes, timeless(got), timeless(want))
	}
}

// The plan's memory is what the device really uses: never less, and not much more.
func TestPlanTellsTheMemory(t *testing.T) {
	dir := setuptest.Block(t, func(p *generate.Params) { p.Nodes, p.Edges, p.Features = 10_000, 40_000, 40 })
	data, err := graph.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	list := models(dir)
	for name, s := range models(dir) {
		s.Machine.Threads, s.Model.Hidden, s.Model.Heads = 32, 64, 2
		if s.Machine.DType != "f64" { // which has one
			list[name+", on many threads"] = s
		}
	}
	for name, s := range list {
		if s.Machine.Threads == 0 {
			s = onFewThreads(s)
		}
		if err := s.Complete(); err != nil {
			t.Fatal(err)
		}
		s.ForData(&data.Meta, "auto")
		s.Training.Epochs = 2
		p, err := plan.Alone(&s, data)
		if err != nil {
			t.Fatal(err)
		}
		opt, err := s.Options(&data.Meta)
		if err != nil {
			t.Fatal(err)
		}
		dev, err := setup.NewDevice(&s, 0)
		if err != nil {
			t.Fatal(err)
		}
		r, err := train.Full(context.Background(), dev, data, opt, nil)
		if err != nil {
			t.Fatal(err)
		}
		sameMemory(t, name, p.Peak, r.PeakBytes)
		dev.Close()
	}
}
