package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A disk that weights or checkpoints do not fit on is refused before training; one that fills up while results are
// written, with status 1. Nothing half-written stays.
func TestFullDisk(t *testing.T) {
	t.Parallel()
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
		status, says := 2, "on a disk with 64.0 KiB free"
		if args[0] == "--trace" {
			status, says = 1, "no space left"
		}
		if o.status != status || !strings.Contains(o.stderr, says) {
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
	if entries, _ := os.ReadDir(disk); o.status != 1 || !strings.Contains(o.stderr, "no space left") ||
		len(entries) > 0 {
		t.Errorf("status %d, left %v, %s", o.status, entries, o.stderr)
	}
}

// A disk that others fill while a model is trained: the model is kept elsewhere, it is said where, and it works.
func TestDiskFillsWhileTraining(t *testing.T) {
	t.Parallel()
	for _, more := range [][]string{nil, {"--workers", "2"}} {
		dir := small(t)
		disk, home := filepath.Join(dir, "disk"), filepath.Join(dir, "home")
		if err := errors.Join(os.Mkdir(disk, 0o755), os.Mkdir(home, 0o755)); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=1m"); err != nil {
			t.Skip("a tmpfs cannot be mounted here, so a full disk is not tried:", err)
		}
		t.Cleanup(func() { unix.Unmount(disk, unix.MNT_DETACH) })
		c := exec.Command(binary, trainArgs(append(more, "--hidden", "128", "--epochs", "100000000", "--out",
			"disk/run")...)...)
		c.Dir, c.Env = dir, append(os.Environ(), "HOME="+home)
		var said strings.Builder
		c.Stderr = &said
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for lines.Scan() && !strings.HasPrefix(lines.Text(), "epoch") {
		}
		os.WriteFile(filepath.Join(disk, "others"), make([]byte, 2<<20), 0o644) // as much as fits
		c.Process.Signal(os.Interrupt)
		for lines.Scan() {
		}
		c.Wait()
		kept, _ := filepath.Glob(filepath.Join(home, "run-of-*"))
		if len(kept) != 1 || c.ProcessState.ExitCode() != 1 || !strings.Contains(said.String(), kept[0]) ||
			!strings.Contains(said.String(), "no space left") {
			t.Fatalf("%v: status %d, kept in %v: %s", more, c.ProcessState.ExitCode(), kept, &said)
		}
		works(t, dir, "predict", kept[0], "graph", "--out", "labels.csv")
	}
}

// Files that are there already are replaced only by who says so; a run that is resumed replaces its own.
func TestOverwrite(t *testing.T) {
	t.Parallel()
	dir := small(t)
	train := trainArgs("--quiet", "--out", "run", "--epochs", "3")
	predict := []string{"predict", "run", "graph", "--out", "labels.csv"}
	export := []string{"export", "run", "--out", "exported"}
	for _, args := range [][]string{train, predict, export} {
		works(t, dir, args...)
		refuses(t, dir, []string{"--out: found ", ", which exists", "--overwrite"}, args...)
		works(t, dir, append(args, "--overwrite")...)
	}
	resumed := trainArgs("--quiet", "--out", "again", "--checkpoint-dir", "ck", "--epochs")
	works(t, dir, append(resumed, "3")...)
	works(t, dir, append(resumed, "5", "--resume")...)
	works(t, dir, "predict", "run", "graph", "--out", "labels.npy")
	works(t, dir, "predict", "run", "graph", "--what", "embeddings")
	refuses(t, dir, []string{"embeddings.npy, which exists"}, "predict", "run", "graph", "--what", "embeddings")
}

// A graph that does not fit on the disk is refused before anything is drawn.
func TestGenerateMoreThanTheDiskHolds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	refuses(t, dir, []string{"--out", "free space"}, "generate", "er", "--nodes", "4000000000", "--edges", "1000",
		"--features", "1000000", "--out", "g")
	refuses(t, dir, []string{"--nodes"}, "generate", "er", "--nodes", "5000000000", "--features", "1000000", "--out",
		"g")
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v was left", left)
	}
}

// A disk that is full behind standard output: whatever was to be said there, the status
// tells that it was not.
func TestFullDiskBehindStandardOutput(t *testing.T) {
	t.Parallel()
	dir := small(t)
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
		if got := c.ProcessState.ExitCode(); got != 1 || !strings.Contains(said.String(),
			"starling: write /dev/stdout: no space left on device; the disk is full") {
			t.Errorf("%v: status %d, %s", args, got, &said)
		}
	}
}
