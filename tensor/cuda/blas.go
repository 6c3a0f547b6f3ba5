package cuda

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"

	"starling/tensor/cuda/driver"
)

// cublasNamed is the variable that names cuBLAS's library; none: do without.
const cublasNamed = "STARLING_CUBLAS"

// blas is cuBLAS with a handle on a stream.
type blas struct {
	*blasLibrary
	handle uintptr
}

// blasLibrary is cuBLAS's, by the addresses of its functions.
type blasLibrary struct {
	path                                    string
	create, destroy, setStream, gemm, space uintptr
}

var foundBLAS struct {
	once sync.Once
	lib  *blasLibrary
}

// findBLAS opens the first library that can be opened; nil where there is none.
func findBLAS() *blasLibrary {
	foundBLAS.once.Do(func() {
		for _, path := range blasCandidates() {
			if l := loadBLAS(path); l != nil {
				foundBLAS.lib = l
				return
			}
		}
	})
	return foundBLAS.lib
}

// blasPath is where cuBLAS was found; "" where it was not.
func blasPath() string {
	if l := findBLAS(); l != nil {
		return l.path
	}
	return ""
}

func loadBLAS(path string) *blasLibrary {
	if dir, name := filepath.Split(path); dir != "" { // its other half is beside it
		lt := "libcublasLt" + name[len("libcublas"):]
		driver.OpenLibrary(filepath.Join(dir, lt), nil)
	}
	l := &blasLibrary{path: path}
	err := driver.OpenLibrary(path, map[string]*uintptr{"cublasCreate_v2": &l.create, "cublasDestroy_v2": &l.destroy,
		"cublasSetStream_v2": &l.setStream, "cublasGemmEx": &l.gemm, "cublasSetWorkspace_v2": &l.space})
	if err != nil {
		return nil
	}
	return l
}

// blasCandidates are where cuBLAS may be.
func blasCandidates() []string {
	return candidates(cublasNamed, []string{"libcublas.so.13", "libcublas.so.12", "libcublas.so.11"}, "libcublas.so.1?")
}

// candidates are where a library may be: the file that a variable names, or none; where the loader looks, in the CUDA
// toolkit, and in the Python packages that bring it (NVIDIA's own, torch).
func candidates(variable string, loader []string, pattern string) []string {
	if name := os.Getenv(variable); name == "none" {
		return nil
	} else if name != "" {
		return []string{name}
	}
	all := loader
	var patterns []string
	for _, v := range []string{"CUDA_HOME", "CUDA_PATH"} {
		if dir := os.Getenv(v); dir != "" {
			patterns = append(patterns, filepath.Join(dir, "lib64", pattern))
		}
	}
	patterns = append(patterns, "/usr/local/cuda*/lib64/"+pattern, "/opt/cuda*/lib64/"+pattern)
	for _, dir := range sitePackages() {
		patterns = append(patterns, filepath.Join(dir, "nvidia/*/lib", pattern), filepath.Join(dir, "torch/lib", pattern))
	}
	for _, p := range patterns {
		found, _ := filepath.Glob(p)
		slices.Sort(found)
		slices.Reverse(found) // the newest first
		all = append(all, found...)
	}
	return all
}

// sitePackages are the folders of Python's packages: of the environment that is active, of the python3
// that is found first, and of the user and system.
func sitePackages() (all []string) {
	var roots []string
	if dir := os.Getenv("VIRTUAL_ENV"); dir != "" {
		roots = append(roots, dir)
	}
	if python, err := exec.LookPath("python3"); err == nil {
		roots = append(roots, filepath.Dir(filepath.Dir(python)))
	}
	if home, err := os.UserHomeDir(); err == nil {
		roots = append(roots, filepath.Join(home, ".local"))
	}
	for _, root := range append(roots, "/usr/local", "/usr") {
		for _, kind := range []string{"site-packages", "dist-packages"} {
			found, _ := filepath.Glob(filepath.Join(root, "lib/python3*", kind))
			all = append(all, found...)
		}
	}
	return all
}

// openBLAS makes a handle on the device's stream, with memory to work in; there is none without cuBLAS.
func (d *Device) openBLAS() {
	l := findBLAS()
	if l == nil {
		return
	}
	defer d.enter()()
	b := &blas{blasLibrary: l}
	if driver.Call(l.create, driver.Address(&b.handle)) != 0 || driver.Call(l.setStream, b.handle, d.run.Handle) != 0 {
		return
	}
	d.blas = b
	p := d.mem.Workspace(workspaceBytes)
	if p != 0 && driver.Call(l.space, b.handle, p, workspaceBytes) != 0 {
		d.run.NoGraphs()
	}
}

// workspaceBytes is what cuBLAS wants on the largest GPUs. It has it of us: its own could not be captured in a graph.
const workspaceBytes = 32 << 20

func (l *blas) close() { driver.Call(l.destroy, l.handle) }

// failure is a code of cuBLAS in words.
func (l *blas) failure(code uintptr) error {
	return &driver.Error{Call: gemmName, Code: int(code), Name: fmt.Sprintf("status %d", code), Text: "in " + l.path,
		Advice: "set STARLING_CUBLAS=none to do without cuBLAS, or use --device cpu"}
}
