package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestStoppedWhileACheckpointIsWritten: SIGTERM while the files of a checkpoint are being written leaves checkpoints
// that are whole, nothing unfinished, and a run that goes on from them.
func TestStoppedWhileACheckpointIsWritten(t *testing.T) {
	t.Parallel()
	dir := small(t)
	args := []string{"train", "graph", "--hidden", "256", "--layers", "3", "--checkpoint-dir", "ck",
		"--checkpoint-every", "1", "--eval-every", "0"}
	s := start(t, dir, append(args, "--epochs", "1000000")...)
	ck := filepath.Join(dir, "ck")
	for began := time.Now(); !saving(ck); {
		if time.Since(began) > hang {
			t.Fatalf("no checkpoint is written: %s", s.stderr.String())
		}
	}
	s.Process.Signal(syscall.SIGTERM)
	if code := s.end(); code != 130 {
		t.Fatalf("status %d: %s", code, s.stderr.String())
	}
	if saving(ck) {
		t.Error("an unfinished checkpoint is left")
	}
	list, err := filepath.Glob(filepath.Join(ck, "epoch-*"))
	if err != nil || len(list) == 0 {
		t.Fatal(list, err)
	}
	var epoch int
	if _, err := fmt.Sscanf(filepath.Base(list[len(list)-1]), "epoch-%d", &epoch); err != nil {
		t.Fatal(list, err)
	}
	if o := works(t, dir, append(args, "--resume", "--epochs", fmt.Sprint(epoch+1), "--quiet")...); o.stderr != "" {
		t.Errorf("the newest checkpoint is not gone on from: %s", o.stderr)
	}
}

// saving reports whether a folder has the files of a checkpoint that is not in its place yet.
func saving(dir string) bool {
	entries, _ := os.ReadDir(dir) // it may not be there yet
	for _, e := range entries {
		if files, _ := os.ReadDir(filepath.Join(dir, e.Name())); strings.HasPrefix(e.Name(), ".") && len(files) > 0 {
			return true
		}
	}
	return false
}
