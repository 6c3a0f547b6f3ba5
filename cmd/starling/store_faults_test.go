package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"starling/internal/testseed"
)

// remote is a run in small batches of three workers that own what the others pull.
var remote = strings.Fields("--mode mini --model sage --norm none --batch-size 8 --fanout 3,3 --workers 3 --servers 3 " +
	"--transport tcp --eval-every 0")

// stopOwner stops one of three workers, so that the others wait in mid-pull.
func stopOwner(t *testing.T, dir string) (pid int) {
	t.Helper()
	pids := workersOf(t, dir)
	if len(pids) != 3 {
		t.Fatalf("workers %v", pids)
	}
	pid = pids[testseed.Rand(t).IntN(3)]
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	return pid
}

// An owner that dies while others pull rows from it ends the run, which names it; no worker is
// left.
func TestStoreDiesInMidPull(t *testing.T) {
	t.Parallel()
	dir := small(t)
	for _, strategy := range []string{"distdgl", "bytegnn", "hopgnn", "naive-hop", "cobatch"} {
		s := start(t, dir, trainArgs(slices.Concat(remote, endless, []string{"--strategy", strategy,
			"--on-failure", "stop", "--heartbeat", fmt.Sprint(hang.Seconds())})...)...)
		s.until(t, `^epoch `)
		pid := stopOwner(t, dir)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		status, says := s.end(), s.stderr.String()
		if status != 1 || !strings.Contains(says, fmt.Sprintf("(pid %d ", pid)) || !strings.Contains(says, "killed") {
			t.Errorf("%s: status %d, of pid %d: %s", strategy, status, pid, tail(says))
		}
		nothingLeft(t, dir)
	}
}

// An owner that answers too late ends the run when --timeout has passed; the error says who
// waited for whom, how long and for what.
func TestSlowOwner(t *testing.T) {
	t.Parallel()
	dir := small(t)
	s := start(t, dir, trainArgs(slices.Concat(remote, endless, []string{"--on-failure", "stop", "--timeout", "3",
		"--heartbeat", fmt.Sprint(hang.Seconds())})...)...)
	s.until(t, `^epoch `)
	pid := stopOwner(t, dir)
	waited := regexp.MustCompile(`rank \d .*waited 3.*s .*rank \d`)
	status, says := s.end(), s.stderr.String()
	if status != 1 || !waited.MatchString(says) {
		t.Errorf("status %d: %s", status, tail(says))
	}
	syscall.Kill(pid, syscall.SIGCONT)
	nothingLeft(t, dir)
}

// An owner that is slow for a while changes nothing.
func TestOwnerStoppedForAWhile(t *testing.T) {
	t.Parallel()
	dir := small(t)
	args := slices.Concat(remote, []string{"--json", "r.json", "--heartbeat", fmt.Sprint(hang.Seconds())})
	s := start(t, dir, trainArgs(slices.Concat(args, endless)...)...)
	s.until(t, `^epoch `)
	syscall.Kill(stopOwner(t, dir), syscall.SIGCONT)
	s.until(t, `^epoch `)
	s.Process.Signal(syscall.SIGINT)
	if status := s.end(); status != 130 {
		t.Fatalf("status %d: %s", status, s.stderr.String())
	}
	m := result(t, readFile(t, dir, "r.json"))
	got := losses(t, m)
	works(t, dir, trainArgs(append(args, "--quiet", "--epochs", fmt.Sprint(m["epochs"]))...)...)
	if want := losses(t, result(t, readFile(t, dir, "r.json"))); !slices.Equal(got, want) {
		t.Errorf("losses %v, undisturbed %v", got, want)
	}
}

// A file of rows that is damaged is named, with what to do.
func TestCorruptRows(t *testing.T) {
	t.Parallel()
	dir := small(t)
	works(t, dir, "partition", "graph", "--parts", "3", "--out", "parts", "--quiet")
	files, _ := filepath.Glob(filepath.Join(dir, "parts", "*", "features.npy"))
	if len(files) != 3 {
		t.Fatal(files)
	}
	whole, err := os.ReadFile(files[1])
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"train", "parts", "--mode", "mini", "--model", "sage", "--norm", "none"}, quick...)
	for name, damaged := range map[string][]byte{"a bit": flipped(whole), "its end": whole[:len(whole)-100]} {
		if err := os.WriteFile(files[1], damaged, 0o644); err != nil {
			t.Fatal(err)
		}
		o := starling(t, dir, args...)
		in := filepath.Join(filepath.Base(filepath.Dir(files[1])), "features.npy")
		if o.status == 0 || !strings.Contains(o.stderr, in) || !strings.Contains(o.stderr, "again") {
			t.Errorf("%s: status %d: %s", name, o.status, o.stderr)
		}
		nothingLeft(t, dir)
	}
}

// flipped has one other bit.
func flipped(b []byte) []byte {
	b = slices.Clone(b)
	b[len(b)-5] ^= 4
	return b
}
