package memory

import (
	"unsafe"

	"starling/tensor"
	"starling/tensor/cuda/driver"
)

// swap is what left the GPU for memory of the host. A stream beside the one that computes copies it out, once all that
// was called before is done; memory of the GPU is given to others when one asks for more than is free, who then waits
// for the copies:
//
//	computing  … last use ─┐      compute      ┌─ wait ▶ next user of the memory …
//	copying                └▶ copy to the host ┘
//
// What comes back is copied on the stream that computes, before its next use.
type swap struct {
	stream, begun, done uintptr
	leaving             []released        // memory of the GPU that is still read
	free                map[int][]uintptr // pinned memory of the host, by size
	all                 []uintptr
}

// Evict has a matrix of Scratch leave for pinned memory of the host, and what the host has no such memory for to save.
func (mem *Memory) Evict(m tensor.Matrix, save func(bytes []byte) error) (bool, error) {
	if mem.run.Failed() {
		return false, mem.run.Err()
	}
	b := BlockOf(m)
	if b == nil || b.host || b.lent != nil || b.from != nil || b.freed || b.gone || int(m.Bytes()) != b.bytes {
		return false, nil
	}
	tensor.Need(!mem.run.Aside(), "cuda: Evict of %v while what a later step reads is brought", m)
	defer mem.Enter()()
	if err := mem.copyAway(b, save); err != nil {
		return false, err
	}
	b.p, b.gone = 0, true
	tensor.BufferOf(m).Move(nil)
	return true, nil
}

// copyAway copies a block to the host and frees its memory.
func (mem *Memory) copyAway(b *Block, save func(bytes []byte) error) error {
	mem.run.Settle()
	s, run := &mem.swap, mem.run
	if b.away = mem.hostPiece(b.bytes); b.away == 0 {
		bytes := make([]byte, b.bytes)
		if mem.CopyOut(unsafe.Pointer(&bytes[0]), b.p, b.bytes); run.Failed() {
			return run.Err()
		}
		if err := save(bytes); err != nil {
			return err
		}
		mem.give(&mem.own, b.p, b.bytes)
		return nil
	}
	if s.stream == 0 {
		const nonBlocking = 1
		run.Do("cuStreamCreate", run.GPU.StreamCreate, driver.Address(&s.stream), nonBlocking)
		s.begun, s.done = run.Event(false), run.Event(false)
	}
	run.Record(s.begun, run.Handle)
	run.After(s.begun, s.stream)
	run.Do("cuMemcpyDtoHAsync", run.GPU.CopyOut, b.away, b.p, uintptr(b.bytes), s.stream)
	size := mem.sizeOf(b.bytes)
	s.leaving = append(s.leaving, released{&mem.own, b.p, size})
	mem.inUse.Add(-int64(size))
	return run.Err()
}

// hostPiece is pinned memory of the host; 0 where the driver gives none, or an eighth of the host's would not stay free.
func (mem *Memory) hostPiece(n int) (p uintptr) {
	s, size := &mem.swap, rounded(n)
	if free := s.free[size]; len(free) > 0 {
		p, s.free[size] = free[len(free)-1], free[:len(free)-1]
		return p
	}
	if free := tensor.MemoryFree(); free > 0 && free-int64(size) < tensor.MemoryTotal()/8 {
		return 0
	}
	if driver.Call(mem.run.GPU.AllocHost, driver.Address(&p), uintptr(size)) != 0 {
		return 0
	}
	s.all = append(s.all, p)
	return p
}

// forget gives a block's memory of the host to the next that leaves, which is copied after what was called so far.
func (mem *Memory) forget(b *Block) {
	if b.away == 0 {
		return
	}
	if mem.swap.free == nil {
		mem.swap.free = map[int][]uintptr{}
	}
	size := rounded(b.bytes)
	mem.swap.free[size] = append(mem.swap.free[size], b.away)
	b.away = 0
}

// Restore brings an evicted matrix back, to other memory of the GPU.
func (mem *Memory) Restore(m tensor.Matrix, load func(bytes []byte) error) error {
	b := BlockOf(m)
	tensor.Need(b != nil && b.gone && !b.freed && !mem.run.Aside(), "cuda: Restore of %v, which was not evicted", m)
	defer mem.Enter()()
	mem.run.Settle()
	mem.takeLeft()
	p := mem.take(&mem.own, b.bytes)
	if p == 0 {
		return mem.run.Err()
	}
	b.p, b.gone = p, false
	tensor.BufferOf(m).Move(driver.Pointer(p))
	if b.away != 0 {
		mem.queueIn(p, driver.Pointer(b.away), b.bytes)
		mem.forget(b)
		return mem.run.Err()
	}
	bytes := make([]byte, b.bytes)
	if err := load(bytes); err != nil {
		return err
	}
	mem.CopyIn(p, unsafe.Pointer(&bytes[0]), b.bytes)
	return mem.run.Err()
}

// takeLeft has the memory of what left be used by others, after the copies of it, and reports whether there was any.
func (mem *Memory) takeLeft() bool {
	s, run := &mem.swap, mem.run
	if len(s.leaving) == 0 {
		return false
	}
	run.Bind()
	run.Record(s.done, s.stream)
	if run.Aside() { // both streams may use it
		run.Do("cuEventSynchronize", run.GPU.EventSync, s.done)
	} else {
		run.After(s.done, run.Handle)
	}
	for _, r := range s.leaving {
		if !run.Aside() {
			mem.spoil(r.p, r.size)
		}
		mem.put(r.to, r.p, r.size)
	}
	s.leaving = s.leaving[:0]
	return true
}

// closeSwap gives the host's memory back. REQUIRES: the thread is the GPU's.
func (mem *Memory) closeSwap() {
	s, gpu := &mem.swap, mem.run.GPU
	if s.stream != 0 {
		driver.Call(gpu.StreamSync, s.stream)
		driver.Call(gpu.EventDestroy, s.begun)
		driver.Call(gpu.EventDestroy, s.done)
		driver.Call(gpu.StreamDestroy, s.stream)
	}
	for _, p := range s.all {
		driver.Call(gpu.FreeHost, p)
	}
}
