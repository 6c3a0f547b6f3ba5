package watch

import (
	"math"
	"slices"
	"sync"
	"time"

	"starling/event"
	"starling/report"
	"starling/wire"
)

// Meter listens to a worker and sums up what its training steps waited for, and sent. A step is
// the time from the start of its forward pass, or of what it waited for before that (a batch), to
// the end of its update; evaluations are outside. A transfer is reported when it is waited for,
// which may be a step later, so a step is summed up after the next one.
type Meter struct {
	ledger *wire.Ledger

	mu struct {
		sync.Mutex
		sum              Metered
		waits, transfers []stretch // of the steps below, in any order
		held             []stretch // the waits for transfers, which have the same name
		names            map[string]bool
		begun            time.Time // of the step under way; zero: there is none
		steps            []stretch // not summed up yet
		before           wire.Bytes
		sent             wire.Bytes
	}
}

// Metered is the result of a meter: seconds of this run's epochs.
type Metered struct {
	Epochs   int              `json:"epochs"`
	Trained  float64          `json:"trained"`
	Waited   float64          `json:"waited"`   // for other workers
	Waits    int              `json:"waits"`    // that were measured in epochs; 0: Waited is not known
	Transfer float64          `json:"transfer"` // that rows were on their way here
	Exposed  float64          `json:"exposed"`  // of that, the worker waited for them
	Sent     []report.Traffic `json:"sent"`     // counted, in training passes
}

func NewMeter(l *wire.Ledger) *Meter {
	m := &Meter{ledger: l}
	m.mu.before, m.mu.sent, m.mu.names = l.SentBytes(), wire.Bytes{}, map[string]bool{}
	return m
}

func (m *Meter) On(e event.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch e := e.(type) {
	case event.Started:
		m.mu.before, m.mu.begun = m.ledger.SentBytes(), time.Time{} // preparation belongs to no step
	case event.Epoch:
		m.mu.sum.Epochs++
		m.mu.sum.Trained += e.Seconds
	case event.Span:
		m.span(e)
	}
}

// REQUIRES: mu held.
func (m *Meter) span(e event.Span) {
	s := stretch{e.Start, e.Start.Add(e.Dur)}
	switch e.Kind + " " + e.Name {
	case "step forward":
		m.begin(s.from)
	case "step update":
		m.count(true)
		m.end(s.to)
	case "step evaluate":
		m.count(false)
		m.end(s.from) // what was waited for after the last step, and not what is waited for in here
	}
	switch e.Kind {
	case "wait":
		m.begin(s.from)
		m.mu.waits = append(m.mu.waits, s)
		if m.mu.names[e.Name] {
			m.mu.held = append(m.mu.held, s)
		}
	case "transfer":
		m.mu.transfers = append(m.mu.transfers, s)
		m.mu.names[e.Name] = true
	}
}

// begin says that a step was under way at a time.
// REQUIRES: mu held.
func (m *Meter) begin(at time.Time) {
	if m.mu.begun.IsZero() || at.Before(m.mu.begun) {
		m.mu.begun = at
	}
}

// end ends the step that is under way, if it had begun by then.
// REQUIRES: mu held.
func (m *Meter) end(at time.Time) {
	if !m.mu.begun.IsZero() && m.mu.begun.Before(at) {
		m.mu.steps = append(m.mu.steps, stretch{m.mu.begun, at})
	}
	m.mu.begun = time.Time{}
	if len(m.mu.steps) > 1 {
		m.sumUp()
	}
}

// count adds what was sent since the last count, if that was training and no evaluation.
// REQUIRES: mu held.
func (m *Meter) count(training bool) {
	now := m.ledger.SentBytes()
	if training {
		for k, b := range now {
			m.mu.sent[k] += b - m.mu.before[k]
		}
	}
	m.mu.before = now
}

// sumUp adds the oldest step to the sums. Transfers that overlap count once: it is summed up
// how long rows were on their way.
// REQUIRES: mu held.
func (m *Meter) sumUp() {
	step := m.mu.steps[0]
	m.mu.steps = m.mu.steps[1:]
	over := func(s stretch) bool { return !s.to.After(step.to) }
	for _, s := range m.mu.waits { // also those that took no time; in virtual time others may end as the step begins
		if s.from.Before(step.to) && s.to.After(step.from) {
			m.mu.sum.Waits++
		}
	}
	take := func(list *[]stretch) []stretch {
		*list = merge(*list)
		now := within(*list, step)
		*list = slices.DeleteFunc(*list, over)
		return now
	}
	waits, held, transfers := take(&m.mu.waits), take(&m.mu.held), take(&m.mu.transfers)
	m.mu.sum.Waited += length(waits)
	m.mu.sum.Transfer += length(transfers)
	m.mu.sum.Exposed += overlap(held, transfers)
}

// Total is the sums when the run has ended.
func (m *Meter) Total() Metered {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.mu.steps) > 0 {
		m.sumUp()
	}
	out := m.mu.sum
	out.Sent = report.NewTraffic(nil, m.mu.sent)
	return out
}

// stretch is an interval of time.
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

// Means are the means over workers of the share of time that they waited, the seconds per
// epoch of transfers to them, and the share of these in which they did not wait. What was not measured is NaN.
func Means(workers []Metered) (waitShare, transferSeconds, hiddenShare float64) {
	var waited, transfer, exposed float64
	n := float64(len(workers))
	if !slices.ContainsFunc(workers, func(m Metered) bool { return m.Waits > 0 }) {
		waited = math.NaN()
	}
	for _, m := range workers {
		if m.Trained > 0 {
			waited += m.Waited / m.Trained / n
			transfer += m.Transfer / float64(m.Epochs) / n
			exposed += m.Exposed / float64(m.Epochs) / n
		}
	}
	return waited, transfer, 1 - exposed/transfer
}
