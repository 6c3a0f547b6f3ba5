package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"starling/event"
	"starling/spec"
)

// TestUnsaved: what of a run cannot be written when it comes to its end keeps nothing else from
// being written, and is said, also after Ctrl-C.
func TestUnsaved(t *testing.T) {
	data := block(t, nil)
	for name, change := range map[string]func(*spec.Spec){
		"one worker":  func(*spec.Spec) {},
		"two workers": func(s *spec.Spec) { s.Cluster.Workers, s.Cluster.InProcess = 2, true },
		"pairs":       func(s *spec.Spec) { s.Task = "link" },
	} {
		for _, lost := range []string{"--checkpoint-dir", "--out"} {
			for _, interrupted := range []bool{false, true} {
				t.Run(strings.Join([]string{name, lost, map[bool]string{true: "interrupted"}[interrupted]}, " "),
					func(t *testing.T) {
						s := quick(data)
						tmp, home := t.TempDir(), t.TempDir()
						t.Setenv("HOME", home)
						s.Checkpoints.Dir, s.Checkpoints.Every, s.Output.Dir = filepath.Join(tmp, "ck"), 1000,
							filepath.Join(tmp, "runs", "run")
						change(&s)
						if err := os.MkdirAll(filepath.Dir(s.Output.Dir), 0o700); err != nil {
							t.Fatal(err)
						}
						gone := map[string]string{"--checkpoint-dir": s.Checkpoints.Dir,
							"--out": filepath.Dir(s.Output.Dir)}[lost]
						ctx, stop := context.WithCancel(t.Context())
						last, reason := s.Training.Epochs, "finished"
						if interrupted {
							last, reason = s.Training.Epochs-3, "interrupted"
						}
						r, err := Train(ctx, s, after(last, func() { // a file is where the folder was
							if err := errors.Join(os.RemoveAll(gone), os.WriteFile(gone, nil, 0o600)); err != nil {
								t.Error(err)
							}
							if interrupted {
								stop()
							}
						}))
						stop()
						if lost == "--out" {
							elsewhere, _ := filepath.Glob(filepath.Join(home, "run-of-*", spec.WeightsFile))
							if len(elsewhere) != 1 || !strings.Contains(err.Error(), filepath.Dir(elsewhere[0])) {
								t.Errorf("the weights are in %q, and the error says %v", elsewhere, err)
							}
						}
						if err == nil || r == nil || r.Reason != reason || len(r.Loss) < last {
							t.Fatalf("report %v, error %v", r, err)
						}
						if _, err := os.Stat(filepath.Join(s.Output.Dir, spec.WeightsFile)); lost != "--out" &&
							err != nil {
							t.Error(err)
						}
						if saved, _ := filepath.Glob(filepath.Join(s.Checkpoints.Dir, "epoch-*")); lost == "--out" &&
							len(saved) == 0 {
							t.Error("there is no checkpoint")
						}
					})
			}
		}
	}
}

// TestUnsavedMidway: a checkpoint that cannot be written while there is more to train ends the
// run.
func TestUnsavedMidway(t *testing.T) {
	for _, workers := range []int{1, 2} {
		s := quick(block(t, nil))
		s.Training.Epochs, s.Checkpoints.Dir, s.Checkpoints.Every = 1000000, filepath.Join(t.TempDir(), "ck"), 3
		s.Cluster.Workers, s.Cluster.InProcess = workers, workers > 1
		r, err := Train(t.Context(), s, event.Func(func(e event.Event) {
			if e, ok := e.(event.Epoch); ok && e.Epoch == 1 {
				if err := errors.Join(os.RemoveAll(s.Checkpoints.Dir),
					os.WriteFile(s.Checkpoints.Dir, nil, 0o600)); err != nil {
					t.Error(err)
				}
			}
		}))
		if err == nil || r != nil || !strings.Contains(err.Error(), "checkpoint") {
			t.Errorf("%d workers: report %v, error %v", workers, r, err)
		}
	}
}
