package main

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// mpiLaunchers are the commands that start processes under an MPI, each once.
func mpiLaunchers() (out [][]string) {
	seen := map[string]bool{}
	for _, name := range []string{"mpirun.openmpi", "mpirun.mpich", "mpirun"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if path, err = filepath.EvalSymlinks(path); err != nil || seen[path] {
			continue
		}
		seen[path] = true
		command := []string{name, "-n", "3"}
		if says, _ := exec.Command(path, "--version").CombinedOutput(); strings.Contains(string(says), "Open") {
			command = append(command, "--allow-run-as-root", "--oversubscribe")
		}
		out = append(out, command)
	}
	return out
}

// Over MPI the losses equal the losses of workers in one process, to the bit, and workers send
// the same bytes.
func TestMPIEqualsInProcess(t *testing.T) {
	t.Parallel()
	launchers := mpiLaunchers()
	if len(launchers) == 0 {
		t.Skip("there is no mpirun here: install Open MPI (openmpi-bin) or MPICH (mpich) to run this test")
	}
	dir := small(t)
	works(t, dir, "partition", "graph", "--parts", "3", "--out", "parts", "--quiet")
	args := append([]string{"train", "parts", "--model", "sage", "--norm", "batch", "--json", "-"}, quick...)
	want := result(t, works(t, dir, append(args, "--in-process")...).stdout)
	for _, l := range launchers {
		t.Run("launcher="+l[0], func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), hang)
			defer cancel()
			c := exec.CommandContext(ctx, l[0], slices.Concat(l[1:], []string{binary}, args,
				[]string{"--transport", "mpi"})...)
			c.Dir = dir // with the temporary files of all tests: MPI has sockets there, whose names must be short
			c.WaitDelay = time.Second
			var out, says bytes.Buffer
			c.Stdout, c.Stderr = &out, &says
			if err := c.Run(); err != nil {
				t.Fatalf("%v\n%s%s", err, out.String(), says.String())
			}
			got := result(t, out.String())
			if g, w := losses(t, got), losses(t, want); !slices.Equal(g, w) {
				t.Errorf("losses %v, in one process %v", g, w)
			}
			g, w := got["bytes"].(map[string]any)["by_kind"], want["bytes"].(map[string]any)["by_kind"]
			for kind, n := range w.(map[string]any) {
				if g.(map[string]any)[kind] != n {
					t.Errorf("%s: %v bytes, in one process %v", kind, g.(map[string]any)[kind], n)
				}
			}
		})
	}
}

// Without a launcher there is no MPI to go over.
func TestMPIAlone(t *testing.T) {
	t.Parallel()
	refuses(t, small(t), []string{"--transport", "mpirun -n 4 starling train"},
		trainArgs("--workers", "2", "--transport", "mpi")...)
}
