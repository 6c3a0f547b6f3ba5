package cuda

import (
	"bytes"
	"compress/gzip"
	"embed"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
)

//go:embed kernels/ptx/*.ptx.gz
var compiled embed.FS

// Info is what the driver says of a card.
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

// card is what the devices of one card share.
type card struct {
	*driver
	Info
	context uintptr
	handle  int32
	devices atomic.Int32 // that are open
	retired retired

	mu struct {
		sync.Mutex
		functions map[string]uintptr
		modules   map[string]uintptr
	}
}

// cards are those in use, by number.
var cards struct {
	sync.Mutex
	of map[int]*card
}

// Cards lists the cards that this process may use.
func Cards() ([]Info, error) {
	d, err := openDriver()
	if err != nil {
		return nil, err
	}
	var n int32
	if code := call(d.deviceCount, address(&n)); code != 0 {
		return nil, d.failure("cuDeviceGetCount", code)
	}
	if n == 0 {
		return nil, errNoCard
	}
	var all []Info
	for i := range int(n) {
		c, err := cardOf(i)
		if err != nil {
			return nil, err
		}
		c.Info.Free = c.freeMemory()
		c.Info.CuBLAS = blasPath()
		all = append(all, c.Info)
	}
	return all, nil
}

// cardOf is the card with a number, its context made at the first use.
func cardOf(number int) (*card, error) {
	cards.Lock()
	defer cards.Unlock()
	if c := cards.of[number]; c != nil {
		return c, nil
	}
	d, err := openDriver()
	if err != nil {
		return nil, err
	}
	c := &card{driver: d, Info: Info{Number: number}}
	c.mu.functions, c.mu.modules = map[string]uintptr{}, map[string]uintptr{}
	if err := c.describe(); err != nil {
		return nil, err
	}
	if code := call(d.contextRetain, address(&c.context), uintptr(c.handle)); code != 0 {
		return nil, d.failure("cuDevicePrimaryCtxRetain", code)
	}
	if err := c.keepMemory(); err != nil {
		return nil, err
	}
	if cards.of == nil {
		cards.of = map[int]*card{}
	}
	cards.of[number] = c
	return c, nil
}

// Attributes of a device.
const (
	attrProcessors = 16
	attrMajor      = 75
	attrMinor      = 76
)

func (c *card) describe() error {
	var n, version int32
	call(c.deviceCount, address(&n))
	if c.Number >= int(n) {
		return fmt.Errorf("%w: found cuda:%d, want one of the %d cards of this host (cuda:0 to cuda:%d); see starling "+
			"devices", ErrUnavailable, c.Number, n, n-1)
	}
	if code := call(c.deviceGet, address(&c.handle), uintptr(c.Number)); code != 0 {
		return c.failure("cuDeviceGet", code)
	}
	name := make([]byte, 128)
	call(c.deviceName, address(&name[0]), uintptr(len(name)), uintptr(c.handle))
	c.Name = string(bytes.TrimRight(name, "\x00"))
	call(c.deviceMemory, address(&c.Memory), uintptr(c.handle))
	c.Processors, c.Major, c.Minor = c.attribute(attrProcessors), c.attribute(attrMajor), c.attribute(attrMinor)
	c.Capability = fmt.Sprintf("%d.%d", c.Major, c.Minor)
	call(c.version, address(&version))
	c.DriverVersion = fmt.Sprintf("CUDA %d.%d", version/1000, version%1000/10)
	if c.Major < leastMajor {
		return fmt.Errorf("%w: found %s of compute capability %s, want %d.0 or newer (A100, RTX 30, L4, H100, …); use "+
			"another card or --device cpu", ErrUnavailable, c.Name, c.Capability, leastMajor)
	}
	return nil
}

func (c *card) attribute(which int) int {
	var v int32
	call(c.deviceAttribute, address(&v), uintptr(which), uintptr(c.handle))
	return int(v)
}

// keepMemory has the driver's pool keep what is freed for the next who asks.
func (c *card) keepMemory() error {
	const releaseThreshold = 4
	return c.onThread(c.context, func() error {
		var pool uintptr
		if code := call(c.defaultPool, address(&pool), uintptr(c.handle)); code != 0 {
			return c.failure("cuDeviceGetDefaultMemPool", code)
		}
		all := ^uint64(0)
		call(c.poolSet, pool, releaseThreshold, address(&all))
		runtime.KeepAlive(&all)
		return nil
	})
}

func (c *card) freeMemory() (n int64) {
	c.onThread(c.context, func() error {
		var free, total uintptr
		call(c.memoryInfo, address(&free), address(&total))
		n = int64(free)
		return nil
	})
	return n
}

// InUse is the name of the card that this process computes on, how much of its memory all processes use, and how much
// it has; zeros without one. Of several it is the first.
func InUse() (name string, used, size int64) {
	cards.Lock()
	var c *card
	for _, x := range cards.of {
		if x.devices.Load() > 0 && (c == nil || x.Number < c.Number) {
			c = x
		}
	}
	cards.Unlock()
	if c == nil {
		return "", 0, 0
	}
	return c.Name, c.Memory - c.freeMemory(), c.Memory
}

// function is a kernel by its name, of a module that is compiled when one of it is first asked for.
// REQUIRES: the card's context is the thread's.
func (c *card) function(module, name string) (f uintptr, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.mu.functions[name]; f != 0 {
		return f, nil
	}
	m := c.mu.modules[module]
	if m == 0 {
		if m, err = c.load(module); err != nil {
			return 0, err
		}
		c.mu.modules[module] = m
	}
	text := append([]byte(name), 0)
	code := call(c.moduleFunction, address(&f), m, address(&text[0]))
	runtime.KeepAlive(text)
	if code != 0 {
		return 0, c.failure("cuModuleGetFunction of "+name, code)
	}
	if strings.HasPrefix(module, "mma_") {
		const mostShared = 8 // bytes of shared memory; more than 48 KiB have to be asked for
		if code := call(c.functionSet, f, mostShared, uintptr(productShared(128))); code != 0 {
			return 0, c.failure("cuFuncSetAttribute of "+name, code)
		}
	}
	c.mu.functions[name] = f
	return f, nil
}

func (c *card) load(module string) (m uintptr, err error) {
	ptx := append(PTX(module), 0)
	code := call(c.moduleLoad, address(&m), address(&ptx[0]))
	runtime.KeepAlive(ptx)
	if code != 0 {
		return 0, c.failure("cuModuleLoadData of "+module, code)
	}
	return m, nil
}

// Modules are the names of the kernels' files.
var Modules = []string{"aggregate", "attention", "edgewise", "elements", "mma_bf16", "mma_split", "mma_tf32",
	"product", "rows"}

// PTX is the committed code of a module.
func PTX(module string) []byte {
	packed, err := compiled.ReadFile("kernels/ptx/" + module + ".ptx.gz")
	if err != nil {
		panic(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		panic(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		panic(err)
	}
	return text
}
