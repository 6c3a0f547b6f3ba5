package cluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// The tests below start this program again, as one that saves a checkpoint and is
// killed on the way: by the system, when a file grows beyond a byte, or by itself,
// at a named point between two steps.
func TestMain(m *testing.M) {
	if dir := os.Getenv("STARLING_CRASH_DIR"); dir != "" {
		crash(dir, os.Getenv("STARLING_CRASH_AT"))
	}
	os.Exit(m.Run())
}

func crash(dir, at string) {
	if limit, err := strconv.ParseUint(at, 10, 64); err == nil {
		syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
		syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit})
	}
	reached = func(point string) {
		if point == at {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	epoch, _ := strconv.Atoi(os.Getenv("STARLING_CRASH_EPOCH"))
	c := sample(epoch)
	err := shardOut(filepath.Dir(dir), c)
	if err == nil {
		_, _, err = Save(dir, c, 2)
	}
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// crashing saves in another process that is killed at a place. It reports whether
// the process came to its end.
func crashing(t *testing.T, dir, at string, epoch int) bool {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), "STARLING_CRASH_DIR="+dir, "STARLING_CRASH_AT="+at, "STARLING_CRASH_EPOCH="+
		strconv.Itoa(epoch))
	out, err := c.CombinedOutput()
	if err == nil {
		return true
	}
	// the runtime may turn the signal into either
	if strings.Contains(string(out), "file too large") || c.ProcessState.ExitCode() == 2 {
		return false
	}
	if w, ok := c.ProcessState.Sys().(syscall.WaitStatus); !ok || !w.Signaled() {
		t.Fatalf("%v: %s", err, out)
	}
	return false
}

// newestIs fails unless the newest whole checkpoint is one of those epochs, and the
// next save works and cleans up.
func newestIs(t *testing.T, dir, at string, epochs ...int) {
	t.Helper()
	got, err := Latest(dir, nil, func(string) {})
	if err != nil {
		t.Fatalf("killed at %s: %v", at, err)
	}
	for _, e := range epochs {
		if got.Epoch == e {
			save(t, dir, 99, 2)
			hidden(t, dir)
			return
		}
	}
	t.Fatalf("killed at %s: the newest is of epoch %d, want one of %v", at, got.Epoch, epochs)
}

// TestKilledAtAnyByte: whatever byte of whatever file a save is killed at, the
// checkpoint before it is still there and whole.
func TestKilledAtAnyByte(t *testing.T) {
	probe := t.TempDir()
	largest := int64(0)
	files, _ := filepath.Glob(filepath.Join(save(t, probe, 2, 0), "*"))
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			t.Fatal(err)
		}
		largest = max(largest, info.Size())
	}
	killed := 0
	for limit := int64(0); limit <= largest; limit += 1 + largest/60 {
		dir := t.TempDir()
		save(t, dir, 1, 0)
		at := strconv.FormatInt(limit, 10)
		if crashing(t, dir, at, 2) {
			newestIs(t, dir, at, 2)
		} else {
			killed++
			newestIs(t, dir, at, 1)
		}
	}
	if killed < 30 {
		t.Errorf("only %d saves were killed", killed)
	}
}

// TestKilledBetweenSteps: also where files are whole but not in place, or old ones
// half removed.
func TestKilledBetweenSteps(t *testing.T) {
	for at, epochs := range map[string][]int{"written": {3}, "in place": {4}, "pruned": {4}} {
		dir := t.TempDir()
		save(t, dir, 2, 0)
		save(t, dir, 3, 0)
		if crashing(t, dir, at, 4) {
			t.Errorf("no worker joined at %q", at)
		}
		newestIs(t, dir, at, epochs...)
	}
	dir := t.TempDir() // a damaged one that is written again
	save(t, dir, 2, 0)
	if err := os.WriteFile(filepath.Join(save(t, dir, 3, 0), stateFile), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if crashing(t, dir, "old one aside", 3) {
		t.Error("no worker joined the old one")
	}
	newestIs(t, dir, "old one aside", 2)
}
