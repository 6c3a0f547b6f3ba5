package run

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"starling/dataset/generate"
	"starling/event"
	"starling/graph"
	"starling/report"
	"starling/spec"
	"starling/train"
)

// block writes a small block model and returns its folder.
func block(t *testing.T, change func(*generate.Params)) string {
	t.Helper()
	p := generate.DefaultParams()
	p.Nodes, p.Edges, p.Features, p.Classes = 300, 2400, 12, 4
	if change != nil {
		change(&p)
	}
	dir := filepath.Join(t.TempDir(), "block")
	if _, err := generate.Dataset("sbm", p, dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// quick is a spec small enough for tests.
func quick(dir string) spec.Spec {
	s := spec.Default()
	s.Dataset, s.Model.Layers, s.Model.Hidden, s.Training.Epochs = dir, 2, 16, 12
	return s
}

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
		s := quick(dir)
		change(&s)
		list[name] = s
	}
	add("gcn", func(s *spec.Spec) {})
	add("batch norm, dropout on inputs, schedule", func(s *spec.Spec) {
		s.Model.Norm, s.Model.InputDropout, s.Optimizer.Schedule = "batch",
			true, "step:3,0.5"
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

// after stops a run when so many epochs are done.
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
	dir := block(t, nil)
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
	dir := block(t, nil)
	s := quick(dir)
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
	s := quick(block(t, nil))
	s.Training.Epochs = 40
	if r := trained(t, s, nil); r.TestAccuracy < 0.7 || r.Bytes.Total != 0 || r.Epochs != 40 ||
		len(r.ValAccuracy) != 40 {
		t.Errorf("%+v", r)
	}
}

// Without validation and test vertices metrics are unknown, and still all works.
func TestNoValidationSplit(t *testing.T) {
	dir := block(t, func(p *generate.Params) { p.Val, p.Test = 0, 0 })
	s := quick(dir)
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
	if _, err := Train(context.Background(), s, nil); !isMistake(err, "--patience") {
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

func isMistake(err error, field string) bool {
	return errors.Is(err, graph.ErrInput) && strings.Contains(err.Error(), field)
}

func TestContradictoryResume(t *testing.T) {
	dir := block(t, nil)
	s := quick(dir)
	s.Training.Epochs, s.Checkpoints.Dir = 3, filepath.Join(t.TempDir(), "ck")
	trained(t, s, nil)
	if _, err := Train(context.Background(), s, nil); !isMistake(err, "--checkpoint-dir") {
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
		"another dataset": func(s *spec.Spec) { s.Dataset = block(t, func(p *generate.Params) { p.Seed = 5 }) },
		"no checkpoint":   func(s *spec.Spec) { s.Checkpoints.Dir = t.TempDir() },
	} {
		c := s
		change(&c)
		if _, err := Train(context.Background(), c, nil); !isMistake(err, flag) {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

// The newest checkpoint is damaged: the one before it serves, with a warning, and
// the result is the same.
func TestResumePastADamagedCheckpoint(t *testing.T) {
	s := quick(block(t, nil))
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
	dir := block(t, func(p *generate.Params) { p.Nodes, p.Edges, p.Features = 10_000, 40_000, 40 })
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
		p, err := plan(&s, data)
		if err != nil {
			t.Fatal(err)
		}
		opt, err := s.Options(&data.Meta)
		if err != nil {
			t.Fatal(err)
		}
		dev, err := newDevice(&s, 0)
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

func TestDoesNotFit(t *testing.T) {
	data, err := graph.Open(block(t, func(p *generate.Params) { p.Nodes, p.Edges = 20_000, 40_000 }))
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	s := quick("")
	s.Model.Hidden = 128
	if err := s.Complete(); err != nil {
		t.Fatal(err)
	}
	s.ForData(&data.Meta, "auto")
	p, err := plan(&s, data)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		free int64
		want string
	}{
		{p.Needed() - 1, "would fit: --cache-first off"},
		{p.Processes + (p.Needed()-p.Processes)/2, "would fit: --cache-first off --dtype bf16 --hidden 64 ("},
		{p.Needed() / 100, "nothing smaller"},
	} {
		if err := fitsMemory(&s, p, data, c.free); !isMistake(err, "memory") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d free: %v", c.free, err)
		}
	}
	if err := fitsMemory(&s, p, data, p.Needed()); err != nil {
		t.Error(err)
	}
	s.Machine.MemoryCheck = false
	if err := fitsMemory(&s, p, data, 1); err != nil {
		t.Error(err)
	}
	s.Model.Hidden, s.Model.Layers = 1<<16, 1000 // more than there are addresses for
	if p, err := plan(&s, data); err != nil || !p.AtLeast || p.Needed() < mostAllocated() {
		t.Error(p, err)
	}
}

// TestRefusedUntouched: a model that is far too large is refused, and smaller ones are
// found, without as much memory as any of them has.
func TestRefusedUntouched(t *testing.T) {
	data, err := graph.Open(block(t, func(p *generate.Params) { p.Nodes, p.Edges = 2_000, 8_000 }))
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	s := quick("")
	s.Machine.MemoryCheck, s.Model.Hidden, s.Model.Layers, s.Machine.CacheFirst = true, 16384, 3, "off"
	if err := s.Complete(); err != nil {
		t.Fatal(err)
	}
	s.ForData(&data.Meta, "auto")
	before := heapTaken()
	p, err := plan(&s, data)
	if err != nil {
		t.Fatal(err)
	}
	weights := int64(16384 * 16384)
	if p.Needed() < 16*weights {
		t.Errorf("planned %d for %d weights", p.Needed(), weights)
	}
	if err := fitsMemory(&s, p, data, p.Needed()/10); !isMistake(err, "memory") ||
		!strings.Contains(err.Error(), "would fit: ") {
		t.Error(err)
	}
	if took := heapTaken() - before; took > weights {
		t.Errorf("to refuse %d weights took %d bytes", weights, took)
	}
}

// heapTaken is the bytes of all that was ever made on the heap.
func heapTaken() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.TotalAlloc)
}
