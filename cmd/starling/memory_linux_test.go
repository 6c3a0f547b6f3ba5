package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A graph whose features are far larger than the memory there is trains on, to the
// same losses: they are mapped from disk and read in passes. The kernel ends the
// process if it needs more than the control group has.
func TestLargerThanMemory(t *testing.T) {
	t.Parallel()
	const limit = 96 << 20
	dir := t.TempDir()
	works(t, dir, "generate", "sbm", "--nodes", "60000", "--edges", "300000", "--features", "1000", "--classes", "4",
		"--out", "g", "--quiet")
	features, err := os.Stat(filepath.Join(dir, "g/features.npy"))
	if err != nil || features.Size() < 2*limit {
		t.Fatalf("features of %v bytes do not show anything (%v)", features, err)
	}
	run := []string{"train", "g", "--model", "gcn", "--layers", "2", "--hidden", "16", "--epochs", "2", "--cache-first",
		"off", "--threads", "2", "--quiet", "--json", "-"}
	ample := works(t, dir, run...)
	forget(t, filepath.Join(dir, "g"))
	tight := inGroup(t, dir, limit, run...)
	if tight.status != 0 {
		t.Fatalf("in %d MiB: status %d, %s", limit>>20, tight.status, tight.stderr)
	}
	want, got := result(t, ample.stdout), result(t, tight.stdout)
	if !reflect.DeepEqual(got["loss"], want["loss"]) {
		t.Errorf("losses %v in little memory, %v in ample", got["loss"], want["loss"])
	}

	// What does not fit is refused, by the group's memory and not the machine's.
	o := inGroup(t, dir, limit, "train", "g", "--model", "gcn", "--layers", "3", "--hidden", "512", "--epochs", "1",
		"--quiet")
	if o.status != 2 || !strings.Contains(o.stderr, "memory") {
		t.Errorf("a run that cannot fit: status %d, %s", o.status, o.stderr)
	}
}

// So does it in batches on two workers that have less than the features together, and pull rows
// of each other's mapped files. Neither keeps rows of the other.
func TestBatchesLargerThanMemory(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it reads more than there is memory for")
	}
	const limit = 90 << 20
	dir := t.TempDir()
	works(t, dir, "generate", "sbm", "--nodes", "60000", "--edges", "300000", "--features", "800", "--classes", "4",
		"--train", "0.004", "--out", "g", "--quiet")
	works(t, dir, "partition", "g", "--parts", "2", "--servers", "2", "--method", "random", "--out", "parts", "--quiet")
	features, err := os.Stat(filepath.Join(dir, "parts/part0/features.npy"))
	if err != nil || features.Size() < limit {
		t.Fatalf("features of %v bytes do not show anything (%v)", features, err)
	}
	run := []string{"train", "parts", "--mode", "mini", "--model", "sage", "--norm", "none", "--layers", "2", "--hidden",
		"16", "--strategy", "distdgl", "--batch-size", "50", "--fanout", "3,3", "--epochs", "1", "--eval-every", "0", "--threads", "1", "--quiet",
		"--json", "-"}
	ample := works(t, dir, run...)
	forget(t, filepath.Join(dir, "parts/part0"))
	forget(t, filepath.Join(dir, "parts/part1"))
	tight := inGroup(t, dir, limit, run...)
	if tight.status != 0 {
		t.Fatalf("in %d MiB: status %d, %s", limit>>20, tight.status, tight.stderr)
	}
	want, got := result(t, ample.stdout), result(t, tight.stdout)
	if !reflect.DeepEqual(got["loss"], want["loss"]) {
		t.Errorf("losses %v in little memory, %v in ample", got["loss"], want["loss"])
	}
}

// forget drops the pages of a folder's files, which count where they were first
// touched.
func forget(t *testing.T, dir string) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, name := range files {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		f.Sync()
		unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
		f.Close()
	}
}

// inGroup runs starling in a control group of its own with so much memory. A shell
// enters it first, so that all of the process is in it.
func inGroup(t *testing.T, dir string, limit int64, args ...string) output {
	t.Helper()
	group, file := memoryGroup(t)
	if err := os.WriteFile(filepath.Join(group, file), []byte(strconv.FormatInt(limit, 10)), 0o644); err != nil {
		t.Skip("memory cannot be limited here, so a graph larger than it is not tried:", err)
	}
	enter := fmt.Sprintf(`echo $$ > %q && exec "$0" "$@"`, filepath.Join(group, "cgroup.procs"))
	return command(t, dir, "sh", append([]string{"-c", enter, binary}, args...)...)
}

// memoryGroup makes a control group and names the file of its limit, in the layout
// of either version.
func memoryGroup(t *testing.T) (group, limit string) {
	t.Helper()
	var err error
	for top, file := range map[string]string{"/sys/fs/cgroup/memory": "memory.limit_in_bytes",
		"/sys/fs/cgroup": "memory.max"} {
		if _, e := os.Stat(filepath.Join(top, "cgroup.procs")); e != nil {
			continue // not mounted, or not of this version
		}
		if group, err = os.MkdirTemp(top, "starling-test-"); err == nil {
			t.Cleanup(func() { unix.Rmdir(group) })
			return group, file
		}
	}
	t.Skip("no control group can be made here, so a graph larger than memory is not tried:", err)
	return "", ""
}
