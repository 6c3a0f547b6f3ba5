package run

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"starling/event"
	"starling/graph"
	"starling/report"
	"starling/spec"
)

// TestPlacesThatCannotBeWritten: that a result cannot be written is said before the first
// epoch, not after the last.
func TestPlacesThatCannotBeWritten(t *testing.T) {
	if _, err := os.Stat("/sys/kernel"); err != nil {
		t.Skip("there is no /sys, where no user can make files: ", err)
	}
	dir := block(t, nil)
	for flag, change := range map[string]func(*spec.Spec){
		"--json":           func(s *spec.Spec) { s.Output.JSON = "/sys/kernel/x.json" },
		"--trace":          func(s *spec.Spec) { s.Output.Trace = "/sys/kernel/x.json" },
		"--events":         func(s *spec.Spec) { s.Output.Events = "/sys/kernel/x.json" },
		"--out":            func(s *spec.Spec) { s.Output.Dir = "/sys/kernel/x" },
		"--checkpoint-dir": func(s *spec.Spec) { s.Checkpoints.Dir = "/sys/kernel/x/y" },
	} {
		s := quick(dir)
		change(&s)
		_, err := Train(t.Context(), s, event.Func(func(e event.Event) {
			if _, ok := e.(event.Started); ok {
				t.Error(flag, ": training began")
			}
		}))
		var in *graph.InputError
		if !errors.As(err, &in) || in.Field != flag {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

// TestLinkToNowhere: a link is written through, so that what it leads to has to have a folder.
func TestLinkToNowhere(t *testing.T) {
	link := filepath.Join(t.TempDir(), "x.json")
	if err := os.Symlink("absent/x.json", link); err != nil {
		t.Fatal(err)
	}
	if err := spec.CheckFile("--json", link); !errors.Is(err, graph.ErrInput) {
		t.Error(err)
	}
	if err := os.Mkdir(filepath.Join(filepath.Dir(link), "absent"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := spec.CheckFile("--json", link); err != nil {
		t.Error(err)
	}
}

// TestCheckpointsOfTwoRuns: while one run writes checkpoints another is kept out, on one
// worker or many, and afterwards it is not.
func TestCheckpointsOfTwoRuns(t *testing.T) {
	s := quick(block(t, nil))
	s.Checkpoints.Dir, s.Checkpoints.ResumeIfAny = filepath.Join(t.TempDir(), "checkpoints"), true
	for _, workers := range []int{1, 2} {
		s.Cluster.Workers, s.Cluster.InProcess, s.Training.Epochs = workers, workers > 1, s.Training.Epochs+2
		other := s
		trained(t, s, event.Func(func(e event.Event) {
			if _, ok := e.(event.Started); !ok {
				return
			}
			_, err := Train(t.Context(), other, nil)
			var in *graph.InputError
			if !errors.As(err, &in) || in.Field != "--checkpoint-dir" {
				t.Errorf("%d workers: the other run says: %v", workers, err)
			}
		}))
	}
}

// TestEventsWithoutReader: a run that waits for the reader of a pipe says so, and can be stopped.
func TestEventsWithoutReader(t *testing.T) {
	s := quick(block(t, nil))
	s.Output.Events = filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(s.Output.Events, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	_, err := Train(ctx, s, event.Func(func(e event.Event) {
		if n, ok := e.(event.Note); ok && strings.Contains(n.Text, s.Output.Events) {
			stop()
		}
	}))
	if !errors.Is(err, report.ErrInterrupted) {
		t.Error(err)
	}
}

// TestReaderOfEventsLeaves: a run does not wait for the reader of a pipe that has gone; it
// ends with its report, and says that not all was written.
func TestReaderOfEventsLeaves(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	first := make(chan string)
	go func() {
		f, err := os.Open(pipe)
		if err != nil {
			t.Error(err)
		}
		line, _ := bufio.NewReader(f).ReadString('\n')
		f.Close()
		first <- line
	}()
	s := quick(block(t, nil))
	// more than a pipe holds
	s.Model.Layers, s.Training.Epochs, s.Training.EvalEvery, s.Output.Events = 1, 500, 500, pipe
	r, err := Train(t.Context(), s, event.Func(func(event.Event) {}))
	if !errors.Is(err, syscall.EPIPE) || r == nil || len(r.Loss) != s.Training.Epochs {
		t.Error("the pipe was not read to the end, and the run says: ", err)
	}
	if _, err := event.Decode([]byte(<-first)); err != nil {
		t.Error(err)
	}
}

// TestInterruptedReading: an interruption ends waits for a model, and for a reader of
// predictions: here of pipes without a process at the other end.
func TestInterruptedReading(t *testing.T) {
	dir := block(t, nil)
	s := quick(dir)
	s.Output.Dir = filepath.Join(t.TempDir(), "run")
	trained(t, s, nil)
	pipe := func(path string) string {
		os.Remove(path)
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { // lets the one who waits go
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				t.Error(err)
			}
			f.Close()
		})
		return path
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	o := PredictOptions{Run: s.Output.Dir, Dataset: dir, What: "labels",
		Out: pipe(filepath.Join(t.TempDir(), "labels.npy"))}
	if _, err := Predict(ctx, o); !errors.Is(err, report.ErrInterrupted) {
		t.Error(err)
	}
	pipe(filepath.Join(s.Output.Dir, "model.safetensors"))
	serve := DefaultServe()
	serve.Run, serve.Dataset, serve.Listen = s.Output.Dir, dir, "127.0.0.1:0"
	if err := Serve(ctx, serve, nil); !errors.Is(err, report.ErrInterrupted) {
		t.Error(err)
	}
}
