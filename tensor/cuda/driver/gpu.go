package driver

import (
	"bytes"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
)

// Info is what the driver says of a GPU.
type Info struct {
	Number        int    `json:"number"`
	Name          string `json:"name"`
	Memory        int64  `json:"memory"`
	Free          int64  `json:"free"`
	Major, Minor  int    `json:"-"`
	Capability    string `json:"capability"`
	Processors    int    `json:"processors"`
	DriverVersion string `json:"driver"`
	CuBLAS        string `json:"cublas,omitempty"` // where it was found
}

// leastMajor is the least compute capability that the committed PTX is for.
const leastMajor = 8

// GPU is what the devices of one GPU share.
type GPU struct {
	*Driver
	Info
	Context uintptr
	Handle  int32
	devices atomic.Int32 // that are open

	mu struct {
		sync.Mutex
		functions map[string]uintptr
		modules   map[string]uintptr
	}
}

// gpus are the GPUs in use, by number.
var gpus struct {
	sync.Mutex
	of map[int]*GPU
}

// GPUs lists the GPUs that this process may use.
func GPUs() ([]Info, error) {
	d, err := openDriver()
	if err != nil {
		return nil, err
	}
	var n int32
	if code := Call(d.deviceCount, Address(&n)); code != 0 {
		return nil, d.Failure("cuDeviceGetCount", code)
	}
	if n == 0 {
		return nil, errNoGPU
	}
	var all []Info
	for i := range int(n) {
		g, err := gpuOf(i)
		if err != nil {
			return nil, err
		}
		g.Info.Free = g.FreeMemory()
		all = append(all, g.Info)
	}
	return all, nil
}

// Open is the GPU with a number, for a device more; Close has one less.
func Open(number int) (*GPU, error) {
	g, err := gpuOf(number)
	if err == nil {
		g.devices.Add(1)
	}
	return g, err
}

func (g *GPU) Close() { g.devices.Add(-1) }

// gpuOf is the GPU with a number, its context made at the first use.
func gpuOf(number int) (*GPU, error) {
	gpus.Lock()
	defer gpus.Unlock()
	if g := gpus.of[number]; g != nil {
		return g, nil
	}
	d, err := openDriver()
	if err != nil {
		return nil, err
	}
	g := &GPU{Driver: d, Info: Info{Number: number}}
	g.mu.functions, g.mu.modules = map[string]uintptr{}, map[string]uintptr{}
	if err := g.describe(); err != nil {
		return nil, err
	}
	if code := Call(d.contextRetain, Address(&g.Context), uintptr(g.Handle)); code != 0 {
		return nil, d.Failure("cuDevicePrimaryCtxRetain", code)
	}
	if err := g.keepMemory(); err != nil {
		return nil, err
	}
	if gpus.of == nil {
		gpus.of = map[int]*GPU{}
	}
	gpus.of[number] = g
	return g, nil
}

// Attributes of a device.
const (
	attrProcessors = 16
	attrMajor      = 75
	attrMinor      = 76
)

func (g *GPU) describe() error {
	var n, version int32
	Call(g.deviceCount, Address(&n))
	if g.Number >= int(n) {
		return fmt.Errorf("%w: found cuda:%d, want one of the %d GPUs of this host (cuda:0 to cuda:%d); see starling "+
			"devices", ErrUnavailable, g.Number, n, n-1)
	}
	if code := Call(g.deviceGet, Address(&g.Handle), uintptr(g.Number)); code != 0 {
		return g.Failure("cuDeviceGet", code)
	}
	name := make([]byte, 128)
	Call(g.deviceName, Address(&name[0]), uintptr(len(name)), uintptr(g.Handle))
	g.Name = string(bytes.TrimRight(name, "\x00"))
	Call(g.deviceMemory, Address(&g.Memory), uintptr(g.Handle))
	g.Processors, g.Major, g.Minor = g.attribute(attrProcessors), g.attribute(attrMajor), g.attribute(attrMinor)
	g.Capability = fmt.Sprintf("%d.%d", g.Major, g.Minor)
	Call(g.version, Address(&version))
	g.DriverVersion = fmt.Sprintf("CUDA %d.%d", version/1000, version%1000/10)
	if g.Major < leastMajor {
		return fmt.Errorf("%w: found %s of compute capability %s, want %d.0 or newer (A100, RTX 30, L4, H100, …); use "+
			"another GPU or --device cpu", ErrUnavailable, g.Name, g.Capability, leastMajor)
	}
	return nil
}

func (g *GPU) attribute(which int) int {
	var v int32
	Call(g.deviceAttribute, Address(&v), uintptr(which), uintptr(g.Handle))
	return int(v)
}

// keepMemory has the driver's pool keep what is freed for the next who asks.
func (g *GPU) keepMemory() error {
	const releaseThreshold = 4
	return g.OnThread(g.Context, func() error {
		var pool uintptr
		if code := Call(g.defaultPool, Address(&pool), uintptr(g.Handle)); code != 0 {
			return g.Failure("cuDeviceGetDefaultMemPool", code)
		}
		all := ^uint64(0)
		Call(g.poolSet, pool, releaseThreshold, Address(&all))
		runtime.KeepAlive(&all)
		return nil
	})
}

// FreeMemory is how much of its memory no process uses.
func (g *GPU) FreeMemory() (n int64) {
	g.OnThread(g.Context, func() error {
		var free, total uintptr
		Call(g.memoryInfo, Address(&free), Address(&total))
		n = int64(free)
		return nil
	})
	return n
}

// InUse is the name of the GPU that this process computes on, how much of its memory all processes use, and how much
// it has; zeros without one. Of several it is the first.
func InUse() (name string, used, size int64) {
	gpus.Lock()
	var g *GPU
	for _, x := range gpus.of {
		if x.devices.Load() > 0 && (g == nil || x.Number < g.Number) {
			g = x
		}
	}
	gpus.Unlock()
	if g == nil {
		return "", 0, 0
	}
	return g.Name, g.Memory - g.FreeMemory(), g.Memory
}

// Function is a kernel by its name, of a module that is compiled when one of it is first asked for: ptx is its code.
// shared is how much shared memory the kernel may be launched with; 0: what every kernel may.
// REQUIRES: the GPU's context is the thread's.
func (g *GPU) Function(module, name string, shared int, ptx func(module string) []byte) (f uintptr, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if f := g.mu.functions[name]; f != 0 {
		return f, nil
	}
	m := g.mu.modules[module]
	if m == 0 {
		if m, err = g.load(module, append(ptx(module), 0)); err != nil {
			return 0, err
		}
		g.mu.modules[module] = m
	}
	text := append([]byte(name), 0)
	code := Call(g.moduleFunction, Address(&f), m, Address(&text[0]))
	runtime.KeepAlive(text)
	if code != 0 {
		return 0, g.Failure("cuModuleGetFunction of "+name, code)
	}
	if shared > 0 {
		const mostShared = 8 // bytes of shared memory; more than 48 KiB have to be asked for
		if code := Call(g.functionSet, f, mostShared, uintptr(shared)); code != 0 {
			return 0, g.Failure("cuFuncSetAttribute of "+name, code)
		}
	}
	g.mu.functions[name] = f
	return f, nil
}

func (g *GPU) load(module string, ptx []byte) (m uintptr, err error) {
	code := Call(g.moduleLoad, Address(&m), Address(&ptx[0]))
	runtime.KeepAlive(ptx)
	if code != 0 {
		return 0, g.Failure("cuModuleLoadData of "+module, code)
	}
	return m, nil
}
