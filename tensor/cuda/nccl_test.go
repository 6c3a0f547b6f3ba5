//go:build linux && amd64 && !static

package cuda_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"starling/tensor"
	"starling/tensor/cuda"
	"starling/train/traintest"
)

// TestNCCLOfOne: a communicator of one worker, which is all that one GPU allows.
func TestNCCLOfOne(t *testing.T) {
	needDriver(t)
	if emulated != "" {
		t.Skip("NCCL needs a GPU; STARLING_TEST_CUDA=1 uses one")
	}
	d := open(t, cuda.Options{})().(*cuda.Device)
	defer d.Close()
	if _, err := d.ReducerCard(); err != nil {
		t.Skip(err)
	}
	id, err := d.NewReduction()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.JoinReduction(id, 0, 1, time.Minute); err != nil {
		t.Fatal(err)
	}
	a, b := d.New(tensor.F32, 300, 7), d.New(tensor.F32, 1, 5)
	d.Upload(a, counted(2100))
	d.Upload(b, counted(5))
	for range 3 {
		if err := d.Reduce([]tensor.Matrix{a, b}, nil, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	got := make([]float32, 2100)
	if d.Download(got, a); !slices.Equal(got, counted(2100)) {
		t.Error("the sum over one worker differs from its numbers")
	}
	d.LeaveReduction()
	t.Log(cuda.NCCL())
}

// reduceAsked has this test's process train with a library in the place of NCCL.
const reduceAsked = "STARLING_TEST_REDUCE"

// TestNCCLWorkers: gradients are summed by NCCL where every worker has a GPU of its own; where that is not so, or a
// worker cannot join or does not take part, all workers hear of it.
func TestNCCLWorkers(t *testing.T) {
	needDriver(t)
	if os.Getenv(reduceAsked) != "" {
		fmt.Printf("[%s]", trainReduced(t))
		return
	}
	if emulated == "" {
		t.Skip("one GPU is not enough for two workers of NCCL")
	}
	lib := filepath.Join(t.TempDir(), "libnccl.so.2")
	if out, err := exec.Command("g++", "-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-o", lib, "emulator/nccl.cc").
		CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, c := range []struct {
		name, want string
		env        []string
	}{
		{"two GPUs", "[]", []string{"EMULATOR_CARDS=2"}},
		{"one GPU", "workers 0 and 1 are on one GPU", nil},
		{"no library", "worker 0 cannot: NCCL's library libnccl.so.2", []string{"EMULATOR_CARDS=2", "STARLING_NCCL=none"}},
		{"cannot join", "unhandled system error", []string{"EMULATOR_CARDS=2", "EMULATOR_NCCL_FAIL=init"}},
		{"does not join", "not done in time", []string{"EMULATOR_CARDS=2", "EMULATOR_NCCL_FAIL=late"}},
		{"does not sum", "remote process exited", []string{"EMULATOR_CARDS=2", "EMULATOR_NCCL_FAIL=lost"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run", "^TestNCCLWorkers$")
			cmd.Env = append(append(os.Environ(), reduceAsked+"=1", "STARLING_NCCL="+lib), c.env...)
			if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), c.want) {
				t.Errorf("found %v, %s, want %q", err, out, c.want)
			}
		})
	}
}

// trainReduced is what is wrong with two workers that sum by NCCL; "" if nothing is.
func trainReduced(t *testing.T) string {
	gpus, err := cuda.GPUs()
	if err != nil {
		return err.Error()
	}
	parts := traintest.Cut(t, traintest.Communities(t, 40, false), "random", 2)
	o := traintest.Small("gcn")
	o.Epochs, o.EvalEvery, o.Strategy = 2, 2, traintest.Strategy(t, "halo")
	device := func(rank int) tensor.Device { return open(t, cuda.Options{Number: rank % len(gpus)})() }
	within := 20 * time.Second
	if f := os.Getenv("EMULATOR_NCCL_FAIL"); f == "init" || f == "late" {
		within = 200 * time.Millisecond // in vain
	}
	got, sent, err := traintest.TrainReduced(t, parts, device, o, within)
	if err != nil {
		return err.Error()
	}
	want := traintest.TrainParts(t, parts, open(t, cuda.Options{}), o)
	traintest.SameCurve(t, "summed by NCCL", got[0].Loss, want[0].Loss, 1e-5)
	if sent != 0 || !slices.Equal(got[0].Loss, got[1].Loss) {
		return fmt.Sprintf("%d bytes of gradients went over the wire, losses are %v", sent, got)
	}
	return ""
}
