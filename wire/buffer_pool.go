package wire

import (
	"slices"
	"sync"
)

// bufferPool keeps buffers for what arrives before its receive is posted, or is added.
// Fresh memory costs more than the copy out of it: it is cleared, its pages are faulted in
// one by one, and the garbage collector runs for it. What was used last is still in the cache.
type bufferPool struct {
	mu struct {
		sync.Mutex
		free [][]byte // the last used last
		kept int      // bytes
	}
}

// poolBytes is how much is kept at most.
const poolBytes = 32 << 20

// take is a buffer with anything in it, whose memory is at most twice as long.
func (l *bufferPool) take(bytes int) []byte {
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

// give takes a buffer back. The least recently used are let go.
func (l *bufferPool) give(b []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if cap(b) > poolBytes {
		return
	}
	l.mu.free = append(l.mu.free, b)
	l.mu.kept += cap(b)
	old := 0
	for ; l.mu.kept > poolBytes; old++ {
		l.mu.kept -= cap(l.mu.free[old])
	}
	l.mu.free = slices.Delete(l.mu.free, 0, old)
}
