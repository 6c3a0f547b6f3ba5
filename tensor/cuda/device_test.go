//go:build linux && amd64 && !static

package cuda_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"starling/internal/testseed"
	"starling/tensor"
	"starling/tensor/cuda"
	"starling/tensor/devicetest"
)

// emulated is the folder of the driver that runs kernels on the host; "" where a GPU is used, or nothing.
var emulated string

// TestMain has the tests run on a GPU where STARLING_TEST_CUDA asks for it, and otherwise with a driver that
// emulates one, which needs a C++ compiler.
func TestMain(m *testing.M) {
	code := func() int {
		if os.Getenv("STARLING_TEST_CUDA") != "" {
			return m.Run()
		}
		dir, err := os.MkdirTemp("", "starling-cuda")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		if emulated, err = buildEmulator(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if emulated != "" {
			os.Setenv("STARLING_CUDA_DRIVER", emulated)
			os.Setenv("STARLING_CUBLAS", "none")
			os.Setenv("STARLING_CUDA_STRICT", "1")
			if os.Getenv(asked) == "" {
				os.Unsetenv("CUDA_VISIBLE_DEVICES")
			}
		}
		return m.Run()
	}()
	os.Exit(code)
}

// buildEmulator compiles it; "" without a compiler.
func buildEmulator(dir string) (string, error) {
	if name := os.Getenv("STARLING_CUDA_DRIVER"); name != "" {
		return name, nil
	}
	gcc, err := exec.LookPath("g++")
	if err != nil {
		return "", nil
	}
	lib := filepath.Join(dir, "libcuda.so.1")
	out, err := exec.Command(gcc, "-std=c++17", "-O1", "-w", "-shared", "-fPIC", "-o", lib,
		"emulator/emulator.cc").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("the emulator of a driver: %w: %s", err, out)
	}
	return lib, nil
}

// needDriver skips where there is neither a GPU nor an emulator.
func needDriver(t *testing.T) {
	if emulated == "" && os.Getenv("STARLING_TEST_CUDA") == "" {
		t.Skip("no GPU, and no g++ to emulate one with (Debian: apt-get install g++); STARLING_TEST_CUDA=1 uses a GPU")
	}
}

func open(t *testing.T, o cuda.Options) func() tensor.Device {
	return func() tensor.Device {
		d, err := cuda.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
}

// TestDevice: all operations, with products by cuBLAS where it is found.
func TestDevice(t *testing.T) {
	needDriver(t)
	devicetest.Run(t, open(t, cuda.Options{}))
}

// TestRepeats: two runs give the same numbers to the bit, with our own products.
func TestRepeats(t *testing.T) {
	needDriver(t)
	if emulated != "" {
		t.Skip("the emulator has one order anyway; STARLING_TEST_CUDA=1 uses a GPU")
	}
	seed := testseed.New(t)
	a := devicetest.Results(t, seed, open(t, cuda.Options{Plain: true}))
	b := devicetest.Results(t, seed, open(t, cuda.Options{Plain: true}))
	if !slices.Equal(a, b) {
		t.Error("two runs differ")
	}
}
