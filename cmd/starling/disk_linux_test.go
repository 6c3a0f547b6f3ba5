package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A disk that fills up while results are written: status 1, and nothing
// half-written stays.
func TestFullDisk(t *testing.T) {
	dir := small(t)
	disk := filepath.Join(dir, "disk")
	if err := os.Mkdir(disk, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=64k"); err != nil {
		t.Skip("a tmpfs cannot be mounted here, so a full disk is not tried:", err)
	}
	t.Cleanup(func() { unix.Unmount(disk, unix.MNT_DETACH) })
	for _, args := range [][]string{
		{"--checkpoint-dir", "disk/ck", "--checkpoint-every", "1"},
		{"--out", "disk/run"},
		{"--trace", "disk/trace.json"},
	} {
		o := starling(t, dir, trainArgs(append(args, "--layers", "3", "--hidden", "256", "--epochs", "60")...)...)
		if o.status != 1 || !strings.Contains(o.stderr, "no space left") {
			t.Errorf("%v: status %d, %s", args, o.status, o.stderr)
		}
		left := 0
		filepath.WalkDir(disk, func(path string, d os.DirEntry, _ error) error {
			if !d.IsDir() {
				left++
				t.Errorf("%v: %s was left behind", args, path)
			}
			return nil
		})
		os.RemoveAll(filepath.Join(disk, "ck"))
	}
	var edges strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&edges, "%d %d\n", i%5000, i%4999)
	}
	if err := os.WriteFile(filepath.Join(dir, "edges.txt"), []byte(edges.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	o := starling(t, dir, "import", "edgelist", "edges.txt", "--out", "disk/g", "--quiet")
	if entries, _ := os.ReadDir(disk); o.status != 1 || !strings.Contains(o.stderr, "no space left") || len(entries) > 0 {
		t.Errorf("status %d, left %v, %s", o.status, entries, o.stderr)
	}
}

// A graph that the disk has no room for is refused before anything is drawn.
func TestGenerateMoreThanTheDiskHolds(t *testing.T) {
	dir := t.TempDir()
	refuses(t, dir, []string{"--out", "room for"}, "generate", "er", "--nodes", "4000000000", "--edges", "1000", "--features", "1000000", "--out", "g")
	refuses(t, dir, []string{"--nodes"}, "generate", "er", "--nodes", "5000000000", "--features", "1000000", "--out", "g")
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v was left", left)
	}
}

// A disk that is full behind standard output: whatever was to be said there, the status
// tells that it was not.
func TestFullDiskBehindStandardOutput(t *testing.T) {
	t.Parallel()
	dir := smallGraph(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	for _, args := range [][]string{
		nil, {"help"}, {"help", "train"}, {"train", "--help"}, {"bench", "--help"}, {"version"}, {"--version"},
		{"info", "graph"}, trainArgs(), trainArgs("--json", "-"), trainArgs("--dry-run"),
		{"generate", "er", "--nodes", "20", "--classes", "2", "--edges", "40", "--out", "er"},
		{"partition", "graph", "--parts", "2", "--out", "parts"}, {"partition", "parts", "--verify"},
	} {
		c := exec.Command(binary, args...)
		var said strings.Builder
		c.Dir, c.Stdout, c.Stderr = dir, full, &said
		c.Run()
		if got := c.ProcessState.ExitCode(); got != 1 || !strings.Contains(said.String(), "starling: write /dev/stdout: no space left on device; the disk is full") {
			t.Errorf("%v: status %d, %s", args, got, &said)
		}
	}
}
