// Package memory is the layer of tensor/cuda that has a device's memory: on the GPU, where large pieces share an arena
// and small ones are kept by size, and on the host, where the GPU reads and writes it by itself. It copies between the
// two, also on a stream beside the one that computes (lane.go).
package memory

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"starling/tensor/cuda/driver"
	"starling/tensor/cuda/execution"
)

// Memory keeps account of a device's memory. What it took from the driver stays with it for the next that asks.
type Memory struct {
	run         *execution.Stream
	inUse, peak atomic.Int64
	strict      bool
	pinned      []uintptr         // host memory of Pinned
	held        int64             // taken from the driver, and for staging
	arena       arena             // large pieces
	live        map[uintptr]int   // small pieces
	own, handed pool              // those that are free: of Scratch, and of FromHost
	times       int               // that the host has waited
	staging     map[int][]uintptr // host memory that was freed, by size
	reading     []*Block          // the same, while the GPU may still read it
	stagings    map[uintptr]int   // all of it, by address

	mu struct {
		sync.Mutex
		lost   []lost // by the garbage collector's doing, to be freed
		closed bool
	}
	ring    ring
	fresh   int64 // bytes of FromHost since the collector was last asked to look
	lane    lane
	swap    swap
	parcels parcels
	regions regions
}

// New is the memory of a device, for operations on a stream.
func New(run *execution.Stream) *Memory {
	mem := &Memory{run: run, strict: os.Getenv(strictNamed) != "", staging: map[int][]uintptr{},
		stagings: map[uintptr]int{}, live: map[uintptr]int{}, own: pool{map[int][]piece{}},
		handed: pool{map[int][]piece{}}, parcels: newParcels()}
	run.Waited = func() {
		mem.reread()
		mem.tidy()
	}
	return mem
}

// Enter begins an operation, and takes back what is no longer reachable. What it returns ends the operation.
func (mem *Memory) Enter() (leave func()) {
	leave = mem.run.Enter()
	mem.drain()
	return leave
}

// lost is memory whose last handle is gone.
type lost struct {
	p     uintptr
	bytes int
}

// Usage is what is in use, and how much was taken of the GPU at most.
func (mem *Memory) Usage() (inUse, peak int64) { return mem.inUse.Load(), mem.peak.Load() }

// take is n bytes on the GPU, of the arena, a pool or the driver; 0 where the device failed.
func (mem *Memory) take(from *pool, n int) uintptr {
	if mem.run.Failed() {
		return 0
	}
	size := mem.sizeOf(n)
	mem.inUse.Add(int64(size))
	if p := mem.found(from, size); p != 0 {
		return p
	}
	if mem.takeLeft() {
		if p := mem.found(from, size); p != 0 {
			return p
		}
	}
	if mem.large(size) {
		return mem.takeLarge(size)
	}
	return mem.takeSmall(size)
}

// found is memory that is free; 0 where none is.
func (mem *Memory) found(from *pool, size int) uintptr {
	if mem.large(size) {
		return mem.arena.take(size)
	}
	return from.take(size)
}

// large reports whether a piece is of the arena. Tests have every piece of the driver, which knows where it ends.
func (mem *Memory) large(size int) bool { return size >= largePiece && !mem.strict }

// takeSmall is memory of the driver.
func (mem *Memory) takeSmall(size int) (p uintptr) {
	mem.run.Bind()
	for try := 0; ; try++ {
		code := driver.Call(mem.run.GPU.AllocAsync, driver.Address(&p), uintptr(size), mem.run.Handle)
		if code == 0 {
			mem.live[p] = size
			mem.hold(size)
			return p
		}
		if code != driver.OutOfMemory || try == 2 {
			mem.run.Check("cuMemAllocAsync", code)
			return 0
		}
		mem.makeRoom(try)
	}
}

// makeRoom gives what is free here back to the driver, and looks for what the collector has not yet found.
func (mem *Memory) makeRoom(try int) {
	if try == 1 {
		runtime.GC()
		mem.drain()
	}
	mem.run.Sync()
	if mem.run.Aside() {
		mem.run.WaitMain()
	}
	mem.trim(mem.times + 1)
	mem.shrinkArena(0)
}

// hold counts what was taken.
func (mem *Memory) hold(n int) {
	mem.held += int64(n)
	mem.peak.Store(max(mem.peak.Load(), mem.held))
}

// keepFor is how many times the host waits before memory that was not taken again goes back to the driver.
const keepFor = 256

// tidy gives back what was not taken for a while. REQUIRES: nothing is held back, and the stream was waited for.
func (mem *Memory) tidy() {
	if mem.times++; mem.times%keepFor == 0 {
		mem.trim(mem.times - keepFor)
		mem.shrinkArena(mem.arena.high)
		mem.arena.high = 0
	}
}

// trim gives what has been free since before some time back to the driver. REQUIRES: nothing is held back.
func (mem *Memory) trim(before int) {
	for _, l := range append(mem.own.old(before), mem.handed.old(before)...) {
		if !mem.run.Do("cuMemFreeAsync", mem.run.GPU.FreeAsync, l.p, mem.run.Handle) {
			return
		}
		delete(mem.live, l.p)
		mem.held -= int64(l.bytes)
	}
}

// give has n bytes be used by the next that asks.
func (mem *Memory) give(to *pool, p uintptr, n int) {
	size := mem.sizeOf(n)
	mem.inUse.Add(-int64(size))
	mem.spoil(p, size)
	if mem.run.Aside() {
		t := mem.lane.fed
		t.freed = append(t.freed, released{to, p, size})
		return
	}
	mem.put(to, p, size)
}

// spoil fills what is freed, in tests.
func (mem *Memory) spoil(p uintptr, size int) {
	if mem.strict {
		mem.run.Library("cuMemsetD8Async", mem.run.GPU.Fill, uint64(p), 0xff, uint64(size), uint64(mem.run.Handle))
	}
}

// put puts a piece where it came from.
func (mem *Memory) put(to *pool, p uintptr, size int) {
	if mem.large(size) {
		mem.arena.give(p, size)
		return
	}
	to.give(p, size, mem.times)
}

// drain takes back what the collector has found.
func (mem *Memory) drain() {
	mem.mu.Lock()
	all := mem.mu.lost
	mem.mu.lost = nil
	mem.mu.Unlock()
	for _, l := range all {
		size := mem.sizeOf(l.bytes)
		mem.inUse.Add(-int64(size))
		mem.put(&mem.handed, l.p, size)
	}
}

// lose is called by the collector.
func (mem *Memory) lose(l lost) {
	mem.mu.Lock()
	defer mem.mu.Unlock()
	if !mem.mu.closed {
		mem.mu.lost = append(mem.mu.lost, l)
	}
}

// Workspace is n bytes of the GPU that a library keeps; 0 where the device failed.
func (mem *Memory) Workspace(n int) uintptr { return mem.take(&mem.own, n) }

// Drain waits for the streams beside the one that computes, and gives what they have back.
// REQUIRES: the thread is the GPU's, and the stream was drained.
func (mem *Memory) Drain() {
	mem.closeLane()
	mem.closeSwap()
	mem.mu.Lock()
	mem.mu.closed = true
	mem.mu.Unlock()
}

// Close gives all memory back. REQUIRES: Drain, and nothing else reads it.
func (mem *Memory) Close() {
	gpu := mem.run.GPU
	mem.closeRegions()
	for p := range mem.live {
		driver.Call(gpu.FreeAsync, p, mem.run.Handle)
	}
	mem.reread()
	mem.closeArena()
	for _, free := range mem.staging {
		for _, p := range free {
			driver.Call(gpu.FreeHost, p)
		}
	}
	for _, p := range mem.pinned {
		driver.Call(gpu.FreeHost, p)
	}
	mem.ring.close(gpu)
}
