//go:build linux && amd64 && !static

package cuda_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"starling/tensor/cuda"
	"starling/tensor/cuda/nvrtc"
)

// TestSums: the committed code was made of these sources, and is as it was made.
func TestSums(t *testing.T) {
	code := map[string][]byte{}
	for _, m := range cuda.Modules {
		code[m] = cuda.PTX(m)
	}
	got, err := nvrtc.Sums("kernels", code)
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("kernels/ptx/sums.txt")
	if err != nil || got != string(want) {
		t.Errorf("the sums are\n%swant\n%s(%v); run make generate", got, want, err)
	}
}

// TestCommittedPTX: what is embedded is what the sources give. One module shows it in a few seconds, and TestSums that
// all were compiled from the sources that are here; STARLING_TEST_NVRTC=all compiles all of them.
func TestCommittedPTX(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	lib := nvrtc.Find(filepath.Join(root, "build/nvrtc"))
	if lib == "" {
		if out, err := exec.Command(filepath.Join(root, "scripts/nvrtc")).CombinedOutput(); err != nil {
			t.Skipf("NVRTC cannot be installed (%s): %s", nvrtc.Version, bytes.TrimSpace(out))
		}
		lib = nvrtc.Find(filepath.Join(root, "build/nvrtc"))
	}
	c, err := nvrtc.Open(lib)
	if err != nil {
		t.Fatal(err)
	}
	modules := []string{"edgewise"}
	if os.Getenv("STARLING_TEST_NVRTC") == "all" {
		modules = cuda.Modules
	}
	for _, m := range modules {
		ptx, err := c.Compile(filepath.Join("kernels", m+".cu"))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(ptx, cuda.PTX(m)) {
			t.Errorf("kernels/ptx/%s.ptx.gz is not what kernels/%s.cu gives; run make generate", m, m)
		}
	}
}

// TestModules: every source is embedded.
func TestModules(t *testing.T) {
	files, err := filepath.Glob("kernels/*.cu")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(f), ".cu"))
	}
	if slices.Sort(names); !slices.Equal(names, cuda.Modules) {
		t.Errorf("sources of %v, embedded are %v", names, cuda.Modules)
	}
}

// TestNoAtomics: sums whose order is not fixed would make two runs differ. The least of whole numbers has no order.
func TestNoAtomics(t *testing.T) {
	for _, m := range cuda.Modules {
		for line := range strings.Lines(string(cuda.PTX(m))) {
			if s := strings.TrimSpace(line); strings.HasPrefix(s, "atom.") || strings.HasPrefix(s, "red.") {
				if strings.Contains(s, ".min.u32") {
					continue
				}
				t.Errorf("%s: %s", m, s)
			}
		}
	}
}

// TestKernelsAssemble: NVIDIA's assembler takes the code, where it is installed.
func TestKernelsAssemble(t *testing.T) {
	ptxas, err := exec.LookPath("ptxas")
	if err != nil {
		t.Skip("ptxas is not installed (PyPI: nvidia-cuda-nvcc-cu11)")
	}
	dir := t.TempDir()
	for _, m := range cuda.Modules {
		file := filepath.Join(dir, m+".ptx")
		if err := os.WriteFile(file, cuda.PTX(m), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command(ptxas, "-arch=sm_80", "-o", os.DevNull, file).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", m, err, out)
		}
	}
}
