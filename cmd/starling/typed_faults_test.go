package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"starling/internal/testseed"
	"starling/spec"
)

// TestTypedRunIsKilledAndResumed: a run on a typed graph, some of whose types have learnt rows, loses a worker by
// kill -9 and goes on; then it is killed itself. Resumed, it has the losses and the weights of one that nothing
// happened to, bit by bit.
func TestTypedRunIsKilledAndResumed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	works(t, dir, "generate", "typed", "--like", "small", "--scale", "0.02", "--out", "typed", "--quiet")
	works(t, dir, "partition", "typed", "--parts", "3", "--out", "parts", "--quiet")
	for _, name := range withoutTypes {
		o := starling(t, dir, "train", "parts", "--strategy", name, "--mode", modeOf(name), "--model", "rgcn")
		if o.status == 0 || !strings.Contains(o.stderr, "with a typed graph") {
			t.Errorf("%s: status %d, %s", name, o.status, o.stderr)
		}
	}
	random := testseed.Rand(t)
	for _, kind := range []string{"--model rgcn --strategy halo",
		"--model hsage --mode mini --strategy distdgl --batch-size 8 --fanout 3,3",
		"--model hgt --mode mini --strategy hopgnn --batch-size 8 --fanout 3,3", "--model simplehgn --strategy halo"} {
		model := strings.Fields(kind)[1]
		common := append(strings.Fields("train parts --layers 2 --hidden 8 --eval-every 0 "+kind), "--heartbeat",
			fmt.Sprint(hang.Seconds()))
		disturbed := append(slices.Clone(common), "--checkpoint-every", "5", "--checkpoint-dir", model+"-states")

		s := start(t, dir, append(slices.Clone(disturbed), "--epochs", "100000")...)
		s.until(t, `^epoch `)
		pids := workersOf(t, dir)
		if len(pids) != 3 {
			t.Fatalf("workers %v", pids)
		}
		if err := syscall.Kill(pids[random.IntN(3)], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		s.until(t, `training goes on from epoch`)
		s.until(t, `^epoch `)
		states := filepath.Join(dir, model+"-states")
		for end := time.Now().Add(hang); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if saved, _ := statesIn(states); saved > 0 {
				break
			}
		}
		s.Process.Kill()
		s.end()
		nothingLeft(t, dir)

		saved, _ := statesIn(states)
		epochs := fmt.Sprint(saved + 5)
		works(t, dir, append(disturbed, "--epochs", epochs, "--resume", "--out", model, "--json", model+".json",
			"--quiet")...)
		works(t, dir, append(common, "--epochs", epochs, "--out", model+"-want", "--json", model+"-want.json", "--quiet")...)
		got := losses(t, result(t, readFile(t, dir, model+".json")))
		if want := losses(t, result(t, readFile(t, dir, model+"-want.json"))); !slices.Equal(got, want) {
			t.Errorf("%s: losses %v, undisturbed %v", kind, got, want)
		}
		if readFile(t, dir, model+"/model.safetensors") != readFile(t, dir, model+"-want/model.safetensors") {
			t.Errorf("%s: the weights are not those of an undisturbed run", kind)
		}
	}
}

// modeOf is the mode of a strategy.
func modeOf(name string) string {
	if slices.Contains(spec.StrategyNamesOf("mini"), name) {
		return "mini"
	}
	return "full"
}
