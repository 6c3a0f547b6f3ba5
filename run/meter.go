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
// sent. Time counts between the beginning of an epoch's forward pass and the end of
// its update; measurements are outside. A transfer is reported when it is waited for,
// which may be an epoch later, so an epoch is added up after the next.
type meter struct {
	ledger *wire.Ledger

	mu struct {
		sync.Mutex
		sum            metered
		waits, travels []stretch // of the epochs below, in any order
		held           []stretch // the waits for transfers, which have the same name
		names          map[string]bool
		begun          time.Time // of the epoch under way
		epochs         []stretch // not added up yet
		before         map[train.Sent]int64
		sent           map[train.Sent]int64
	}
}

// metered is what a meter ends with: seconds of this run's epochs.
type metered struct {
	Epochs   int       `json:"epochs"`
	Trained  float64   `json:"trained"`
	Waited   float64   `json:"waited"`   // for other workers
	Transfer float64   `json:"transfer"` // rows were on their way here
	Exposed  float64   `json:"exposed"`  // and it was waited for
	Sent     []Traffic `json:"sent"`     // counted, in training passes
}

func newMeter(l *wire.Ledger) *meter {
	m := &meter{ledger: l}
	m.mu.before, m.mu.sent, m.mu.names = train.Counted(l), map[train.Sent]int64{}, map[string]bool{}
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
	switch e.Kind + " " + e.Name {
	case "step forward":
		m.mu.begun = s.from
	case "step update":
		m.count(true)
		m.mu.epochs = append(m.mu.epochs, stretch{m.mu.begun, s.to})
		if len(m.mu.epochs) > 1 {
			m.addUp()
		}
	case "step evaluate":
		m.count(false)
	}
	switch e.Kind {
	case "wait":
		m.mu.waits = append(m.mu.waits, s)
		if m.mu.names[e.Name] {
			m.mu.held = append(m.mu.held, s)
		}
	case "transfer":
		m.mu.travels = append(m.mu.travels, s)
		m.mu.names[e.Name] = true
	}
}

// count takes what was sent since the last count for an epoch's, or for a measurement's.
// REQUIRES: mu held.
func (m *meter) count(training bool) {
	now := train.Counted(m.ledger)
	if training {
		for k, b := range now {
			m.mu.sent[k] += b - m.mu.before[k]
		}
	}
	m.mu.before = now
}

// addUp adds the oldest epoch to the sums. Transfers that overlap count once: what is
// asked is how long rows were on their way.
// REQUIRES: mu held.
func (m *meter) addUp() {
	epoch := m.mu.epochs[0]
	m.mu.epochs = m.mu.epochs[1:]
	over := func(s stretch) bool { return !s.to.After(epoch.to) }
	take := func(list *[]stretch) []stretch {
		*list = merge(*list)
		now := within(*list, epoch)
		*list = slices.DeleteFunc(*list, over)
		return now
	}
	waits, held, travels := take(&m.mu.waits), take(&m.mu.held), take(&m.mu.travels)
	m.mu.sum.Waited += length(waits)
	m.mu.sum.Transfer += length(travels)
	m.mu.sum.Exposed += overlap(held, travels)
}

// total is the sums when the run is over.
func (m *meter) total() metered {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.mu.epochs) > 0 {
		m.addUp()
	}
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

// within are the parts of stretches inside another.
func within(list []stretch, w stretch) (out []stretch) {
	for _, s := range list {
		if s.from.Before(w.from) {
			s.from = w.from
		}
		if s.to.After(w.to) {
			s.to = w.to
		}
		if s.from.Before(s.to) {
			out = append(out, s)
		}
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
