// Package poll is how long a goroutine that waits for a message polls for it before it sleeps.
package poll

import (
	"sync/atomic"
	"time"
)

const (
	// Most is how long a waiter polls at most, in nanoseconds: a few times what waking it would take.
	Most     = int64(200 * time.Microsecond)
	tryEvery = 32
)

// Budget is how long a waiter polls, in nanoseconds. It is learnt: where polling finds nothing in that time, because
// the peer computes or because processes outnumber processors, it only keeps others from what is waited for; and is
// given up, but for a try now and then.
type Budget struct {
	spins atomic.Int64
	tries atomic.Int64
}

// Open sets the budget to Most.
func (b *Budget) Open() { b.spins.Store(Most) }

// Begin is how long to poll this time, at most most.
func (b *Budget) Begin(most int64) int64 {
	if b.tries.Add(1)%tryEvery == 0 {
		return most
	}
	return min(b.spins.Load(), most)
}

// Begun counts the times that polling began.
func (b *Budget) Begun() int64 { return b.tries.Load() }

// FoundAfter learns from something that was found.
func (b *Budget) FoundAfter(took int64) {
	if spins := min(4*took, Most); spins > b.spins.Load() {
		b.spins.Store(spins)
	}
}

// InVain learns from polling that has found nothing.
func (b *Budget) InVain() { b.spins.Store(b.spins.Load() * 3 / 4) }
