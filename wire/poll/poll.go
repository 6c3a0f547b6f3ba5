package poll

import (
	"sync/atomic"
	"time"
)

// A waiter polls for at most mostSpins, a few times what waking it would take.
const (
	Most     = int64(200 * time.Microsecond)
	tryEvery = 32
)

// budget is how long a waiter polls, in nanoseconds. It is learnt: where polling finds nothing in that time, because
// the peer computes or because processes outnumber processors, it only keeps others from what is waited for; and is
// given up, but for a try now and then.
type Budget struct {
	spins atomic.Int64
	tries atomic.Int64
}

func (b *Budget) Open() { b.spins.Store(Most) }

// begin is how long to poll this time, at most most.
func (b *Budget) Begin(most int64) int64 {
	if b.tries.Add(1)%tryEvery == 0 {
		return most
	}
	return min(b.spins.Load(), most)
}

// begun counts the times that polling began.
func (b *Budget) Begun() int64 { return b.tries.Load() }

// foundAfter learns from something that was found.
func (b *Budget) FoundAfter(took int64) {
	if spins := min(4*took, Most); spins > b.spins.Load() {
		b.spins.Store(spins)
	}
}

// inVain learns from polling that has found nothing.
func (b *Budget) InVain() { b.spins.Store(b.spins.Load() * 3 / 4) }
