package wire

import (
	"slices"
	"sync"
)

// spares is memory for what waits until it is asked for, or added: used again, because
// fresh memory costs more than the copy out of it (it is cleared, the kernel's pages
// come one by one, and the collector runs for it), and what was used last is still in
// the cache.
type spares struct {
	mu struct {
		sync.Mutex
		free [][]byte // the last used last
		kept int      // bytes
	}
}

// sparesKept is how much is kept at most.
const sparesKept = 32 << 20

// take is memory with anything in it, at most twice as much as asked for.
func (l *spares) take(bytes int) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.mu.free) - 1; i >= 0; i-- {
		if had := cap(l.mu.free[i]); bytes <= had && had <= 2*bytes {
			found := l.mu.free[i][:bytes]
			l.mu.free = slices.Delete(l.mu.free, i, i+1)
			l.mu.kept -= had
			return found
		}
	}
	return make([]byte, bytes)
}

// give takes it back. What was used longest ago makes room.
func (l *spares) give(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if cap(b) > sparesKept {
		return
	}
	l.mu.free = append(l.mu.free, b)
	l.mu.kept += cap(b)
	old := 0
	for ; l.mu.kept > sparesKept; old++ {
		l.mu.kept -= cap(l.mu.free[old])
	}
	l.mu.free = slices.Delete(l.mu.free, 0, old)
}
