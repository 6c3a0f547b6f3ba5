package rows

import (
	"slices"
	"sync"
)

// lender lends memory that begins at a block, and takes it back to lend it again.
type lender struct {
	mu struct {
		sync.Mutex
		free [][]byte
	}
}

// take lends n bytes: of the memory that came back, the smallest that has as many.
func (l *lender) take(n int64) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	best := -1
	for i, b := range l.mu.free {
		if int64(cap(b)) >= n && (best < 0 || cap(b) < cap(l.mu.free[best])) {
			best = i
		}
	}
	if best >= 0 {
		b := l.mu.free[best]
		l.mu.free = slices.Delete(l.mu.free, best, best+1)
		return b[:n], nil
	}
	if last := len(l.mu.free) - 1; last >= 0 { // too small: it would stay unused beside the new one
		free(l.mu.free[last])
		l.mu.free = l.mu.free[:last]
	}
	b, err := memory(int(up(n + n/8)))
	if err != nil {
		return nil, err
	}
	return b[:n], nil
}

func (l *lender) takeBack(b []byte) {
	if cap(b) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.free = append(l.mu.free, b[:0])
}

// release frees what was given back.
func (l *lender) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.mu.free {
		free(b)
	}
	l.mu.free = nil
}
