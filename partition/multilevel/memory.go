package multilevel

import (
	"sync"
	"unsafe"
)

// memory allocates the arrays of a run. They live outside the garbage collector's heap,
// which would grow to twice what is in use before a collection; and arrays made larger than
// needed (in contraction) cost only the pages that are touched. A large array is a mapping
// of its own; small ones come from an arena, since a small graph needs thousands.
type memory struct {
	mu struct {
		sync.Mutex
		live  map[unsafe.Pointer][]byte // the large ones
		arena buddyArena
	}
}

// arenaLimit is the size in bytes below which an array comes from the arena.
const arenaLimit = 1 << (chunkBits - 2)

// makeZeroed returns n zeroes, on huge pages if the system has them: most accesses are
// random, and would miss the TLB otherwise.
func makeZeroed[T any](m *memory, n int) []T { return allocate[T](m, n, true) }

// makeUnzeroed is makeZeroed for an array of which not all will be touched. Its contents are
// undefined until written.
func makeUnzeroed[T any](m *memory, n int) []T { return allocate[T](m, n, false) }

func allocate[T any](m *memory, n int, whole bool) []T {
	var zero T
	size := n * int(unsafe.Sizeof(zero))
	if size == 0 {
		return nil
	}
	if size < arenaLimit {
		m.mu.Lock()
		defer m.mu.Unlock()
		return unsafe.Slice((*T)(m.mu.arena.take(size, whole)), n)
	}
	if !whole || size < hugePage {
		return keepMapping[T](m, mapPages(size), 0, n)
	}
	raw := mapPages(size + hugePage)
	if raw == nil {
		return make([]T, n)
	}
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(raw)))) & (hugePage - 1)
	adviseHuge(raw[skip : skip+size/hugePage*hugePage])
	return keepMapping[T](m, raw, skip, n)
}

// hugePage is the size of a huge page.
const hugePage = 2 << 20

// keepMapping remembers a mapping, and makes n elements of it from skip on.
func keepMapping[T any](m *memory, raw []byte, skip, n int) []T {
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

// free gives an array back. Nothing may refer to it any more.
func free[T any](m *memory, s []T) {
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
		unmapPages(raw)
	}
}

// shrink gives back the memory of s beyond its first n elements.
func shrink[T any](m *memory, s []T, n int) []T {
	at := unsafe.Pointer(unsafe.SliceData(s))
	var zero T
	size := n * int(unsafe.Sizeof(zero))
	m.mu.Lock()
	raw := m.mu.live[at]
	m.mu.arena.shrink(at, size)
	m.mu.Unlock()
	const page = 4096
	if keep := (size + page - 1) / page * page; keep < len(raw) {
		releasePages(raw[keep:])
	}
	return s[:n:n]
}

// freeAll gives everything back.
func (m *memory) freeAll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, raw := range m.mu.live {
		unmapPages(raw)
	}
	m.mu.live = nil
	m.mu.arena.free()
}

// renew replaces s by n zeroes.
func renew[T any](m *memory, s []T, n int) []T {
	free(m, s)
	return makeZeroed[T](m, n)
}

// resize returns n zeroes, in the memory of s if they fit. Both are on the ordinary heap.
func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n, n+n/2)
	}
	s = s[:n]
	clear(s)
	return s
}
