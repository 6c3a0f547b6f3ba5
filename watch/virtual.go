package watch

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"starling/event"
	"starling/wire"
)

// Virtual collects what simulated workers do, in virtual time. Workers only leave their events here. They are looked at
// when all workers wait, so that what was sent and waited for until then does not depend on the order in which
// goroutines ran.
type Virtual struct {
	ranks  []virtualRank
	events []Timed
	shown  map[string]bool // minor notes
	mu     struct {
		sync.Mutex
		left [][]event.Event // by ranks, not looked at yet
		some bool
	}
}

// Timed is an event and the virtual time at which it came.
type Timed struct {
	Event event.Event
	At    time.Time
}

// virtualRank is a simulated worker.
type virtualRank struct {
	host            string
	end             wire.Endpoint // nil: it has not begun
	detail          detail
	epoch           int // trained
	began, reported time.Time
}

// hasEnded is the last event of a worker.
type hasEnded struct{ event.Note }

// reportsOf is about how many reports of a worker there are of a run, before they come half as often.
const reportsOf = 300

// NewVirtual is for a simulation with a worker at each host.
func NewVirtual(hosts []string) *Virtual {
	v := &Virtual{ranks: make([]virtualRank, len(hosts)), shown: map[string]bool{}}
	for r, host := range hosts {
		v.ranks[r].host = host
	}
	v.mu.left = make([][]event.Event, len(hosts))
	return v
}

// Worker is the listener of the rank of an endpoint, and planned takes the plan of what it sends.
func (v *Virtual) Worker(end wire.Endpoint) (l event.Listener, planned func(*wire.Plan)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	r := &v.ranks[end.Rank()]
	now := end.Clock().Now
	r.end, r.began = end, now()
	r.detail = detail{now: now, every: 1<<63 - 1, in: wire.Bytes{}, activity: activity{step: virtualSlice,
		doubles: true}}
	return event.Func(func(e event.Event) { v.leave(end.Rank(), e) }), func(p *wire.Plan) {
		v.mu.Lock()
		r.detail.plan = p
		v.mu.Unlock()
	}
}

// Ended has a rank report for the last time.
func (v *Virtual) Ended(rank int) { v.leave(rank, hasEnded{}) }

func (v *Virtual) leave(rank int, e event.Event) {
	v.mu.Lock()
	v.mu.left[rank], v.mu.some = append(v.mu.left[rank], e), true
	v.mu.Unlock()
}

// Settled looks at what has happened at this time, when all workers wait.
func (v *Virtual) Settled() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.mu.some {
		return
	}
	v.mu.some = false
	for r, list := range v.mu.left {
		if v.mu.left[r] = nil; len(list) > 0 && v.ranks[r].end != nil {
			v.look(r, list)
		}
	}
}

// Events are all that came, in order. The simulation is over.
func (v *Virtual) Events() []Timed {
	v.Settled()
	return v.events
}

// look takes in the events of a rank.
func (v *Virtual) look(rank int, list []event.Event) {
	r := &v.ranks[rank]
	var spans []event.Span
	for _, e := range list {
		if s, ok := e.(event.Span); ok {
			spans = append(spans, s)
		}
	}
	slices.SortFunc(spans, func(a, b event.Span) int { // goroutines of a worker report them in any order
		return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.Dur, b.Dur), cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Name, b.Name))
	})
	for _, s := range spans {
		r.detail.on(s, r.end)
	}
	now := r.detail.now()
	for _, e := range list {
		switch e := e.(type) {
		case event.Span:
			continue
		case hasEnded:
			r.detail.ended = true
			v.report(rank, now)
			continue
		case event.Note:
			if e.Minor && v.shown[e.Text] {
				continue
			}
			v.shown[e.Text] = true
		}
		if _, note := e.(event.Note); note || rank == 0 { // the rest is the same on all
			v.events = append(v.events, Timed{e, now})
		}
		r.detail.on(e, r.end)
		if e, ok := e.(event.Epoch); ok {
			if r.epoch = e.Epoch + 1; now.Sub(r.reported) >= now.Sub(r.began)/reportsOf {
				v.report(rank, now)
			}
		}
	}
}

// report adds what a rank reports, of the time since it did so last.
func (v *Virtual) report(rank int, now time.Time) {
	r := &v.ranks[rank]
	d := &r.detail
	d.compare(r.end)
	w := event.Worker{Worker: rank, Host: r.host, Epoch: r.epoch, Traffic: d.traffic, To: r.end.SentTo()}
	if d.ended {
		w.Slices = d.activity.rest(now)
	} else {
		w.Slices = d.activity.take(now, -1, now)
	}
	for _, waited := range r.end.Waited(nil) {
		w.WaitedFor = append(w.WaitedFor, waited.Seconds())
	}
	r.reported = now
	v.events = append(v.events, Timed{w, now})
}

// Planned is what an epoch of all workers was expected to send; false: that is not known of all.
func (v *Virtual) Planned() (bytes int64, atMost, known bool) {
	for i := range v.ranks {
		d := &v.ranks[i].detail
		if d.plan == nil || d.epochs == 0 {
			return 0, false, false
		}
		atMost = atMost || d.plan.AtMost
		bytes += d.in.Sum()/int64(d.epochs) + d.plan.Begin.Sum() + d.plan.Drawn.Sum()
	}
	return bytes, atMost, len(v.ranks) > 1
}
