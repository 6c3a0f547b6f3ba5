//go:build (linux || freebsd) && (amd64 || arm64) && !static

// Package nvrtc compiles CUDA C to PTX with NVIDIA's run-time compiler, which needs neither a GPU nor the
// CUDA toolkit. Only generating the committed code and its test do: see scripts/nvrtc.
package nvrtc

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Version is the package on PyPI that the committed code is made with. A newer one makes code that older
// drivers do not take.
const Version = "nvidia-cuda-nvrtc-cu11==11.8.89"

// Find is the library that scripts/nvrtc has put under a folder; "" where it has not.
func Find(dir string) string {
	if name := os.Getenv("STARLING_NVRTC"); name != "" {
		return name
	}
	found, _ := filepath.Glob(filepath.Join(dir, "nvidia/cuda_nvrtc/lib/libnvrtc.so.*"))
	if len(found) == 0 {
		return ""
	}
	return found[0]
}

// Compiler is the library.
type Compiler struct {
	create  func(program *uintptr, src, name string, headers int32, texts, names **byte) int32
	compile func(program uintptr, options int32, list **byte) int32
	logSize func(program uintptr, n *uintptr) int32
	log     func(program uintptr, text *byte) int32
	ptxSize func(program uintptr, n *uintptr) int32
	ptx     func(program uintptr, text *byte) int32
	destroy func(program *uintptr) int32
}

// Open opens the library. Its other half is beside it.
func Open(path string) (*Compiler, error) {
	beside, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "libnvrtc-builtins.so.*"))
	for _, b := range beside {
		if _, err := purego.Dlopen(b, purego.RTLD_NOW|purego.RTLD_GLOBAL); err != nil {
			return nil, fmt.Errorf("nvrtc: %w", err)
		}
	}
	lib, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, fmt.Errorf("nvrtc: %w", err)
	}
	c := &Compiler{}
	for name, f := range map[string]any{"nvrtcCreateProgram": &c.create, "nvrtcCompileProgram": &c.compile,
		"nvrtcGetProgramLogSize": &c.logSize, "nvrtcGetProgramLog": &c.log, "nvrtcGetPTXSize": &c.ptxSize,
		"nvrtcGetPTX": &c.ptx, "nvrtcDestroyProgram": &c.destroy} {
		purego.RegisterLibFunc(f, lib, name)
	}
	return c, nil
}

// callCount is a comment in which the compiler counts the calls of all it has compiled so far.
var callCount = regexp.MustCompile(` // callseq [0-9, ]+`)

// Compile is the PTX of a file, whose headers are the .cuh files beside it.
func (c *Compiler) Compile(file string) ([]byte, error) {
	src, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	headers, err := filepath.Glob(filepath.Join(filepath.Dir(file), "*.cuh"))
	if err != nil {
		return nil, err
	}
	var texts, names list
	for _, h := range headers {
		text, err := os.ReadFile(h)
		if err != nil {
			return nil, err
		}
		texts.add(string(text))
		names.add(filepath.Base(h))
	}
	var program uintptr
	code := c.create(&program, string(src), filepath.Base(file), int32(len(headers)), texts.first(), names.first())
	if code != 0 {
		return nil, fmt.Errorf("nvrtc: found error %d from nvrtcCreateProgram", code)
	}
	defer c.destroy(&program)
	var options list
	for _, o := range []string{"--gpu-architecture=compute_80", "--std=c++14"} {
		options.add(o)
	}
	code = c.compile(program, int32(len(options.pointers)), options.first())
	runtime.KeepAlive([]list{texts, names, options})
	if code != 0 {
		return nil, fmt.Errorf("nvrtc: %s", read(program, c.logSize, c.log))
	}
	return callCount.ReplaceAll(read(program, c.ptxSize, c.ptx), nil), nil
}

// read is a text of a program.
func read(program uintptr, size func(uintptr, *uintptr) int32, text func(uintptr, *byte) int32) []byte {
	var n uintptr
	if size(program, &n) != 0 || n < 2 {
		return nil
	}
	b := make([]byte, n)
	if text(program, &b[0]) != 0 {
		return nil
	}
	return b[:n-1] // without the zero at its end
}

// list is texts for C.
type list struct{ pointers []*byte }

func (l *list) add(s string) { l.pointers = append(l.pointers, unsafe.SliceData(append([]byte(s), 0))) }

func (l *list) first() **byte {
	if len(l.pointers) == 0 {
		return nil
	}
	return &l.pointers[0]
}
