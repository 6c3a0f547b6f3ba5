//go:build linux && amd64 && !static

package cuda_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"starling/tensor"
	"starling/tensor/cuda"
)

// A driver is opened once in a process, so each case is a process of its own.
const asked = "STARLING_TEST_FAULT"

// TestFaults: whatever is wrong with driver or GPU, a sentence says so and what to do.
func TestFaults(t *testing.T) {
	if os.Getenv(asked) != "" {
		os.Stdout.WriteString("[" + fault() + "]")
		return
	}
	for _, c := range []struct {
		name string
		env  []string
		want []string
		fake bool // needs the emulator
	}{
		{"no driver", []string{"STARLING_CUDA_DRIVER=libcuda-absent.so.1"}, []string{"unavailable: no CUDA device: the driver's " +
			"library libcuda.so.1 was not found", "install NVIDIA's driver", "--device cpu"}, false},
		{"all GPUs hidden", []string{"CUDA_VISIBLE_DEVICES="}, []string{"unavailable", "CUDA_VISIBLE_DEVICES is empty",
			"unset it"}, false},
		{"GPUs hidden by number", []string{"CUDA_VISIBLE_DEVICES=-1"}, []string{"unavailable", "hides all GPUs"}, false},
		{"too old a driver", []string{"EMULATOR_VERSION=11020"}, []string{"unavailable", "a driver for CUDA 11.2, want 11.8",
			"update NVIDIA's driver"}, true},
		{"no GPU", []string{"EMULATOR_CARDS=0"}, []string{"unavailable", "found no GPU", "nvidia-smi"}, true},
		{"too old a GPU", []string{"EMULATOR_CAPABILITY=7"}, []string{"unavailable", "compute capability 7.0, want 8.0"}, true},
		{"out of memory", []string{"EMULATOR_MEMORY=1000000"}, []string{"CUDA_ERROR_OUT_OF_MEMORY", "--dtype bf16", "--mode mini"},
			true},
		{"a sticky error", []string{"EMULATOR_FAIL=cuLaunchKernel:2:700"}, []string{"CUDA_ERROR_ILLEGAL_ADDRESS", "start the run " +
			"again from its checkpoint"}, true},
		{"a GPU that falls off the bus", []string{"EMULATOR_FAIL=cuStreamSynchronize:1:46"}, []string{"the GPU does not answer",
			"nvidia-smi"}, true},
		{"nothing wrong", nil, []string{"[]"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.fake && emulated == "" {
				t.Skip("no g++ to emulate a driver with")
			}
			cmd := exec.Command(os.Args[0], "-test.run", "^TestFaults$")
			cmd.Env = append(append(os.Environ(), asked+"=1"), c.env...)
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			for _, w := range c.want {
				if !strings.Contains(string(out), w) {
					t.Errorf("%s does not say %q", out, w)
				}
			}
		})
	}
}

// fault is what a device says of a few operations, and that it says so after others.
func fault() string {
	d, err := cuda.Open(cuda.Options{})
	if errors.Is(err, cuda.ErrUnavailable) {
		return "unavailable: " + err.Error()
	}
	if err != nil {
		return err.Error()
	}
	defer d.Close()
	x, y := d.New(tensor.F32, 1000, 200), d.New(tensor.F32, 1000, 200)
	d.Copy(y, x)
	d.Copy(x, y)
	d.Sync()
	first := d.Err()
	host := []float32{1, 2, 3}
	z := d.FromHost(1, 3, []float32{4, 5, 6})
	d.Free(d.Scratch(tensor.BF16, 1<<10, 1<<10))
	staging, bytes := d.Staging(1 << 20)
	d.Pack(bytes[:12], z, tensor.Packing{})
	d.Free(staging)
	d.Copy(x.Slice(0, 1), y.Slice(1, 2))
	d.Download(host, z)
	d.Free(x)
	d.Free(y)
	switch {
	case d.Err() != first:
		return fmt.Sprintf("%v, then %v", first, d.Err())
	case first == nil && slices.Equal(host, []float32{4, 5, 6}):
		return ""
	case first == nil || !slices.Equal(host, []float32{1, 2, 3}):
		return fmt.Sprintf("%v, and %v was downloaded", first, host)
	}
	return first.Error()
}
