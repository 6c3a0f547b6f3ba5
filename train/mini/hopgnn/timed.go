package hopgnn

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"starling/event"
	"starling/train/batch"
	"starling/wire"
)

// Merging as the paper has it (section 5.3), --merge time: one time step more is merged per epoch, as long as an
// epoch takes less time than the one before; then the number before is kept.
//
// Epochs are compared alike. The first of a run, and of one that is resumed, is cold: memory grows and connections
// are made. It decides nothing, so that merging begins an epoch later than in the paper. No batch is drawn ahead of
// an epoch as long as it is not known how many steps that has, and so with those before it: an epoch whose batches
// were there when it began would look faster than any that tries another number of steps. The times of all workers
// are added up, so that all decide alike.

// byTime is the option's value.
const byTime = "time"

// trial finds out how many time steps are merged while it trains.
type trial struct {
	most int // time steps that can be merged
	mu   struct {
		sync.Mutex
		first   int   // epoch
		merged  []int // in epochs from the first on
		settled bool  // later epochs are like the last
		changed chan struct{}
		judged  map[int]bool // epochs
	}
	before float64 // seconds of the epoch before, of all workers; 0: unknown
}

// newTrial begins at an epoch with some steps merged.
func newTrial(most, epoch, merged int, before float64, settled bool) *trial {
	t := &trial{most: most, before: before}
	t.mu.first, t.mu.merged, t.mu.settled = epoch, []int{merged}, settled || most == 0
	t.mu.changed, t.mu.judged = make(chan struct{}), map[int]bool{}
	return t
}

// known is the number of merged steps in an epoch, or in the last for which it is known.
func (t *trial) known(epoch int) (merged int, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := len(t.mu.merged) - 1
	i := min(max(epoch-t.mu.first, 0), last)
	return t.mu.merged[i], t.mu.settled || epoch-t.mu.first <= last
}

// await waits until the number of merged steps in an epoch is known.
func (t *trial) await(ctx context.Context, epoch int) (merged int, err error) {
	for {
		t.mu.Lock()
		changed := t.mu.changed
		t.mu.Unlock()
		if merged, known := t.known(epoch); known {
			return merged, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// settled reports whether the number of merged steps stays.
func (t *trial) settled() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.settled
}

// asks reports whether an epoch's time decides, or has decided.
func (t *trial) asks(epoch int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.judged[epoch] || !t.mu.settled
}

// judge decides about the next epoch, by the seconds of one; 0: they are not known, and it is tried again.
func (t *trial) judge(epoch int, seconds float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.judged[epoch] = true
	next := t.mu.merged[len(t.mu.merged)-1]
	switch {
	case seconds == 0:
	case t.before == 0 || seconds < t.before:
		t.before = seconds
		t.mu.settled = next == t.most
		next = min(next+1, t.most)
	default:
		next, t.mu.settled = next-1, true
	}
	t.mu.merged = append(t.mu.merged, next)
	close(t.mu.changed)
	t.mu.changed = make(chan struct{})
}

// mergedIn is the number of merged steps in an epoch, as far as it is known.
func (h *hop) mergedIn(epoch int) int {
	if h.trial == nil {
		return h.merged
	}
	merged, _ := h.trial.known(epoch)
	return merged
}

// awaitMerged is the same, once it is known.
func (h *hop) awaitMerged(ctx context.Context, epoch int) (int, error) {
	if h.trial == nil {
		return h.merged, nil
	}
	return h.trial.await(ctx, epoch)
}

// judge ends an epoch, and decides about the next.
func (h *hop) judge(epoch int) error {
	t := h.trial
	if t == nil || t.settled() {
		return nil
	}
	seconds := []float64{0}
	if epoch > t.mu.first { // it never changes
		seconds[0] = h.training.Loop.Elapsed()
	}
	if err := h.training.Loop.AllReduce(epoch, 0, seconds); err != nil {
		return err
	}
	t.judge(epoch, seconds[0])
	if merged, _ := t.known(epoch + 1); t.settled() && h.p.Site.End.Rank() == 0 {
		h.p.Site.Events.On(event.Note{Minor: true, Settings: map[string]string{"merge": strconv.Itoa(merged)},
			Text: fmt.Sprintf("hopgnn merges %d of %d time steps, with which epochs took the least time; "+
				"--merge %d does the same", merged, t.most+1, merged)})
	}
	return nil
}

// planTrial adds what workers tell each other of an epoch's time.
func (h *hop) planTrial(to wire.Bytes, epoch int) {
	if t := h.trial; t != nil && t.asks(epoch) {
		batch.PlanSums(to, h.p.Site.End, 1)
	}
}
