//go:build linux

package elsewhere

import (
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// memory is one file of memory that is mapped twice: where the device reads and writes it,
// and where handles point, which nothing may touch.
type memory struct {
	own, host []byte

	mu struct {
		sync.Mutex
		gaps   []span // ascending, apart from each other
		closed bool
	}
}

// span is bytes from and up to a place.
type span struct{ from, to int }

// addresses is how large the memory is. Pages that are not used take none.
const addresses = 1 << 32

func newMemory() (*memory, error) {
	fd, err := unix.MemfdCreate("elsewhere", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memory of a device elsewhere: %w", err)
	}
	defer unix.Close(fd)
	if err := unix.Ftruncate(fd, addresses); err != nil {
		return nil, fmt.Errorf("memory of a device elsewhere: %w", err)
	}
	m := &memory{}
	if m.own, err = unix.Mmap(fd, 0, addresses, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return nil, fmt.Errorf("memory of a device elsewhere: %w", err)
	}
	if m.host, err = unix.Mmap(fd, 0, addresses, unix.PROT_NONE, unix.MAP_SHARED); err != nil {
		unix.Munmap(m.own)
		return nil, fmt.Errorf("memory of a device elsewhere: %w", err)
	}
	m.mu.gaps = []span{{0, addresses}}
	return m, nil
}

// take finds n bytes, whole cache lines, and returns where they begin.
func (m *memory) take(n int) span {
	n = (n + 63) &^ 63
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, g := range m.mu.gaps {
		if g.to-g.from >= n {
			m.mu.gaps[i].from += n
			return span{g.from, g.from + n}
		}
	}
	panic(fmt.Sprintf("elsewhere: no memory for %d bytes", n))
}

// give makes bytes a gap again.
func (m *memory) give(s span) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.closed {
		return
	}
	i, _ := slices.BinarySearchFunc(m.mu.gaps, s.from, func(g span, at int) int { return g.from - at })
	m.mu.gaps = slices.Insert(m.mu.gaps, i, s)
	m.mu.gaps = slices.DeleteFunc(m.mu.gaps, func(g span) bool { return g.from == g.to })
	for k := len(m.mu.gaps) - 1; k > 0; k-- {
		if m.mu.gaps[k-1].to == m.mu.gaps[k].from {
			m.mu.gaps[k-1].to = m.mu.gaps[k].to
			m.mu.gaps = slices.Delete(m.mu.gaps, k, k+1)
		}
	}
}

func (m *memory) close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.closed = true
	unix.Munmap(m.own)
	unix.Munmap(m.host)
}

// at is the address of a place in one of the mappings.
func at(mapping []byte, place int) unsafe.Pointer { return unsafe.Pointer(&mapping[place]) }
