package memory

import (
	"math/bits"
	"sync"

	"starling/tensor"
	"starling/tensor/cuda/driver"
)

// Memory that other workers read is of the driver's plain kind: what its pools give has no handles. In this process
// its address is enough; another process opens the handle of the whole region, once, and finds rows by their offset.

// Region is such memory.
type Region struct {
	P      uintptr
	Bytes  int
	Handle Handle // zeros: it has none
}

// Handle is the driver's CUipcMemHandle.
type Handle [64]byte

// regions are the regions of a device.
type regions struct {
	free   map[int][]*Region // by size
	all    []*Region
	abroad bool // other processes may have them open
}

// retired are regions of devices that were closed. Those that others may have open are not freed, which the driver
// does not allow, but used again.
var retired struct {
	sync.Mutex
	free map[retiredKey][]*Region
}

type retiredKey struct {
	gpu  *driver.GPU
	size int
}

// regionBytes is how much is taken for n bytes: whole pages of the GPU, so that a handle is of one region, of 8 sizes
// between two powers of two.
func regionBytes(n int) int {
	const page = 2 << 20
	step := max(page, 1<<bits.Len(uint(max(n, 1)-1))>>4)
	return (n + step - 1) / step * step
}

// Region is a region of at least n bytes; nil where the device failed.
func (mem *Memory) Region(n int) *Region {
	l, size := &mem.regions, regionBytes(n)
	if free := l.free[size]; len(free) > 0 {
		r := free[len(free)-1]
		l.free[size] = free[:len(free)-1]
		return r
	}
	r := takeRetired(retiredKey{mem.run.GPU, size})
	if r == nil {
		if r = mem.newRegion(size); r == nil {
			return nil
		}
	}
	l.all = append(l.all, r)
	mem.hold(size)
	return r
}

func (mem *Memory) newRegion(size int) *Region {
	if mem.run.Failed() {
		return nil
	}
	mem.run.Bind()
	gpu, r := mem.run.GPU, &Region{Bytes: size}
	code := driver.Call(gpu.AllocShared, driver.Address(&r.P), uintptr(size))
	if code == driver.OutOfMemory {
		mem.takeLeft()
		mem.run.Sync()
		mem.trim(mem.times + 1)
		code = driver.Call(gpu.AllocShared, driver.Address(&r.P), uintptr(size))
	}
	if !mem.run.Check("cuMemAlloc", code) {
		return nil
	}
	if driver.Call(gpu.ShareHandle, driver.Address(&r.Handle), r.P) != 0 {
		r.Handle = Handle{}
	}
	return r
}

func takeRetired(key retiredKey) *Region {
	retired.Lock()
	defer retired.Unlock()
	free := retired.free[key]
	if len(free) == 0 {
		return nil
	}
	retired.free[key] = free[:len(free)-1]
	return free[len(free)-1]
}

func giveRetired(key retiredKey, r *Region) {
	retired.Lock()
	defer retired.Unlock()
	if retired.free == nil {
		retired.free = map[retiredKey][]*Region{}
	}
	retired.free[key] = append(retired.free[key], r)
}

// Abroad says that other processes may have the regions open.
func (mem *Memory) Abroad() { mem.regions.abroad = true }

// Lend is a matrix in a region of its own.
func (mem *Memory) Lend(t tensor.DType, rows, cols int) tensor.Matrix {
	n := rows * cols * t.Size()
	if n == 0 {
		return none(t, rows, cols)
	}
	defer mem.Enter()()
	r := mem.Region(n)
	if r == nil {
		return tensor.Unbacked(t, rows, cols)
	}
	mem.inUse.Add(int64(r.Bytes))
	b := &Block{p: r.P, bytes: n, lent: r}
	return tensor.MakeMatrix(tensor.NewBuffer(driver.Pointer(r.P), n, false, b), 0, t, rows, cols, cols)
}

// Lent is the region of a matrix of Lend; nil of others, and of one that was freed.
func Lent(m tensor.Matrix) *Region {
	if b := BlockOf(m); b != nil && !b.freed {
		return b.lent
	}
	return nil
}

// takeBack is Release of what was lent.
func (mem *Memory) takeBack(r *Region) {
	mem.inUse.Add(-int64(r.Bytes))
	if mem.regions.free == nil {
		mem.regions.free = map[int][]*Region{}
	}
	mem.regions.free[r.Bytes] = append(mem.regions.free[r.Bytes], r)
}

func (mem *Memory) closeRegions() {
	for _, r := range mem.regions.all {
		if mem.regions.abroad {
			giveRetired(retiredKey{mem.run.GPU, r.Bytes}, r)
		} else {
			driver.Call(mem.run.GPU.FreeShared, r.P)
		}
	}
}
