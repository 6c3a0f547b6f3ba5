package run

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"starling/dataset/generate"
	"starling/event"
	"starling/graph"
	"starling/inspect"
	"starling/nn"
	"starling/predict"
	"starling/setup/setuptest"
	"starling/spec"
)

// taskBlock is a block model with labels of a task.
func taskBlock(t *testing.T, task string) string {
	t.Helper()
	return setuptest.Block(t, func(p *generate.Params) { p.Task, p.Signal = task, 3 })
}

var nodeTasks = map[string]string{nn.TaskMultiLabel: "micro_f1", nn.TaskRegression: "r2"}

// TestTaskFromFilesToPredictions: generate, look, train, write, predict, export.
func TestTaskFromFilesToPredictions(t *testing.T) {
	for task, metric := range nodeTasks {
		dir := taskBlock(t, task)
		s := setuptest.Quick(dir)
		s.Training.Epochs, s.Output.Dir = 60, filepath.Join(t.TempDir(), "run")
		r := trained(t, s, nil)
		if r.Task != task || r.Metric != metric || !(r.TestAccuracy > 0.5) {
			t.Errorf("%s: %s, %s is %v", task, r.Task, r.Metric, r.TestAccuracy)
		}
		text, _ := json.Marshal(r)
		var flat map[string]any
		if err := json.Unmarshal(text, &flat); err != nil || flat[metric] != float64(r.TestAccuracy) {
			t.Errorf("%s: %v in the report, want %v", metric, flat[metric], r.TestAccuracy)
		}
		if _, ok := flat["mse"]; ok != (task == nn.TaskRegression) {
			t.Errorf("%s: mse %v", task, flat["mse"])
		}
		out := filepath.Join(t.TempDir(), "labels.npy")
		p, err := predict.Run(context.Background(), predict.Options{Run: s.Output.Dir, Dataset: dir, What: "labels",
			Out: out})
		if err != nil || p.Metric != metric || math.Abs(float64(p.Accuracy["test"]-r.TestAccuracy)) > 1e-6 {
			t.Errorf("%s: %v, %+v, want %v", task, err, p, r.TestAccuracy)
		}
		to := filepath.Join(t.TempDir(), "export")
		if e, err := predict.Export(s.Output.Dir, "pyg", to, false); err != nil || e.Task != task {
			t.Errorf("%v: %+v", err, e)
		}
		for _, file := range []string{filepath.Join(s.Output.Dir, spec.ConfigFile),
			filepath.Join(to, spec.ConfigFile)} {
			if b, _ := os.ReadFile(file); !strings.Contains(string(b), `"task": "`+task+`"`) {
				t.Errorf("%s has no task", file)
			}
		}
		i, err := inspect.Describe(context.Background(), dir, true, true)
		if err != nil || i.Estimate == nil || (i.Targets != nil) != (task == nn.TaskRegression) ||
			!strings.Contains(i.String(), "unlabelled") {
			t.Errorf("%v: %v", err, i)
		}
	}
}

// TestBF16IsPredictedAsMeasured: what a run in bfloat16 measured is what its model predicts, since rows are stored as
// they were; over parts too, where workers round the sums of theirs.
func TestBF16IsPredictedAsMeasured(t *testing.T) {
	dir, parts := taskBlock(t, nn.TaskRegression), filepath.Join(t.TempDir(), "parts")
	cut := spec.DefaultPartition()
	cut.Parts, cut.Out, cut.Method = 2, parts, "chunk"
	if _, err := Partition(context.Background(), dir, cut, event.All()); err != nil {
		t.Fatal(err)
	}
	for _, model := range []string{"sage", "gcn"} {
		s := setuptest.Quick(dir)
		s.Model.Name, s.Model.Hidden, s.Machine.DType, s.Output.Dir = model, 8, "bf16", filepath.Join(t.TempDir(), "run")
		r := trained(t, s, nil)
		for data, tolerance := range map[string]float64{dir: 1e-6, parts: 1e-3} {
			p, err := predict.Run(context.Background(), predict.Options{Run: s.Output.Dir, Dataset: data, What: "labels",
				Out: filepath.Join(t.TempDir(), "labels.npy"), InProcess: true})
			if err != nil || math.Abs(float64(p.Accuracy["test"]-r.TestAccuracy)) > tolerance {
				t.Errorf("%s on %s: %v, %+v, want %v", model, filepath.Base(data), err, p, r.TestAccuracy)
			}
		}
	}
}

// TestTaskResumesExactly: an interrupted run ends as the undisturbed one, on one worker
// and on several, and several equal one.
func TestTaskResumesExactly(t *testing.T) {
	for task := range nodeTasks {
		dir := taskBlock(t, task)
		s := setuptest.Quick(dir)
		s.Training.Epochs, s.Machine.DType, s.Model.Dropout = 6, "f64", 0.3
		want := trained(t, s, nil)
		for _, workers := range []int{1, 3} {
			s := s
			s.Cluster.Workers, s.Cluster.InProcess, s.Strategy = workers, workers > 1, "default"
			s.Checkpoints.Dir, s.Checkpoints.Every, s.Training.Epochs = t.TempDir(), 1, 3
			trained(t, s, nil)
			s.Checkpoints.Resume, s.Training.Epochs = true, 6
			got := trained(t, s, nil)
			for i, l := range want.Loss {
				if math.Abs(float64(got.Loss[i]-l)) > 1e-9 {
					t.Fatalf("%s, %d workers: loss %d is %v, want %v", task, workers, i, got.Loss[i], l)
				}
			}
			if math.Abs(float64(got.TestAccuracy-want.TestAccuracy)) > 1e-9 || got.Metric != want.Metric ||
				got.Bytes.Total != got.Bytes.Planned {
				t.Errorf("%s, %d workers: %s %v, want %v; sent %d, planned %d", task, workers, got.Metric,
					got.TestAccuracy, want.TestAccuracy, got.Bytes.Total, got.Bytes.Planned)
			}
			s.Task = map[string]string{nn.TaskMultiLabel: nn.TaskRegression, nn.TaskRegression: nn.TaskMultiLabel}[task]
			if _, err := Train(context.Background(), s, event.All()); !setuptest.IsMistake(err, "--task") {
				t.Errorf("another task: %v", err)
			}
		}
	}
}

// TestTaskDryRun: what auto is, and the task's name in the spec.
func TestTaskDryRun(t *testing.T) {
	for _, task := range []string{nn.TaskClassify, nn.TaskMultiLabel, nn.TaskRegression} {
		s, plan, err := DryRun(setuptest.Quick(taskBlock(t, task)), nil)
		if err != nil || s.Task != task || !strings.Contains(s.String(), "task: "+task) || plan.Needed() == 0 {
			t.Errorf("%s: %v, %s", task, err, s.Task)
		}
	}
	s := setuptest.Quick(taskBlock(t, nn.TaskClassify))
	for _, bad := range []string{"", "multi-label", nn.TaskRegression} {
		s.Task = bad
		if _, _, err := DryRun(s, nil); !setuptest.IsMistake(err, "--task") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestBadTargets: a dataset written by hand with numbers or marks that cannot be.
func TestBadTargets(t *testing.T) {
	for task, c := range map[string]struct {
		change func(b []byte) // the last label
		want   string
	}{
		nn.TaskRegression: {func(b []byte) { copy(b[len(b)-4:], "\x00\x00\xc0\x7f") }, "no label"},
		nn.TaskMultiLabel: {func(b []byte) { b[len(b)-1] = 7 }, "0 or 1"},
	} {
		dir := taskBlock(t, task)
		file := filepath.Join(dir, "labels.npy")
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c.change(b)
		if err := os.WriteFile(file, b, 0o644); err != nil {
			t.Fatal(err)
		}
		withoutSums(t, dir)
		_, err = Train(context.Background(), setuptest.Quick(dir), event.All())
		if !errors.Is(err, graph.ErrInput) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", task, err)
		}
	}
}

// withoutSums has meta.json as one writes it by hand.
func withoutSums(t *testing.T, dir string) {
	t.Helper()
	path := filepath.Join(dir, "meta.json")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	delete(m, "crc32c")
	delete(m, "arrays")
	delete(m, "checksum")
	if b, err = json.Marshal(m); err == nil {
		err = os.WriteFile(path, b, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
