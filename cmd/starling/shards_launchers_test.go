package main

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// sharedCommands import shards and cut the graph, by as many processes as it says.
func sharedCommands(n int, out string, more ...string) [][]string {
	return [][]string{
		append(strings.Fields(fmt.Sprintf("import edgelist web --out %s --memory 1MiB --workers %d", out, n)), more...),
		append(strings.Fields(fmt.Sprintf("partition %s --parts 3 --method fennel --out %s-parts --memory 1MiB --processes %d", out, out, n)), more...),
	}
}

// sharedByOne has a folder of shards, and what one process makes of them as one and one-parts.
func sharedByOne(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	shardsOf(t, dir, 3, 4000, func(r *rand.Rand) string { return fmt.Sprint(r.IntN(1 + r.IntN(2000))) })
	for _, args := range sharedCommands(1, "one") {
		works(t, dir, append(args, "--quiet")...)
	}
	return dir
}

// sharedAsOne compares what several made, and looks for what they left.
func sharedAsOne(t *testing.T, dir, out string) {
	t.Helper()
	sameFolders(t, filepath.Join(dir, "one"), filepath.Join(dir, out))
	sameFolders(t, filepath.Join(dir, "one-parts"), filepath.Join(dir, out+"-parts"))
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); left != nil {
		t.Errorf("%s: left behind: %v", out, left)
	}
}

// Every task of a launcher is one process, and that of rank 0 says what all made; also where they replace what is there,
// and come one after the other.
func TestTasksShareImportAndPartition(t *testing.T) {
	t.Parallel()
	dir := sharedByOne(t)
	for _, c := range []struct{ name, env, more string }{
		{"mpich", "PMI_RANK=%d PMI_SIZE=3", ""},
		{"slurm", "SLURM_STEP_ID=0 SLURM_JOB_ID=7 SLURM_PROCID=%d SLURM_STEP_NUM_TASKS=3", ""},
		{"torchrun", "RANK=%d WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=1", ""},
		{"torchrun", "RANK=%d WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=1", "--overwrite"},
	} {
		for _, args := range sharedCommands(3, c.name, strings.Fields(c.more)...) {
			var tasks []*started
			for _, rank := range []int{1, 0, 2} {
				tasks = append(tasks, task(t, dir, strings.Fields(fmt.Sprintf(c.env, rank)), args...))
			}
			for i, s := range tasks {
				if status := s.end(); status != 0 {
					t.Errorf("%s: status %d\n%s", c.name, status, s.stderr.String())
				}
				if text := s.stdout.String() + s.stderr.String(); (text != "") != (i == 1) ||
					i == 1 && !strings.Contains(text, "3 processes: each takes at most 1.0 MiB") {
					t.Errorf("%s %s: %q", c.name, args[0], text)
				}
			}
		}
		sharedAsOne(t, dir, c.name)
	}
	as := func(env string, args ...string) output {
		return finish(t, withEnv(in(t, dir, exec.Command(binary, args...)), strings.Fields(env)...))
	}
	for _, args := range sharedCommands(2, "other") {
		refused(t, as("PMI_RANK=1 PMI_SIZE=3", args...), []string{"found 2, want 3, the tasks that mpich has started", "--launcher none"}, args)
		refused(t, as("PMI_RANK=3 PMI_SIZE=3", args...), []string{"PMI_RANK"}, args)
		if o := as("PMI_RANK=1 PMI_SIZE=3", append(args, "--launcher", "none", "--quiet")...); o.status != 0 {
			t.Error(o.stderr)
		}
	}
	sharedAsOne(t, dir, "other")
	args := sharedCommands(3, "one")[0]
	args[2] = "one"
	// What is not to be replaced is refused by all tasks, which do not wait for each other.
	refused(t, as("PMI_RANK=1 PMI_SIZE=3", args...), []string{"rank 1"}, args)
}

// Under the launchers themselves, where they are installed.
func TestMPILaunchersShareImportAndPartition(t *testing.T) {
	t.Parallel()
	launchers := mpiLaunchers()
	if len(launchers) == 0 {
		t.Skip("there is no mpirun here: install Open MPI (openmpi-bin) or MPICH (mpich) to run this test")
	}
	dir := sharedByOne(t)
	for i, l := range launchers {
		out := fmt.Sprint("made-", i)
		for _, more := range []string{"", "--overwrite"} {
			for _, args := range sharedCommands(3, out, strings.Fields(more)...) {
				c := in(t, dir, exec.Command(l[0], append(append(l[1:], binary), args...)...))
				text, err := c.CombinedOutput()
				if err != nil || strings.Count(string(text), "3 processes: each takes") != 1 {
					t.Errorf("%s: %v: %s", l[0], err, text)
				}
			}
		}
		sharedAsOne(t, dir, out)
	}
}
