package run

import (
	"slices"
	"sync"
	"time"

	"starling/event"
	"starling/train"
	"starling/wire"
)

// meter listens to a worker and adds up what its training epochs waited for, and
// sent. Spans of a pass come before that of the step they belong to, so what has
// come since the last step is a training epoch's when its update ends, and a
// measurement's when that ends.
type meter struct {
	ledger *wire.Ledger

	mu struct {
		sync.Mutex
		sum            metered
		waits, travels []stretch // of the pass under way
		before         map[train.Sent]int64
		sent           map[train.Sent]int64
	}
}

// metered is what a meter ends with: seconds of this run's epochs.
type metered struct {
	Epochs   int       `json:"epochs"`
	Trained  float64   `json:"trained"`
	Waited   float64   `json:"waited"`   // for other workers
	Transfer float64   `json:"transfer"` // something was on its way here
	Exposed  float64   `json:"exposed"`  // and it was waited for
	Sent     []Traffic `json:"sent"`     // counted, in training passes
}

func newMeter(l *wire.Ledger) *meter {
	m := &meter{ledger: l}
	m.mu.before, m.mu.sent = train.Counted(l), map[train.Sent]int64{}
	return m
}

func (m *meter) On(e event.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch e := e.(type) {
	case event.Started:
		m.mu.before = train.Counted(m.ledger) // what preparing took is no epoch's
	case event.Epoch:
		m.mu.sum.Epochs++
		m.mu.sum.Trained += e.Seconds
	case event.Span:
		m.span(e)
	}
}

// REQUIRES: mu held.
func (m *meter) span(e event.Span) {
	s := stretch{e.Start, e.Start.Add(e.Dur)}
	switch {
	case e.Kind == "wait":
		m.mu.waits = append(m.mu.waits, s)
	case e.Kind == "transfer":
		m.mu.travels = append(m.mu.travels, s)
	case e.Kind == "step" && (e.Name == "update" || e.Name == "evaluate"):
		m.step(e.Name == "update")
	}
}

// step ends an epoch's training, or a measurement. Transfers that overlap count
// once: what is asked is how long something was on its way.
// REQUIRES: mu held.
func (m *meter) step(training bool) {
	now := train.Counted(m.ledger)
	if training {
		waits, travels := merge(m.mu.waits), merge(m.mu.travels)
		m.mu.sum.Waited += length(waits)
		m.mu.sum.Transfer += length(travels)
		m.mu.sum.Exposed += overlap(waits, travels)
		for k, b := range now {
			m.mu.sent[k] += b - m.mu.before[k]
		}
	}
	m.mu.before, m.mu.waits, m.mu.travels = now, m.mu.waits[:0], m.mu.travels[:0]
}

func (m *meter) total() metered {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := m.mu.sum
	out.Sent = traffic(nil, m.mu.sent)
	return out
}

// stretch is a time from and to.
type stretch struct{ from, to time.Time }

// merge sorts stretches and joins those that touch, in place.
func merge(list []stretch) []stretch {
	slices.SortFunc(list, func(a, b stretch) int { return a.from.Compare(b.from) })
	out := list[:0]
	for _, s := range list {
		if n := len(out); n > 0 && !s.from.After(out[n-1].to) {
			if s.to.After(out[n-1].to) {
				out[n-1].to = s.to
			}
			continue
		}
		out = append(out, s)
	}
	return out
}

// length is the seconds of merged stretches.
func length(list []stretch) (seconds float64) {
	for _, s := range list {
		seconds += s.to.Sub(s.from).Seconds()
	}
	return seconds
}

// overlap is the seconds that two lists of merged stretches share.
func overlap(a, b []stretch) (seconds float64) {
	for len(a) > 0 && len(b) > 0 {
		from, to := a[0].from, a[0].to
		if b[0].from.After(from) {
			from = b[0].from
		}
		if b[0].to.Before(to) {
			to = b[0].to
		}
		seconds += max(to.Sub(from).Seconds(), 0)
		if a[0].to.Before(b[0].to) {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return seconds
}
