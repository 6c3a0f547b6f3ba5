package memory

import (
	"runtime"
	"slices"

	"starling/tensor/cuda/driver"
)

// arena is memory of the GPU for large pieces. Addresses are reserved once, and memory of the driver is put under
// them as more is needed, so that pieces of all sizes share it: what is freed is joined with its neighbours. (Pieces
// kept by size hold the most of each size that was ever in use, although an epoch never needs these at once: a
// seventh of a run's memory on arxiv, a third on reddit.)
//
// The smallest hole that fits is taken, and of those the lowest: a step that comes again has its matrices in the same
// places, and its graph needs no new arguments.
type arena struct {
	base, limit uintptr // addresses that are reserved; 0: the driver cannot, and segments are apart
	end         uintptr // memory is under those below
	high        uintptr // the highest that was used since it was last asked
	segments    []span  // memory of the driver, in order of addresses
	free        []span  // holes, in order of addresses
}

// span is n bytes from an address on.
type span struct {
	p uintptr
	n int
}

func (s span) end() uintptr { return s.p + uintptr(s.n) }

const (
	largePiece  = 1 << 20 // what is smaller is kept by size
	leastGrowth = 8 << 20
	grain       = 2 << 20 // the driver's, of memory that is put under addresses
)

func below(s span, p uintptr) int {
	switch {
	case s.p < p:
		return -1
	case s.p > p:
		return 1
	}
	return 0
}

// take is the best hole's first bytes; 0 where none is large enough.
func (a *arena) take(n int) uintptr {
	best := -1
	for i, s := range a.free {
		if s.n >= n && (best < 0 || s.n < a.free[best].n) {
			best = i
		}
	}
	if best < 0 {
		return 0
	}
	s := &a.free[best]
	p := s.p
	if s.p, s.n = s.p+uintptr(n), s.n-n; s.n == 0 {
		a.free = slices.Delete(a.free, best, best+1)
	}
	a.high = max(a.high, p+uintptr(n))
	return p
}

// give joins a piece that was freed with the holes beside it.
func (a *arena) give(p uintptr, n int) {
	i, _ := slices.BinarySearchFunc(a.free, p, below)
	a.free = slices.Insert(a.free, i, span{p, n})
	if i+1 < len(a.free) && a.touch(a.free[i], a.free[i+1]) {
		a.free[i].n += a.free[i+1].n
		a.free = slices.Delete(a.free, i+1, i+2)
	}
	if i > 0 && a.touch(a.free[i-1], a.free[i]) {
		a.free[i-1].n += a.free[i].n
		a.free = slices.Delete(a.free, i, i+1)
	}
}

// touch reports whether a piece may lie over both: where addresses are not reserved, segments are apart even if
// their addresses follow each other.
func (a *arena) touch(s, t span) bool {
	if s.end() != t.p {
		return false
	}
	if a.base != 0 {
		return true
	}
	_, begins := slices.BinarySearchFunc(a.segments, t.p, below)
	return !begins
}

// growth is how much more is needed for n bytes: the hole at the end is a part of it.
func (a *arena) growth(n int) int {
	if last := len(a.free) - 1; a.base != 0 && last >= 0 && a.free[last].end() == a.end {
		n -= a.free[last].n
	}
	return (max(n, leastGrowth) + grain - 1) &^ (grain - 1)
}

// grow adds a segment.
func (a *arena) grow(s span) {
	i, _ := slices.BinarySearchFunc(a.segments, s.p, below)
	a.segments = slices.Insert(a.segments, i, s)
	a.end = max(a.end, s.end())
	a.give(s.p, s.n)
}

// unused takes out segments in which nothing is, and of those above an address only where addresses are reserved:
// those below may be holes for a moment.
func (a *arena) unused(above uintptr) (all []span) {
	for i := len(a.segments) - 1; i >= 0; i-- {
		s := a.segments[i]
		k, _ := slices.BinarySearchFunc(a.free, s.p+1, below)
		if k--; k < 0 || a.free[k].end() < s.end() || s.p < above {
			if a.base != 0 {
				break // addresses stay in one piece
			}
			continue
		}
		hole := a.free[k]
		a.free = slices.Delete(a.free, k, k+1)
		for _, rest := range []span{{hole.p, int(s.p - hole.p)}, {s.end(), int(hole.end() - s.end())}} {
			if rest.n > 0 {
				i, _ := slices.BinarySearchFunc(a.free, rest.p, below)
				a.free = slices.Insert(a.free, i, rest)
			}
		}
		a.segments = slices.Delete(a.segments, i, i+1)
		if a.base != 0 {
			a.end = s.p
		}
		all = append(all, s)
	}
	return all
}

// accessDesc is the driver's CUmemAccessDesc, allocationProp its CUmemAllocationProp.
type accessDesc struct{ kind, id, flags int32 }

type allocationProp struct {
	kind, handles       int32
	location            struct{ kind, id int32 }
	security            uintptr
	compression, direct uint8
	usage               uint16
	_                   [4]uint8
}

const onDevice, pinnedMemory, readWrite = 1, 1, 3

// takeLarge is memory of the arena; 0 where the device failed.
func (mem *Memory) takeLarge(n int) uintptr {
	a := &mem.arena
	for try := 0; ; try++ {
		if p := a.take(n); p != 0 {
			return p
		}
		mem.run.Bind()
		if a.end == 0 {
			mem.reserve(a)
		}
		code := mem.growArena(a, a.growth(n))
		if code == 0 {
			continue
		}
		if code != driver.OutOfMemory || try >= 2 {
			mem.run.Check("cuMemCreate", code)
			return 0
		}
		mem.makeRoom(try)
	}
}

// reserve asks for addresses: twice the memory of the GPU.
func (mem *Memory) reserve(a *arena) {
	if mem.run.GPU.ReserveAddresses == 0 {
		return
	}
	n := uintptr(2*mem.run.GPU.Memory+grain-1) &^ (grain - 1)
	if driver.Call(mem.run.GPU.ReserveAddresses, driver.Address(&a.base), n, grain, 0, 0) != 0 {
		a.base = 0
		return
	}
	a.end, a.limit = a.base, a.base+n
}

// growArena takes a segment of the driver.
func (mem *Memory) growArena(a *arena, n int) (code uintptr) {
	var p uintptr
	if a.base == 0 {
		if code = driver.Call(mem.run.GPU.AllocAsync, driver.Address(&p), uintptr(n), mem.run.Handle); code == 0 {
			a.grow(span{p, n})
			mem.hold(n)
		}
		return code
	}
	if a.end+uintptr(n) > a.limit {
		return driver.OutOfMemory
	}
	var handle uint64
	prop := &allocationProp{kind: pinnedMemory}
	prop.location.kind, prop.location.id = onDevice, mem.run.GPU.Handle
	if code = driver.Call(mem.run.GPU.CreateMemory, driver.Address(&handle), uintptr(n), driver.Address(prop), 0); code != 0 {
		return code
	}
	runtime.KeepAlive(prop)
	code = driver.Call(mem.run.GPU.MapMemory, a.end, uintptr(n), 0, uintptr(handle), 0)
	driver.Call(mem.run.GPU.ReleaseMemory, uintptr(handle)) // it is there as long as it is under addresses
	if code != 0 {
		return code
	}
	access := &accessDesc{onDevice, mem.run.GPU.Handle, readWrite}
	if code = driver.Call(mem.run.GPU.AllowAccess, a.end, uintptr(n), driver.Address(access), 1); code != 0 {
		driver.Call(mem.run.GPU.UnmapMemory, a.end, uintptr(n))
		return code
	}
	runtime.KeepAlive(access)
	a.grow(span{a.end, n})
	mem.hold(n)
	return 0
}

// shrinkArena gives segments above an address, in which nothing is, back to the driver. REQUIRES: the stream was
// waited for.
func (mem *Memory) shrinkArena(above uintptr) {
	a := &mem.arena
	for _, s := range a.unused(above) {
		mem.giveSegment(s)
		mem.held -= int64(s.n)
	}
}

func (mem *Memory) giveSegment(s span) {
	if mem.arena.base == 0 {
		driver.Call(mem.run.GPU.FreeAsync, s.p, mem.run.Handle)
		return
	}
	driver.Call(mem.run.GPU.UnmapMemory, s.p, uintptr(s.n))
}

// closeArena gives all back.
func (mem *Memory) closeArena() {
	a := &mem.arena
	for _, s := range a.segments {
		mem.giveSegment(s)
	}
	if a.base != 0 {
		driver.Call(mem.run.GPU.FreeAddresses, a.base, a.limit-a.base)
	}
}
