package web

import (
	"encoding/json"
	"math"
	"slices"
	"sync"
	"time"

	"starling/event"
	"starling/report"
)

// Run is what a page knows of a run.
type Run struct {
	now func() time.Time
	mu  struct {
		sync.Mutex
		state
		changed []chan<- struct{}
	}
}

// state is a run at one moment.
type state struct {
	name     string
	began    time.Time // the first event
	last     time.Time // the latest
	opened   event.Opened
	planned  *event.Planned
	started  event.Started
	trainAt  float64 // seconds from the first event to the first epoch
	starts   int
	progress event.Progress // what is done before training; of no task: nothing
	epoch    event.Epoch    // the last
	best     event.Epoch
	done     *event.Done
	result   *report.Run
	curve    curve
	line     timeline
	ranks    []rank
	happened []happening
	left     int // happenings that are not kept
}

// rank is a worker.
type rank struct {
	seen    bool
	now     event.Worker
	before  totals // of its earlier processes
	highest int64  // memory
}

// totals are what a worker has added up.
type totals struct {
	to        []int64
	waitedFor []float64
	traffic   map[event.Traffic]event.Traffic // by kind, layer and link
}

// happening is something that the list of events shows.
type happening struct {
	At    float64 // seconds since the beginning
	Epoch int     // epochs that were trained then
	Kind  string
	Text  string
}

const (
	// mostHappenings are kept, the newest; longestText is how much of each.
	mostHappenings = 300
	longestText    = 600
	// mostWorkers bounds what a file may claim, and mostTraffic the kinds, layers and links of a worker.
	mostWorkers, mostTraffic = 4096, 512
)

// NewRun is a run that has not begun. name tells it from others on a page.
func NewRun(name string) *Run {
	r := &Run{now: time.Now}
	r.mu.name = name
	return r
}

// On takes in an event that comes now.
func (r *Run) On(e event.Event) {
	if _, span := e.(event.Span); !span {
		r.Take(e, r.now())
	}
}

// Take takes in an event that came at a time.
func (r *Run) Take(e event.Event, at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.mu.state
	if s.began.IsZero() {
		s.began = at
	}
	s.last = at
	s.take(e, at.Sub(s.began).Seconds())
	for _, c := range r.mu.changed {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// notify has a channel with space for one know of changes, until stop is called.
func (r *Run) notify(c chan<- struct{}) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.changed = append(r.mu.changed, c)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.mu.changed = slices.DeleteFunc(r.mu.changed, func(o chan<- struct{}) bool { return o == c })
	}
}

// named is what a title needs.
func (r *Run) named() *state {
	r.mu.Lock()
	defer r.mu.Unlock()
	return &state{name: r.mu.name, started: r.mu.started}
}

// snapshot is a copy of the state.
func (r *Run) snapshot() *state {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.mu.state
	s.curve, s.line = s.curve.copy(), s.line.copy()
	s.ranks = slices.Clone(s.ranks)
	for i := range s.ranks {
		s.ranks[i].now.Slices = nil
	}
	s.happened = slices.Clone(s.happened)
	return &s
}

func (s *state) take(e event.Event, at float64) {
	switch e := e.(type) {
	case event.Opened:
		if s.opened = e; e.Virtual && s.line.step == 0 {
			s.line.step = finestVirtual
		}
	case event.Planned:
		s.planned = &e
	case event.Started:
		s.start(e, at)
	case event.Epoch:
		s.train(e, at)
	case event.Worker:
		s.worker(e, at)
	case event.Progress:
		s.progress = e
	case event.Saved:
		s.happens(at, "saved", "checkpoint "+e.Path+", "+event.Bytes(e.Bytes))
	case event.Note:
		if kind := e.Mark; kind != "" {
			s.happens(at, kind, e.Text)
		} else if !e.Minor {
			s.happens(at, "note", e.Text)
		}
	case event.Done:
		s.done = &e
		s.happens(at, "done", e.Reason)
	case event.Result:
		var x report.Run
		x.WaitShare, x.HiddenShare = report.Number(math.NaN()), report.Number(math.NaN())
		if json.Unmarshal(e.Report, &x) == nil {
			s.result = &x
		}
	}
}

func (s *state) start(e event.Started, at float64) {
	if s.starts == 0 {
		s.trainAt = at
	}
	s.started, s.done, s.progress = e, nil, event.Progress{}
	s.starts++
	s.line.grow(min(max(e.Workers, 1), mostWorkers))
	for len(s.ranks) < min(max(e.Workers, 1), mostWorkers) {
		s.ranks = append(s.ranks, rank{})
	}
}

func (s *state) train(e event.Epoch, at float64) {
	if e.Epoch < 0 {
		return
	}
	s.curve.add(e, at)
	s.epoch = e
	if e.Measured && e.Best {
		s.best = e
	}
}

// happens notes what happened.
func (s *state) happens(at float64, kind, text string) {
	const runeBytes = 4
	if len(text) > runeBytes*longestText {
		text = text[:runeBytes*longestText]
	}
	if r := []rune(text); len(r) > longestText {
		text = string(r[:longestText]) + "…"
	}
	trained := 0
	if s.curve.Every > 0 {
		trained = s.epoch.Epoch + 1
	}
	s.happened = append(s.happened, happening{at, trained, kind, text})
	if len(s.happened) > mostHappenings {
		s.happened = slices.Delete(s.happened, s.oldest(), s.oldest()+1)
		s.left++
	}
}

// oldest is the happening to forget: checkpoints and notes before others.
func (s *state) oldest() int {
	i := slices.IndexFunc(s.happened, func(h happening) bool { return h.Kind == "saved" || h.Kind == "note" })
	return max(i, 0)
}

// worker takes in the report of a worker.
func (s *state) worker(w event.Worker, at float64) {
	if w.Worker < 0 || w.Worker >= mostWorkers {
		return
	}
	for len(s.ranks) <= w.Worker {
		s.ranks = append(s.ranks, rank{})
	}
	s.line.grow(len(s.ranks))
	r := &s.ranks[w.Worker]
	if r.seen && (w.PID != r.now.PID || w.Host != r.now.Host || sum(w.To) < sum(r.now.To)) {
		r.before = r.totals() // it began anew
	}
	r.seen, r.highest = true, max(r.highest, w.Memory)
	for i := range w.Slices {
		x := &w.Slices[i]
		s.line.take(w.Worker, at-x.Ago, x)
	}
	b, _ := s.line.at(w.Worker, at)
	b.memory = max(b.memory, float32(w.Memory))
	r.now = w
}

func sum(list []int64) (n int64) {
	for _, x := range list {
		n += x
	}
	return n
}

// totals sums up what all its processes have added up.
func (r *rank) totals() totals {
	t := totals{to: slices.Clone(r.now.To), waitedFor: slices.Clone(r.now.WaitedFor),
		traffic: map[event.Traffic]event.Traffic{}}
	for i, x := range r.before.to {
		if i < len(t.to) {
			t.to[i] += x
		}
	}
	for i, x := range r.before.waitedFor {
		if i < len(t.waitedFor) {
			t.waitedFor[i] += x
		}
	}
	for _, x := range r.now.Traffic {
		t.add(x)
	}
	for _, x := range r.before.traffic {
		t.add(x)
	}
	return t
}

// add sums up bytes by kind, layer and link.
func (t *totals) add(x event.Traffic) {
	key := event.Traffic{Kind: x.Kind, Layer: x.Layer, Link: x.Link}
	y := t.traffic[key]
	if _, known := t.traffic[key]; !known && len(t.traffic) >= mostTraffic {
		return
	}
	t.traffic[key] = event.Traffic{Kind: x.Kind, Layer: x.Layer, Link: x.Link, Planned: y.Planned + x.Planned,
		Counted: y.Counted + x.Counted}
}
