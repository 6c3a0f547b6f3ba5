package tensor

import (
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"
)

// arena hands out memory for matrices and takes it back. Blocks of at least
// LargeBlock come from anonymous mappings on huge pages, outside the collector's
// heap; smaller ones from ordinary slices. What comes back is kept by size class
// and given out again, so a training loop that frees what it takes maps nothing
// new after its first epoch.
type arena struct {
	mu struct {
		sync.Mutex
		free   map[int][][]byte // size class -> blocks ready for use
		mapped [][]byte         // every mapping, to unmap on close
	}
	inUse, peak atomic.Int64
}

// LargeBlock is the size from which a block has a mapping of its own.
const LargeBlock = 1 << 20

func newArena() *arena {
	a := &arena{}
	a.mu.free = make(map[int][][]byte)
	return a
}

// sizeClass rounds up to a size blocks are kept by: an eighth of a power of two,
// so that at most one eighth is lost to rounding.
func sizeClass(n int) int {
	if n <= 64 {
		return 64
	}
	step := 1 << max(6, bits.Len(uint(n-1))-4)
	return (n + step - 1) / step * step
}

// take returns zeroed memory of n bytes when zero is set, else of any content.
func (a *arena) take(n int, zero bool) []byte {
	class := sizeClass(n)
	a.note(int64(class))
	if b := a.used(class); b != nil {
		if zero {
			clear(b[:n])
		}
		return b
	}
	if class < LargeBlock {
		return alignedBytes(class)
	}
	b, err := mapHuge(class)
	if err != nil {
		// The same condition that makes the runtime throw on an ordinary make.
		panic(fmt.Sprintf("tensor: no memory for a block of %d bytes: %v", class, err))
	}
	a.mu.Lock()
	a.mu.mapped = append(a.mu.mapped, b)
	a.mu.Unlock()
	return b
}

// used is a block that came back, of a class or one of the next two: of a fifth more at
// most, or a quarter. Batches differ by as much, and blocks for each of their sizes would
// be twice as many as there ever are in use. It has the length of the class asked for.
// Nil: there is none.
func (a *arena) used(class int) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	of := class
	for range 3 {
		if list := a.mu.free[of]; len(list) > 0 {
			k := len(list) - 1
			a.mu.free[of] = list[:k]
			return list[k][:class]
		}
		of = sizeClass(of + 1)
	}
	return nil
}

func (a *arena) give(b []byte) {
	class := cap(b)
	a.inUse.Add(-int64(len(b)))
	a.mu.Lock()
	a.mu.free[class] = append(a.mu.free[class], b[:class])
	a.mu.Unlock()
}

func (a *arena) note(n int64) {
	now := a.inUse.Add(n)
	for {
		p := a.peak.Load()
		if now <= p || a.peak.CompareAndSwap(p, now) {
			return
		}
	}
}

// close unmaps everything. Matrices made from the arena must not be used after.
func (a *arena) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, b := range a.mu.mapped {
		unmap(b)
	}
	a.mu.mapped = nil
	clear(a.mu.free)
}

// alignedBytes is a zeroed heap block that starts on a cache line.
func alignedBytes(n int) []byte {
	b := make([]byte, n+63)
	off := int(-uintptr(unsafe.Pointer(&b[0])) & 63)
	return b[off : off+n : off+n]
}
