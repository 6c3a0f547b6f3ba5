package run

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"starling/cluster"
	"starling/event"
	"starling/wire"
)

// stallAfter is how long somebody must have waited for another before the others are
// told; an epoch must also have taken muchLonger times as long as those before it.
const (
	stallAfter = 5 * time.Second
	muchLonger = 3
	// The first epoch has none before it, and does more.
	firstStallAfter = 20 * time.Second
)

// watcher knows what all workers of a run do. It tells of stalls, and shows the run
// to whoever asks.
type watcher struct {
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
		took     []time.Duration // of the last few epochs
		noted    bool            // the epoch under way was said to stall
		starts   int
		saved    int // epochs on disk
		savedAt  time.Time
		finished bool
	}
}

// watched is what is known of a rank.
type watched struct {
	status cluster.Status
	heard  time.Time // zero: never
	rates  map[string]float64
}

// fewEpochs are enough to know how long one takes.
const fewEpochs = 9

func newWatcher(workers int, events event.Listener, now func() time.Time) *watcher {
	w := &watcher{events: events, now: now, began: now()}
	w.mu.ranks = make([]watched, workers)
	for r := range w.mu.ranks {
		w.mu.ranks[r].status.Rank = r
	}
	return w
}

// On takes in what the run as a whole tells.
func (w *watcher) On(e event.Event) {
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
		w.events.On(event.Note{Text: end})
	}
}

// REQUIRES: mu held.
func (w *watcher) start(e event.Started) {
	w.mu.started, w.mu.since, w.mu.noted = e, w.now(), false
	w.mu.starts++
}

// forget is for a start that has failed: nothing is known of those that come now.
func (w *watcher) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.mu.since = time.Time{}
	for r := range w.mu.ranks {
		w.mu.ranks[r] = watched{status: cluster.Status{Rank: r}}
	}
}

// epoch closes an epoch, and says so if it was said to stall.
// REQUIRES: mu held.
func (w *watcher) epoch(e event.Epoch) (end string) {
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

// usual is what an epoch takes, as the median of the last few; 0: not known yet.
// REQUIRES: mu held.
func (w *watcher) usual() time.Duration {
	if len(w.mu.took) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(w.mu.took))
	return sorted[len(sorted)/2]
}

// heard takes in what a worker says of itself, and tells if all wait for somebody.
func (w *watcher) heard(st cluster.Status) {
	w.mu.Lock()
	r := &w.mu.ranks[st.Rank]
	now := w.now()
	r.rates = rates(&r.status, &st, now.Sub(r.heard))
	r.status, r.heard = st, now
	text := w.stall(now)
	w.mu.Unlock()
	if text != "" {
		w.events.On(event.Note{Text: text})
	}
}

// stall is what there is to say of a stall that was not told yet.
// REQUIRES: mu held.
func (w *watcher) stall(now time.Time) string {
	if w.mu.noted || w.mu.since.IsZero() || w.mu.finished {
		return ""
	}
	least := max(stallAfter, muchLonger*w.usual())
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
func (w *watcher) underWay() int {
	if w.mu.last.Seconds == 0 {
		return w.mu.started.FirstEpoch + 1
	}
	return max(w.mu.last.Epoch+1, w.mu.started.FirstEpoch) + 1
}

// statuses are those of all ranks as they are now.
// REQUIRES: mu held.
func (w *watcher) statuses(now time.Time) (out []cluster.Status) {
	for _, r := range w.mu.ranks {
		r.status.Age = -1
		if !r.heard.IsZero() {
			r.status.Age = now.Sub(r.heard).Seconds()
		}
		out = append(out, r.status)
	}
	return out
}

// rates are bytes sent a second, by link, between two statuses of a worker.
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

// poll asks reporters in this process, once a second, until stop is called.
func (w *watcher) poll(reporters []*reporter) (stop func()) {
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
					w.heard(r.status())
				}
			}
		}
	})
	return func() {
		close(done)
		wg.Wait()
	}
}

// watchToken is the secret that watchers must know. Where nobody was given the
// workers' own, being on this host, or having a certificate, is enough.
func (c *clusterRun) watchToken() []byte {
	s := &c.spec
	given := s.TokenFile != ""
	if !given && (s.Listen == "" || cluster.Loopback(s.Listen) || s.TLS != "" || s.Insecure) {
		return nil
	}
	return c.token
}

// serveMetrics shows the run, if that was asked for.
func (c *clusterRun) serveMetrics() (*metricsServer, error) {
	if c.spec.MetricsListen == "" {
		return nil, nil
	}
	return serveMetrics(c.spec.MetricsListen, c.id, c.spec.Insecure, func(p *metricsPage) { c.watch.snapshot().metrics(p) })
}

// watched has a worker report to the run, and show its own metrics if that was asked
// for.
func (w *WorkerSpec) watched(m *cluster.Member, t *task, end wire.Endpoint) (*reporter, *metricsServer, error) {
	r := newReporter(m.Rank, end)
	m.Report(r.status)
	if t.Spec.MetricsListen == "" {
		return r, nil, nil
	}
	addr, err := metricsOf(t.Spec.MetricsListen, m.Rank, m.Peers[m.Rank].Addr)
	if err != nil {
		return nil, nil, err
	}
	s, err := serveMetrics(addr, w.id, w.Insecure || t.Spec.Insecure, func(p *metricsPage) { p.ranks([]cluster.Status{r.status()}) })
	if err == nil {
		r.listens(s.addr)
	}
	return r, s, err
}

// watched shows a run of one worker, if that was asked for, until shown is called.
func (p *prepared) watched(events event.Listener) (all event.Listener, shown func(), err error) {
	s := &p.spec
	if s.MetricsListen == "" {
		return events, func() {}, nil
	}
	id, err := identity(s.TLS)
	if err != nil {
		return nil, nil, err
	}
	w, r := newWatcher(1, events, time.Now), newReporter(0, nil)
	server, err := serveMetrics(s.MetricsListen, id, s.Insecure, func(p *metricsPage) { w.snapshot().metrics(p) })
	if err != nil {
		return nil, nil, err
	}
	stop := w.poll([]*reporter{r})
	return event.All(r, w, events), func() { stop(); server.close() }, nil
}
