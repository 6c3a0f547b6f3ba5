package watch

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"starling/cluster"
	"starling/event"
)

// A stall is reported when a worker has waited for another for stallAfter, and the epoch has taken
// stallFactor times as long as those before it.
const (
	stallAfter  = 5 * time.Second
	stallFactor = 3
	// The first epoch has none before it, and does more.
	firstStallAfter = 20 * time.Second
)

// Watcher knows what all workers of a run do. It tells of stalls, and gives snapshots of the
// run.
type Watcher struct {
	events event.Listener
	now    func() time.Time
	began  time.Time

	mu struct {
		sync.Mutex
		ranks    []watched
		started  event.Started
		last     event.Epoch
		val      float64
		since    time.Time       // the epoch under way began
		took     []time.Duration // by the last few epochs
		noted    bool            // that the epoch under way stalls
		starts   int
		saved    int // epochs on disk
		savedAt  time.Time
		finished bool
	}
}

// watched is what is known of a rank.
type watched struct {
	status cluster.Status
	seen   time.Time // zero: never
	rates  map[string]float64
}

// fewEpochs are enough to know how long one takes.
const fewEpochs = 9

func New(workers int, events event.Listener, now func() time.Time) *Watcher {
	w := &Watcher{events: events, now: now, began: now()}
	w.mu.ranks = make([]watched, workers)
	for r := range w.mu.ranks {
		w.mu.ranks[r].status.Rank = r
	}
	return w
}

// On is the listener of the run as a whole.
func (w *Watcher) On(e event.Event) {
	w.mu.Lock()
	var end string
	switch e := e.(type) {
	case event.Started:
		w.start(e)
	case event.Epoch:
		end = w.epoch(e)
	case event.Saved:
		w.mu.saved, w.mu.savedAt = e.Epoch, w.now()
	case event.Done:
		w.mu.finished = true
	}
	w.mu.Unlock()
	if end != "" {
		w.events.On(event.Note{Text: end, Mark: event.Moving})
	}
}

// REQUIRES: mu held.
func (w *Watcher) start(e event.Started) {
	w.mu.started, w.mu.since, w.mu.noted = e, w.now(), false
	w.mu.starts++
}

// Forget is for a start that has failed: nothing is known of the workers of the next one.
func (w *Watcher) Forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.since = time.Time{}
	for r := range w.mu.ranks {
		w.mu.ranks[r] = watched{status: cluster.Status{Rank: r}}
	}
}

// epoch closes an epoch. If a stall was reported, its end is too.
// REQUIRES: mu held.
func (w *Watcher) epoch(e event.Epoch) (end string) {
	now := w.now()
	took := now.Sub(w.mu.since)
	if w.mu.noted {
		end = fmt.Sprintf("epoch %d is done after %s", e.Epoch+1, event.Duration(took))
		if usual := w.usual(); usual > 0 {
			end += fmt.Sprintf("; those before took about %s", event.Duration(usual))
		}
	}
	w.mu.took = append(w.mu.took[max(0, len(w.mu.took)-fewEpochs+1):], took)
	if e.Measured && !math.IsNaN(e.Val) && !math.IsInf(e.Val, 0) { // NaN: nothing to validate on
		w.mu.val = e.Val
	}
	w.mu.last, w.mu.since, w.mu.noted = e, now, false
	return end
}

// usual is how long an epoch takes, the median of the last few; 0: not known yet.
// REQUIRES: mu held.
func (w *Watcher) usual() time.Duration {
	if len(w.mu.took) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(w.mu.took))
	return sorted[len(sorted)/2]
}

// Take records the status of a worker, and notes where the run stalls.
func (w *Watcher) Take(st cluster.Status) {
	w.mu.Lock()
	r := &w.mu.ranks[st.Rank]
	now, detail := w.now(), st.Detail
	st.Detail = nil
	r.rates = rates(&r.status, &st, now.Sub(r.seen))
	r.status, r.seen = st, now
	text := w.stall(now)
	w.mu.Unlock()
	if detail != nil {
		detail.Worker = st.Rank
		w.events.On(*detail)
	}
	if text != "" {
		w.events.On(event.Note{Text: text, Mark: event.Stalled})
	}
}

// stall describes a stall that was not reported yet; "": there is none.
// REQUIRES: mu held.
func (w *Watcher) stall(now time.Time) string {
	if w.mu.noted || w.mu.since.IsZero() || w.mu.finished {
		return ""
	}
	least := max(stallAfter, stallFactor*w.usual())
	if len(w.mu.took) == 0 {
		least = firstStallAfter
	}
	ranks := w.statuses(now)
	if now.Sub(w.mu.since) < least || cluster.LongestWait(ranks) < stallAfter.Seconds() {
		return ""
	}
	w.mu.noted = true
	return fmt.Sprintf("epoch %d stalls: %s", w.underWay(), cluster.WhoWaits(ranks))
}

// underWay is the epoch that is trained now, counted from 1.
// REQUIRES: mu held.
func (w *Watcher) underWay() int {
	if w.mu.last.Seconds == 0 {
		return w.mu.started.FirstEpoch + 1
	}
	return max(w.mu.last.Epoch+1, w.mu.started.FirstEpoch) + 1
}

// statuses are the statuses of all ranks, with their age.
// REQUIRES: mu held.
func (w *Watcher) statuses(now time.Time) (out []cluster.Status) {
	for _, r := range w.mu.ranks {
		r.status.Age = -1
		if !r.seen.IsZero() {
			r.status.Age = now.Sub(r.seen).Seconds()
		}
		out = append(out, r.status)
	}
	return out
}

// rates are bytes per second by link, sent between two statuses of a worker.
func rates(before, after *cluster.Status, passed time.Duration) map[string]float64 {
	out := map[string]float64{}
	for _, m := range after.Sent {
		out[m.Link] += float64(m.Bytes)
	}
	for _, m := range before.Sent {
		out[m.Link] -= float64(m.Bytes)
	}
	for link, bytes := range out {
		out[link] = max(bytes, 0) / passed.Seconds() // a worker that joined again counts from 0
	}
	return out
}

// Poll asks reporters in this process, every second, until stop is called.
func (w *Watcher) Poll(reporters []*Reporter) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				for _, r := range reporters {
					w.Take(r.Report())
				}
			}
		}
	})
	return func() {
		close(done)
		wg.Wait()
		for _, r := range reporters { // the last they have to report
			w.Take(r.Report())
		}
	}
}
