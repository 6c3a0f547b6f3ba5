package memory

import (
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"starling/tensor"
	"starling/tensor/cuda/driver"
)

// lane is a stream beside the one that computes, on which what a later step reads is copied and gathered. Memory is
// safe there by two rules: the lane begins when all that was called before is done, since what it takes may have been
// freed by that; and what is freed there goes back when the step that waits for it begins.
type lane struct {
	stream, begun uintptr
	ring          ring
	done          []uintptr // events that no step waits for
	fed           *fed      // whose operations are called now
}

// released is a piece that is not yet in its pool.
type released struct {
	to   *pool
	p    uintptr
	size int
}

// fed is what was called ahead for a step.
type fed struct {
	mem     *Memory
	event   uintptr
	blocks  []*Block   // of FromHost
	freed   []released // by what was called ahead
	parcels []arrived
}

// arrived is a parcel on the GPU: it is copied at once when the first of its slices is asked for.
type arrived struct {
	of *parcel
	on *Block
}

// Ahead calls f, whose operations run on the lane. Where kernels are timed, they run as all others do.
func (mem *Memory) Ahead(f func()) tensor.Fed {
	defer mem.Enter()()
	t := &fed{mem: mem}
	l, run := &mem.lane, mem.run
	if run.Profiled() {
		f()
		return t
	}
	run.Settle()
	if l.stream == 0 {
		const nonBlocking = 1
		run.Do("cuStreamCreate", run.GPU.StreamCreate, driver.Address(&l.stream), nonBlocking)
		l.begun = run.Event(false)
	}
	run.Record(l.begun, run.Handle)
	run.After(l.begun, l.stream)
	l.fed = t
	mem.ring, l.ring = l.ring, mem.ring
	run.Beside(l.stream, f)
	l.fed = nil
	mem.ring, l.ring = l.ring, mem.ring
	if n := len(l.done); n > 0 {
		t.event, l.done = l.done[n-1], l.done[:n-1]
	} else {
		t.event = run.Event(false)
	}
	run.Record(t.event, l.stream)
	for _, a := range t.parcels {
		a.of.sent(l.stream)
	}
	return t
}

// Join has what is called from now on wait for the lane.
func (t *fed) Join() {
	mem := t.mem
	defer mem.Enter()()
	if t.event == 0 {
		return
	}
	mem.run.Settle()
	mem.run.After(t.event, mem.run.Handle)
	mem.lane.done, t.event = append(mem.lane.done, t.event), 0
	for _, r := range t.freed {
		mem.put(r.to, r.p, r.size)
	}
	t.freed = nil
}

// Free gives back what FromHost copied.
func (t *fed) Free() {
	defer t.mem.Enter()()
	for _, b := range t.blocks {
		if !b.freed {
			t.mem.unhand(b)
		}
	}
	t.blocks = nil
}

// Keep has a matrix of FromHost outlive the step that it was made ahead of.
func (mem *Memory) Keep(m tensor.Matrix) {
	if b := BlockOf(m); b != nil && mem.run.Aside() {
		t := mem.lane.fed
		t.blocks = slices.DeleteFunc(t.blocks, func(x *Block) bool { return x == b })
	}
}

// parcels are the copies of host slices that wait in pinned memory, by where the slices are.
type parcels struct {
	sync.Mutex
	of  map[unsafe.Pointer]packed
	all []*parcel
}

func newParcels() parcels { return parcels{of: map[unsafe.Pointer]packed{}} }

type packed struct {
	in    *parcel
	first int // byte
	n     int
}

// parcel is pinned memory with copies of a batch's slices, made by who prepared the batch: FromHost of such a slice
// has the GPU read the copy, and the goroutine that computes copies nothing.
type parcel struct {
	mem   *Memory
	p     uintptr
	size  int
	used  int
	keys  []unsafe.Pointer
	event uintptr // the GPU has read what was there
	busy  bool
}

// NewParcel is called by any goroutine.
func (mem *Memory) NewParcel() tensor.Parcel {
	p := &parcel{mem: mem}
	mem.parcels.Lock()
	defer mem.parcels.Unlock()
	mem.parcels.all = append(mem.parcels.all, p)
	return p
}

// Pack copies slices, in place of those before.
func (p *parcel) Pack(list ...any) {
	mem := p.mem
	err := mem.run.GPU.OnThread(mem.run.GPU.Context, func() error { return p.reserve(list) })
	if err != nil { // without it FromHost copies
		return
	}
	found := map[unsafe.Pointer]packed{}
	for _, s := range list {
		from, n := hostSlice(s)
		if n == 0 {
			continue
		}
		to := unsafe.Add(driver.Pointer(p.p), p.used)
		copy(unsafe.Slice((*byte)(to), n), unsafe.Slice((*byte)(from), n))
		found[from] = packed{p, p.used, n}
		p.keys = append(p.keys, from)
		p.used += rounded(n)
	}
	runtime.KeepAlive(list)
	mem.parcels.Lock()
	defer mem.parcels.Unlock()
	for k, v := range found {
		mem.parcels.of[k] = v
	}
}

// reserve waits until the GPU has read what was there, forgets it, and makes sure of enough memory.
func (p *parcel) reserve(list []any) error {
	gpu := p.mem.run.GPU
	if p.busy {
		if code := driver.Call(gpu.EventSync, p.event); code != 0 {
			return gpu.Failure("cuEventSynchronize", code)
		}
		p.busy = false
	}
	p.mem.parcels.Lock()
	for _, k := range p.keys {
		delete(p.mem.parcels.of, k)
	}
	p.mem.parcels.Unlock()
	p.keys, p.used = p.keys[:0], 0
	need := 0
	for _, s := range list {
		_, n := hostSlice(s)
		need += rounded(n)
	}
	if need <= p.size {
		return nil
	}
	if p.p != 0 {
		driver.Call(gpu.FreeHost, p.p)
	}
	p.p, p.size = 0, 0
	var at uintptr
	if code := driver.Call(gpu.AllocHost, driver.Address(&at), uintptr(need+need/4)); code != 0 {
		return gpu.Failure("cuMemAllocHost", code)
	}
	p.p, p.size = at, need+need/4
	return nil
}

// sent marks the parcel as read when a stream has come here. REQUIRES: the thread is the GPU's.
func (p *parcel) sent(stream uintptr) {
	if p.event == 0 {
		p.event = p.mem.run.Event(false)
	}
	p.busy = p.mem.run.Record(p.event, stream)
}

// packedCopy is a host slice on the GPU, as a part of its parcel, if it has one; nil: it has none.
func (mem *Memory) packedCopy(from unsafe.Pointer, n int) *Block {
	if !mem.run.Aside() {
		return nil
	}
	mem.parcels.Lock()
	c, ok := mem.parcels.of[from]
	mem.parcels.Unlock()
	if !ok || c.n != n {
		return nil
	}
	on := mem.arrive(c.in)
	if on == nil {
		return nil
	}
	return &Block{p: on.p + uintptr(c.first), bytes: n, within: on}
}

// arrive is a parcel on the GPU; nil where the device failed.
func (mem *Memory) arrive(p *parcel) *Block {
	t := mem.lane.fed
	for _, a := range t.parcels {
		if a.of == p {
			return a.on
		}
	}
	b := &Block{p: mem.take(&mem.handed, p.used), bytes: p.used}
	if b.p == 0 {
		return nil
	}
	mem.queueIn(b.p, driver.Pointer(p.p), p.used)
	t.blocks, t.parcels = append(t.blocks, b), append(t.parcels, arrived{p, b})
	return b
}

// hostSlice is where a slice is, and how many bytes it has.
func hostSlice(s any) (unsafe.Pointer, int) {
	switch h := s.(type) {
	case []float32:
		return unsafe.Pointer(unsafe.SliceData(h)), 4 * len(h)
	case []uint16:
		return unsafe.Pointer(unsafe.SliceData(h)), 2 * len(h)
	case []uint32:
		return unsafe.Pointer(unsafe.SliceData(h)), 4 * len(h)
	case []int64:
		return unsafe.Pointer(unsafe.SliceData(h)), 8 * len(h)
	}
	return nil, 0
}

// closeLane gives the lane's memory and the parcels' back. REQUIRES: the thread is the GPU's.
func (mem *Memory) closeLane() {
	l, gpu := &mem.lane, mem.run.GPU
	if l.stream != 0 {
		driver.Call(gpu.StreamSync, l.stream)
	}
	for _, p := range mem.parcels.all {
		if p.p != 0 {
			driver.Call(gpu.FreeHost, p.p)
		}
		if p.event != 0 {
			driver.Call(gpu.EventDestroy, p.event)
		}
	}
	mem.parcels.all, mem.parcels.of = nil, nil
	if l.stream == 0 {
		return
	}
	l.ring.close(gpu)
	for _, e := range append(l.done, l.begun) {
		driver.Call(gpu.EventDestroy, e)
	}
	driver.Call(gpu.StreamDestroy, l.stream)
}
