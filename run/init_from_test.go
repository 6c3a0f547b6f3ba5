package run

import (
	"context"
	"path/filepath"
	"testing"

	"starling/spec"
)

// TestInitFrom: a run that starts from another's weights begins where that one ended, with other
// rates, in every mode and on several workers.
func TestInitFrom(t *testing.T) {
	dir := block(t, nil)
	first := quick(dir)
	first.Training.Epochs, first.Model.Dropout, first.Training.EvalEvery, first.Output.Dir = 30, 0, 30,
		filepath.Join(t.TempDir(), "first")
	before := trained(t, first, nil)
	for name, change := range map[string]func(s *spec.Spec){
		"full":    func(s *spec.Spec) {},
		"mini":    func(s *spec.Spec) { s.Mode, s.Batches.Fanout, s.Batches.Size = "mini", "all,all", 1<<20 },
		"workers": func(s *spec.Spec) { s.Cluster.Workers, s.Cluster.InProcess = 2, true },
	} {
		s := quick(dir)
		s.Training.InitFrom, s.Optimizer.LR, s.Model.Dropout, s.Training.Epochs = first.Output.Dir, 1e-9, 0, 2
		change(&s)
		r := trained(t, s, nil)
		if last := before.Loss[len(before.Loss)-1]; r.Loss[0] > last*1.05 {
			t.Errorf("%s: the first loss is %v, that of the run before ended at %v", name, r.Loss[0], last)
		}
		if d := r.TestAccuracy - before.TestAccuracy; d < -0.02 || d > 0.02 || r.Epochs != 2 {
			t.Errorf("%s: %v after %d epochs, before %v", name, r.TestAccuracy, r.Epochs, before.TestAccuracy)
		}
	}
}

// TestInitFromOther: weights of another shape are refused, and it is said what differs.
func TestInitFromOther(t *testing.T) {
	dir := block(t, nil)
	first := quick(dir)
	first.Training.Epochs, first.Output.Dir = 1, filepath.Join(t.TempDir(), "first")
	trained(t, first, nil)
	for want, change := range map[string]func(s *spec.Spec){
		"its hidden is 16, this run's 24": func(s *spec.Spec) { s.Model.Hidden = 24 },
		"its model is gcn":                func(s *spec.Spec) { s.Model.Name = "sage" },
		"no config.json":                  func(s *spec.Spec) { s.Training.InitFrom = t.TempDir() },
	} {
		s := quick(dir)
		s.Training.InitFrom = first.Output.Dir
		change(&s)
		if _, err := Train(context.Background(), s, nil); !isMistake(err, want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// TestInitFromAndCheckpoints: a warm start that is interrupted resumes to the same end.
func TestInitFromAndCheckpoints(t *testing.T) {
	dir := block(t, nil)
	first := quick(dir)
	first.Training.Epochs, first.Output.Dir = 3, filepath.Join(t.TempDir(), "first")
	trained(t, first, nil)
	s := quick(dir)
	s.Training.InitFrom, s.Training.Epochs = first.Output.Dir, 6
	want := trained(t, s, nil)
	s.Checkpoints.Dir, s.Checkpoints.Every, s.Training.Epochs = t.TempDir(), 1, 3
	trained(t, s, nil)
	s.Checkpoints.Resume, s.Training.Epochs = true, 6
	got := trained(t, s, nil)
	for i := range want.Loss {
		if got.Loss[i] != want.Loss[i] {
			t.Fatalf("%v, undisturbed %v", got.Loss, want.Loss)
		}
	}
}
