package main

import (
	"os"
	"path/filepath"
	"testing"
)

// A run that is killed leaves its temporary partition behind; the next one removes it,
// and leaves that of a run under way alone.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	dir := small(t)
	folders := func() []string {
		list, _ := filepath.Glob(filepath.Join(temporary(dir), "starling-parts-*"))
		return list
	}
	args := trainArgs(append(endless, "--workers", "2")...)
	killed := start(t, dir, args...)
	killed.until(t, `^epoch `)
	killed.Process.Kill()
	killed.end()
	left := folders()
	if len(left) != 1 {
		t.Fatalf("of a run that was killed there is %v", left)
	}
	running := start(t, dir, args...)
	running.until(t, `^epoch `)
	now := folders()
	if len(now) != 1 || now[0] == left[0] {
		t.Fatalf("while another runs there is %v, before there was %v", now, left)
	}
	works(t, dir, trainArgs("--workers", "2", "--quiet")...)
	if again := folders(); len(again) != 1 || again[0] != now[0] {
		t.Errorf("after a third there is %v, want %v", again, now)
	}
	running.Process.Signal(os.Interrupt)
	if status := running.end(); status != 130 {
		t.Errorf("status %d: %s", status, running.stderr.String())
	}
	nothingLeft(t, dir)
}
