package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"starling/internal/testdeadline"
)

// A file of the data that is cut off while it is mapped and read, in Go, in assembly, on any thread, in this process or
// in a worker's, ends the run with status 1 and a line that names it. Checkpoints are there, and the run goes on when
// the file is.
func TestDataIsCutOffWhileTraining(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	works(t, dir, "generate", "sbm", "--nodes", "5000", "--edges", "100000", "--features", "64", "--classes", "4", "--out", "graph", "--quiet")
	works(t, dir, "partition", "graph", "--parts", "2", "--out", "parts", "--quiet")
	for mode, c := range map[string]struct {
		data, file string
		args       []string
	}{
		"full":       {"graph", "features.npy", []string{"--cache-first", "off"}},
		"attention":  {"graph", "features.npy", []string{"--cache-first", "off", "--model", "gat"}},
		"cached":     {"graph", "indices.npy", []string{"--cache-first", "on"}},
		"mini":       {"graph", "features.npy", []string{"--mode", "mini"}},
		"sampling":   {"graph", "indptr.npy", []string{"--mode", "mini"}},
		"in process": {"parts", "part0/features.npy", []string{"--cache-first", "off", "--in-process"}},
		"processes":  {"parts", "part1/features.npy", []string{"--cache-first", "off"}},
		"one try":    {"parts", "part1/features.npy", []string{"--cache-first", "off", "--on-failure", "stop"}},
	} {
		t.Run(mode, func(t *testing.T) {
			path := filepath.Join(dir, c.data, c.file)
			whole, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			ck := strings.ReplaceAll(mode, " ", "-")
			args := append([]string{"train", c.data, "--checkpoint-dir", ck, "--checkpoint-every", "1"}, c.args...)
			run := start(t, dir, append(args, "--epochs", "1000000")...)
			run.until(t, `^epoch +([3-9]|\d\d)`)
			testdeadline.Do(t, time.Minute, "the first checkpoint", func() { // written beside the epochs
				for len(checkpoints(dir, ck)) == 0 {
					time.Sleep(10 * time.Millisecond)
				}
			})
			if err := os.Truncate(path, 4096); err != nil {
				t.Fatal(err)
			}
			status := 0
			testdeadline.Do(t, time.Minute, "a run whose data is gone", func() { status = run.end() })
			// The same bytes in the same file: a new one would not be the one that was mapped.
			if err := os.WriteFile(path, whole, 0o644); err != nil {
				t.Fatal(err)
			}
			said := run.stdout.String() + run.stderr.String()
			if status != 1 || !strings.Contains(said, c.file+": the file was cut off while it was in use") ||
				strings.Contains(said, "goroutine") {
				t.Errorf("status %d:\n%.2000s", status, said)
			}
			epochs := checkpoints(dir, ck)
			if len(epochs) == 0 {
				t.Fatal("no checkpoint is left")
			}
			var last int
			fmt.Sscanf(filepath.Base(epochs[len(epochs)-1]), "epoch-%d", &last)
			works(t, dir, append(args, "--resume", "--quiet", "--epochs", fmt.Sprint(last+1))...)
		})
	}
}

// A run that comes to its end although bytes are gone, which may have been read as zeros, has no result.
func TestDataIsCutOffAndNotRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	works(t, dir, "generate", "sbm", "--nodes", "2000", "--edges", "20000", "--features", "16", "--classes", "4", "--out", "graph", "--quiet")
	run := start(t, dir, "train", "graph", "--epochs", "1000000")
	run.until(t, `^epoch +([3-9]|\d\d)`)
	if err := os.Truncate(filepath.Join(dir, "graph", "labels.npy"), 7000); err != nil {
		t.Fatal(err)
	}
	run.Process.Signal(os.Interrupt)
	testdeadline.Do(t, time.Minute, "a run that was interrupted", func() { run.end() })
	said := run.stdout.String() + run.stderr.String()
	if status := run.ProcessState.ExitCode(); status != 1 || !strings.Contains(said, "graph/labels.npy: the file was cut off") {
		t.Errorf("status %d, %s", status, said)
	}
}

// checkpoints are the complete checkpoints of a run, oldest first.
func checkpoints(dir, name string) []string {
	epochs, _ := filepath.Glob(filepath.Join(dir, name, "epoch-*"))
	return epochs
}
