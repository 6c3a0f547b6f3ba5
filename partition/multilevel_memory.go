package partition

import (
	"sync"
	"unsafe"
)

// mlMemory hands out the arrays of a run. They live outside the garbage collector's
// heap: it would let twice as much pile up before it looks, and arrays made larger than
// needed (contraction) cost only the pages that are touched. Large ones are the system's,
// each by itself, small ones an arena's: cutting a small graph makes thousands.
type mlMemory struct {
	mu struct {
		sync.Mutex
		live  map[unsafe.Pointer][]byte // the large ones
		arena mlArena
	}
}

// mlSmallBelow bytes an array comes from the arena.
const mlSmallBelow = 1 << (mlChunkBits - 2)

// mlMake returns n zeroes, on huge pages if the system has them: most reads of
// these arrays are at random, and each would miss the page tables too.
func mlMake[T any](m *mlMemory, n int) []T { return mlMakeOn[T](m, n, true) }

// mlMakeSparse is mlMake for an array of which not all will be touched. It holds anything:
// what is read must have been written.
func mlMakeSparse[T any](m *mlMemory, n int) []T { return mlMakeOn[T](m, n, false) }

func mlMakeOn[T any](m *mlMemory, n int, whole bool) []T {
	var zero T
	size := n * int(unsafe.Sizeof(zero))
	if size == 0 {
		return nil
	}
	if size < mlSmallBelow {
		m.mu.Lock()
		defer m.mu.Unlock()
		return unsafe.Slice((*T)(m.mu.arena.take(size, whole)), n)
	}
	if !whole || size < mlHuge {
		return mlKeep[T](m, mlMap(size), 0, n)
	}
	raw := mlMap(size + mlHuge)
	if raw == nil {
		return make([]T, n)
	}
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(raw)))) & (mlHuge - 1)
	mlAdviseHuge(raw[skip : skip+size/mlHuge*mlHuge])
	return mlKeep[T](m, raw, skip, n)
}

// mlHuge is the size of a huge page.
const mlHuge = 2 << 20

// mlKeep remembers what the system gave, and makes n elements of it from skip on.
func mlKeep[T any](m *mlMemory, raw []byte, skip, n int) []T {
	if raw == nil {
		return make([]T, n)
	}
	at := unsafe.Pointer(&raw[skip])
	m.mu.Lock()
	if m.mu.live == nil {
		m.mu.live = map[unsafe.Pointer][]byte{}
	}
	m.mu.live[at] = raw
	m.mu.Unlock()
	return unsafe.Slice((*T)(at), n)
}

// mlFree gives an array back. Nobody may hold a part of it any more.
func mlFree[T any](m *mlMemory, s []T) {
	if cap(s) == 0 {
		return
	}
	at := unsafe.Pointer(unsafe.SliceData(s))
	m.mu.Lock()
	raw := m.mu.live[at]
	if !m.mu.arena.give(at) {
		delete(m.mu.live, at)
	}
	m.mu.Unlock()
	if raw != nil {
		mlUnmap(raw)
	}
}

// mlShrink gives back the memory of s beyond its first n elements.
func mlShrink[T any](m *mlMemory, s []T, n int) []T {
	at := unsafe.Pointer(unsafe.SliceData(s))
	var zero T
	size := n * int(unsafe.Sizeof(zero))
	m.mu.Lock()
	raw := m.mu.live[at]
	m.mu.arena.shrink(at, size)
	m.mu.Unlock()
	const page = 4096
	if keep := (size + page - 1) / page * page; keep < len(raw) {
		mlRelease(raw[keep:])
	}
	return s[:n:n]
}

// freeAll gives everything back.
func (m *mlMemory) freeAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, raw := range m.mu.live {
		mlUnmap(raw)
	}
	m.mu.live = nil
	m.mu.arena.free()
}
