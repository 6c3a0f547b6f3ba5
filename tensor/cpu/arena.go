package cpu

import (
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"unsafe"
)

// arena distributes memory for matrices and takes it back, so that a training loop that
// frees what it takes needs nothing new after its first epoch. Blocks of at least
// LargeBlock are pieces of regions, on huge pages and outside the collector's heap;
// smaller ones are ordinary slices, kept by size class.
type arena struct {
	mu struct {
		sync.Mutex
		regions []*region
		small   map[int][][]byte // size class -> blocks ready for use
	}
	inUse, peak atomic.Int64
	smallBytes  atomic.Int64 // of all small blocks there are
}

// LargeBlock is the size from which a block is a piece of a region.
const LargeBlock = 1 << 20

func newArena() *arena {
	a := &arena{}
	a.mu.small = make(map[int][][]byte)
	return a
}

// sizeClass rounds up to a size small blocks are kept by: an eighth of a power of two,
// so that at most one eighth is lost to rounding.
func sizeClass(n int) int {
	if n <= 64 {
		return 64
	}
	step := 1 << max(6, bits.Len(uint(n-1))-4)
	return (n + step - 1) / step * step
}

// take returns at least n bytes, zeroed when zero is set, else of any content.
func (a *arena) take(n int, zero bool) ([]byte, error) {
	if class := sizeClass(n); class < LargeBlock {
		return a.takeSmall(class, zero), nil
	}
	n = max(LargeBlock, (n+pageBytes-1)/pageBytes*pageBytes)
	b, used, err := a.takeLarge(n)
	if err != nil {
		return nil, fmt.Errorf("tensor: no memory for a block of %d bytes: %w", n, err)
	}
	a.note(int64(n))
	if zero {
		clear(b[:used])
	}
	return b, nil
}

func (a *arena) takeLarge(n int) (block []byte, used int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.mu.regions {
		if block, used, err := r.take(n); err != nil || block != nil {
			return block, used, err
		}
	}
	r, err := newRegion(n)
	if err != nil {
		return nil, 0, err
	}
	a.mu.regions = append(a.mu.regions, r)
	return r.take(n)
}

func (a *arena) takeSmall(class int, zero bool) []byte {
	a.note(int64(class))
	if b := a.used(class); b != nil {
		if zero {
			clear(b)
		}
		return b
	}
	a.smallBytes.Add(int64(class))
	return alignedBytes(class)
}

// used is a small block that came back, of a class or one of the next two: of a fifth
// more at most, or a quarter. Batches differ by as much. It has the length of the class
// asked for. Nil: there is none.
func (a *arena) used(class int) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	of := class
	for range 3 {
		if list := a.mu.small[of]; len(list) > 0 {
			k := len(list) - 1
			a.mu.small[of] = list[:k]
			return list[k][:class]
		}
		of = sizeClass(of + 1)
	}
	return nil
}

func (a *arena) give(b []byte) {
	a.inUse.Add(-int64(len(b)))
	a.mu.Lock()
	defer a.mu.Unlock()
	if class := cap(b); class < LargeBlock {
		a.mu.small[class] = append(a.mu.small[class], b[:class])
		return
	}
	for _, r := range a.mu.regions {
		if r.holds(b) {
			r.give(b)
			return
		}
	}
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

// Footprint is the memory that blocks have been in, each place counted once: in regions,
// and in small blocks, which are of the collector's heap.
func (a *arena) Footprint() (large, small int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.mu.regions {
		large += int64(min((r.top+hugePage-1)/hugePage*hugePage, len(r.bytes)))
	}
	return large, a.smallBytes.Load()
}

// close unmaps everything. Matrices made from the arena must not be used after.
func (a *arena) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.mu.regions {
		release(r.bytes)
	}
	a.mu.regions = nil
	clear(a.mu.small)
}

// alignedBytes is a zeroed heap block that starts on a cache line.
func alignedBytes(n int) []byte {
	b := make([]byte, n+63)
	off := int(-uintptr(unsafe.Pointer(&b[0])) & 63)
	return b[off : off+n : off+n]
}
