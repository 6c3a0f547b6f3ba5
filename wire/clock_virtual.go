package wire

import (
	"container/heap"
	"sync"
	"time"
)

// Virtual is a clock that stands still until it is advanced. Timers fire on the goroutine
// that advances it, in the order of their times, and of their creation where those are
// equal; while one fires, Now is its time. So with one goroutine everything is determined.
//
// An event loop over it is
//
//	for at, ok := c.Next(); ok; at, ok = c.Next() {
//		c.AdvanceTo(at)
//	}
type Virtual struct {
	advancing sync.Mutex // one advances at a time
	mu        struct {
		sync.Mutex
		now     time.Time
		timers  timerHeap
		created uint64
	}
}

// VirtualStart is the time at which a virtual clock starts.
var VirtualStart = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// NewVirtual is a clock at VirtualStart.
func NewVirtual() *Virtual {
	v := &Virtual{}
	v.mu.now = VirtualStart
	return v
}

// Now is the time to which the clock was advanced, or of the timer that fires.
func (v *Virtual) Now() time.Time {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.mu.now
}

// AfterFunc calls f when the clock has been advanced by d. One that is due at once fires
// with the next advance, be it by nothing.
func (v *Virtual) AfterFunc(d time.Duration, f func()) Timer {
	t := &virtualTimer{clock: v, f: f, index: -1}
	t.Reset(d)
	return t
}

// Next is the time of the timer that fires next, if there is one.
func (v *Virtual) Next() (at time.Time, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.mu.timers) == 0 {
		return time.Time{}, false
	}
	return v.mu.timers[0].at, true
}

// Advance is AdvanceTo the time d from now.
func (v *Virtual) Advance(d time.Duration) { v.AdvanceTo(v.Now().Add(d)) }

// AdvanceTo fires all timers up to a time, also those that are set meanwhile, and ends
// with the clock at that time. The clock never goes back. Timers must not advance the clock.
func (v *Virtual) AdvanceTo(to time.Time) {
	v.advancing.Lock()
	defer v.advancing.Unlock()
	for t := v.due(to); t != nil; t = v.due(to) {
		t.f()
	}
}

// due takes out the next timer up to a time and makes its time now. Without one it makes
// the given time now.
func (v *Virtual) due(to time.Time) *virtualTimer {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.mu.timers) == 0 || v.mu.timers[0].at.After(to) {
		if to.After(v.mu.now) {
			v.mu.now = to
		}
		return nil
	}
	t := heap.Pop(&v.mu.timers).(*virtualTimer)
	v.mu.now = t.at
	return t
}

// virtualTimer is guarded by its clock's lock.
type virtualTimer struct {
	clock *Virtual
	f     func()
	at    time.Time
	order uint64 // of creation, or of the last Reset
	index int    // in the heap; -1: it has fired or was stopped
}

func (t *virtualTimer) Stop() bool {
	mu := &t.clock.mu
	mu.Lock()
	defer mu.Unlock()
	return t.takeOut()
}

func (t *virtualTimer) Reset(d time.Duration) bool {
	mu := &t.clock.mu
	mu.Lock()
	defer mu.Unlock()
	was := t.takeOut()
	mu.created++
	t.at, t.order = mu.now.Add(max(d, 0)), mu.created
	heap.Push(&mu.timers, t)
	return was
}

// REQUIRES: the clock's lock.
func (t *virtualTimer) takeOut() bool {
	if t.index < 0 {
		return false
	}
	heap.Remove(&t.clock.mu.timers, t.index)
	return true
}

// timerHeap has the next timer first.
type timerHeap []*virtualTimer

func (h timerHeap) Len() int { return len(h) }

func (h timerHeap) Less(i, j int) bool {
	if !h[i].at.Equal(h[j].at) {
		return h[i].at.Before(h[j].at)
	}
	return h[i].order < h[j].order
}

func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *timerHeap) Push(x any) {
	t := x.(*virtualTimer)
	t.index = len(*h)
	*h = append(*h, t)
}

func (h *timerHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	(*h)[last] = nil
	*h, t.index = (*h)[:last], -1
	return t
}
