package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"starling/internal/testseed"
)

// inMini are runs in batches, by strategy: of one worker, and of several.
var inMini = map[string]string{
	"one worker": "--workers 1",
	"lookahead":  "--workers 2 --servers 2 --cache-budget 1KiB", // the default
	"lookahead of 4": "--workers 4 --servers 4 --strategy lookahead --cache-budget 64KiB --cache-edges 32KiB " +
		"--cache-window 3 --transport tcp",
	"distdgl":        "--workers 3 --strategy distdgl",
	"salient":        "--workers 3 --servers 3 --strategy salient --transport tcp",
	"bytegnn":        "--workers 3 --servers 3 --strategy bytegnn",
	"hopgnn":         "--workers 3 --servers 3 --strategy hopgnn --merge 1",
	"cobatch":        "--workers 3 --strategy cobatch",
	"cobatch of all": "--workers 3 --servers 3 --strategy cobatch --together all",
}

// A run whose worker is killed between two steps, and that is then killed itself and resumed
// inside the epoch, has the losses and the weights of an undisturbed one, which writes no
// checkpoints, to the bit.
func TestResumedInsideAnEpoch(t *testing.T) {
	t.Parallel()
	for name, args := range inMini {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := small(t)
			args := strings.Fields(args + " --mode mini --model sage --norm none --batch-size 4 --fanout 3,3 --eval-every 0")
			checkpoints := []string{"--checkpoint-dir", "ck", "--checkpoint-every", "7steps"}
			s := start(t, dir, trainArgs(slices.Concat(args, checkpoints, endless)...)...)
			untilStep(t, filepath.Join(dir, "ck"))
			if pids := workersOf(t, dir); name != "one worker" {
				if err := syscall.Kill(pids[testseed.Rand(t).IntN(len(pids))], syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
				s.until(t, `training goes on from epoch \d+, step \d+`)
			}
			s.Process.Kill()
			s.end()
			nothingLeftOf(t, dir, t.TempDir()) // but its partition
			at := untilStep(t, filepath.Join(dir, "ck"))
			epochs := []string{"--epochs", fmt.Sprint(at + 2), "--quiet"}
			works(t, dir, trainArgs(slices.Concat(args, checkpoints, epochs,
				[]string{"--resume", "--out", "again", "--json", "again.json"})...)...)
			works(t, dir, trainArgs(slices.Concat(args, epochs, []string{"--out", "once", "--json", "once.json"})...)...)
			got, want := losses(t, result(t, readFile(t, dir, "again.json"))), losses(t, result(t, readFile(t, dir,
				"once.json")))
			if !slices.Equal(got, want) {
				t.Errorf("resumed in epoch %d: losses %v, want %v", at, got, want)
			}
			if !bytes.Equal([]byte(readFile(t, dir, "again/model.safetensors")), []byte(readFile(t, dir,
				"once/model.safetensors"))) {
				t.Errorf("resumed in epoch %d: other weights", at)
			}
		})
	}
}

// untilStep waits for a checkpoint inside an epoch, and returns that epoch.
func untilStep(t *testing.T, dir string) (epoch int) {
	t.Helper()
	for end := time.Now().Add(hang); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		list, _ := filepath.Glob(filepath.Join(dir, "epoch-*-step-*"))
		for _, path := range list {
			n := 0
			fmt.Sscanf(filepath.Base(path), "epoch-%06d-step", &n)
			epoch = max(epoch, n)
		}
		if len(list) > 0 {
			return epoch
		}
	}
	t.Fatalf("no checkpoint inside an epoch in %s", dir)
	return 0
}

// Settings of checkpoints that are none are refused.
func TestCheckpointEvery(t *testing.T) {
	t.Parallel()
	dir := small(t)
	for _, every := range []string{"0steps", "-1", "5 days", "steps", "1e3"} {
		o := starling(t, dir, trainArgs("--checkpoint-every="+every)...)
		if o.status != 2 || !strings.Contains(o.stderr, "500steps") {
			t.Errorf("--checkpoint-every %s: status %d: %s", every, o.status, o.stderr)
		}
	}
	works(t, dir, trainArgs("--checkpoint-every", "4steps", "--checkpoint-dir", "full", "--quiet")...)
	works(t, dir, trainArgs("--checkpoint-every", "5epochs", "--checkpoint-dir", "ck", "--quiet")...)
	for dir, want := range map[string]string{filepath.Join(dir, "full"): "epoch-000004 epoch-000008 epoch-000010",
		filepath.Join(dir, "ck"): "epoch-000005 epoch-000010"} {
		var names []string
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if e.IsDir() {
				names = append(names, e.Name())
			}
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("checkpoints %s, want %s", got, want)
		}
	}
}
