package partition

import (
	"math/bits"
	"sync"
	"unsafe"
)

// mlMemory hands out the large arrays of a run. They live outside the garbage
// collector's heap: it would let twice as much pile up before it looks, and arrays
// made larger than needed (contraction) cost only the pages that are touched.
//
// Small arrays come from the heap, and are kept for the next one of about their
// size: cutting a small graph makes thousands, and collecting them would take as
// long as the work itself.
type mlMemory struct {
	mu struct {
		sync.Mutex
		live  map[unsafe.Pointer][]byte
		small map[unsafe.Pointer][]uint64
		spare [mlHeapBits + 1][][]uint64 // by the magnitude of their size
	}
}

// mlHeapBelow bytes an array comes from the heap.
const (
	mlHeapBits  = 18
	mlHeapBelow = 1 << mlHeapBits
)

// mlMake returns n zeroes, on huge pages if the system has them: most reads of
// these arrays are at random, and each would miss the page tables too.
func mlMake[T any](m *mlMemory, n int) []T { return mlMakeOn[T](m, n, true) }

// mlMakeSparse is mlMake for an array of which not all will be touched.
func mlMakeSparse[T any](m *mlMemory, n int) []T { return mlMakeOn[T](m, n, false) }

func mlMakeOn[T any](m *mlMemory, n int, huge bool) []T {
	var zero T
	size := n * int(unsafe.Sizeof(zero))
	if size == 0 {
		return nil
	}
	if size < mlHeapBelow {
		return unsafe.Slice((*T)(m.reuse(size)), n)
	}
	if !huge || size < mlHuge {
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

// reuse gives size zero bytes, in memory that was freed before if there is any.
func (m *mlMemory) reuse(size int) unsafe.Pointer {
	magnitude := max(bits.Len(uint(size-1)), 3)
	m.mu.Lock()
	defer m.mu.Unlock()
	var raw []uint64
	if spare := m.mu.spare[magnitude]; len(spare) > 0 {
		raw = spare[len(spare)-1]
		m.mu.spare[magnitude] = spare[:len(spare)-1]
		clear(raw[:(size+7)/8])
	} else {
		raw = make([]uint64, 1<<magnitude/8)
	}
	if m.mu.small == nil {
		m.mu.small = map[unsafe.Pointer][]uint64{}
	}
	at := unsafe.Pointer(unsafe.SliceData(raw))
	m.mu.small[at] = raw
	return at
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
	delete(m.mu.live, at)
	if small := m.mu.small[at]; small != nil {
		delete(m.mu.small, at)
		magnitude := bits.Len(uint(len(small)*8 - 1))
		m.mu.spare[magnitude] = append(m.mu.spare[magnitude], small)
	}
	m.mu.Unlock()
	if raw != nil {
		mlUnmap(raw)
	}
}

// mlShrink gives back the pages of s beyond its first n elements.
func mlShrink[T any](m *mlMemory, s []T, n int) []T {
	at := unsafe.Pointer(unsafe.SliceData(s))
	m.mu.Lock()
	raw := m.mu.live[at]
	m.mu.Unlock()
	var zero T
	const page = 4096
	if keep := (n*int(unsafe.Sizeof(zero)) + page - 1) / page * page; keep < len(raw) {
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
	m.mu.live, m.mu.small, m.mu.spare = nil, nil, [mlHeapBits + 1][][]uint64{}
}
