package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"starling/event"
	"starling/wire"
)

// Status is what a worker reports with its signs of life. Times are seconds
// before the report, so that clocks need not agree.
type Status struct {
	Rank int    `json:"rank"`
	Host string `json:"host"`
	PID  int    `json:"pid"`

	Epoch       int     `json:"epoch"` // that many are done
	Loss        float64 `json:"loss"`  // of the last
	StepSeconds float64 `json:"step_seconds"`
	// Steps counts epochs since the worker joined, by StepBounds, and the rest;
	// StepSum is their seconds.
	Steps   []int64 `json:"steps,omitempty"`
	StepSum float64 `json:"step_sum"`

	After  string    `json:"after,omitempty"` // the part of an epoch that it ended last
	Busy   float64   `json:"busy"`            // since then
	Waits  []Waiting `json:"waits,omitempty"` // now, the longest first
	Waited float64   `json:"waited"`          // since it joined

	RSS      int64   `json:"rss"`
	Card     string  `json:"card,omitempty"`      // that it computes on
	CardUsed int64   `json:"card_used,omitempty"` // by all processes
	CardSize int64   `json:"card_size,omitempty"`
	Sent     []Moved `json:"sent,omitempty"`
	Received []Moved `json:"received,omitempty"`

	Saved    int     `json:"saved"`     // epochs in the last state that it sent
	SavedAgo float64 `json:"saved_ago"` // -1: none yet

	// Detail is what a page or a file of events is to know of the worker; nil: there is none.
	Detail *event.Worker `json:"detail,omitempty"`

	Metrics string  `json:"metrics,omitempty"` // where it is to be asked for more
	Age     float64 `json:"age"`               // of this status; -1: none came yet
}

// StepBounds are the seconds that divide short epochs from long ones.
var StepBounds = []float64{0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30, 100}

// Waiting is a wait for another rank.
type Waiting struct {
	Rank    int     `json:"rank"`
	For     string  `json:"for"`
	Seconds float64 `json:"seconds"`
}

// Moved is bytes of a kind over a link.
type Moved struct {
	Kind  string `json:"kind"`
	Link  string `json:"link"`
	Bytes int64  `json:"bytes"`
}

// statusEvery is how often a worker reports its status; mute how long it may then be
// silent before that is shown.
const (
	statusEvery = time.Second
	mute        = 3.0
)

// Report sends the status that f returns, now and about once per second.
func (m *Member) Report(f func() Status) {
	m.control.report.Store(&f)
	m.control.write(newMessage("ping", f())) // a connection that fails is noticed elsewhere
}

// ReportNow sends the status once more, at the end of a worker.
func (m *Member) ReportNow() {
	if f := m.control.report.Load(); f != nil {
		m.control.write(newMessage("ping", (*f)())) // as in Report
	}
}

// sign is the next sign of life, and the time of its report.
func (c *control) sign(last, now time.Time) (message, time.Time) {
	f := c.report.Load()
	if f == nil || now.Sub(last) < statusEvery*9/10 {
		return message{Type: "ping"}, last
	}
	return newMessage("ping", (*f)()), now
}

// status takes in a worker's report.
func (s *session) status(g *joinedWorker, body json.RawMessage) {
	var st Status
	if json.Unmarshal(body, &st) != nil {
		return
	}
	st.Rank = g.rank
	s.out = append(s.out, act{status: &st, rank: g.rank})
}

// silent reports whether a worker has not reported for too long.
func (st *Status) silent() bool { return st.Age < 0 || st.Age > mute }

// idle is the wait that keeps a worker from computing; nil: none.
func (st *Status) idle() *Waiting {
	if st.silent() || len(st.Waits) == 0 || st.Waits[0].Seconds+st.Age < 1 {
		return nil
	}
	return &st.Waits[0]
}

// LongestWait is how long a rank has waited, at most, in seconds.
func LongestWait(ranks []Status) (most float64) {
	for i := range ranks {
		if w := ranks[i].idle(); w != nil {
			most = max(most, w.Seconds+ranks[i].Age)
		}
	}
	return most
}

// shown is how many ranks a line of text names.
const shown = 8

// WhoWaits is the timeline of a stall: who has waited how long for whom, what those
// do that wait for none, and for whom all wait in the end. Ranks are in order.
func WhoWaits(ranks []Status) string {
	var waiting, others []*Status
	for i := range ranks {
		if ranks[i].idle() != nil {
			waiting = append(waiting, &ranks[i])
		} else {
			others = append(others, &ranks[i])
		}
	}
	slices.SortStableFunc(waiting, func(a, b *Status) int {
		return int(1e3 * (b.idle().Seconds + b.Age - a.idle().Seconds - a.Age))
	})
	var parts []string
	for i, st := range waiting {
		w, verb := st.idle(), ""
		if i == 0 {
			verb = "has waited "
		}
		parts = append(parts, fmt.Sprintf("rank %d %s%.1f s for rank %d (%s)", st.Rank, verb, w.Seconds+st.Age, w.Rank,
			w.For))
	}
	parts = atMost(parts, "wait")
	var free []string
	for _, st := range others {
		free = append(free, fmt.Sprintf("rank %d %s", st.Rank, st.Now()))
	}
	parts = append(parts, atMost(free, "do not wait")...)
	return strings.Join(append(parts, roots(ranks)), "; ")
}

// atMost cuts a list that is too long to read.
func atMost(parts []string, do string) []string {
	if len(parts) <= shown {
		return parts
	}
	return append(parts[:shown:shown], fmt.Sprintf("%s %s too", event.Counted(len(parts)-shown, "other"), do))
}

// Now is what a worker does, as far as is known.
func (st *Status) Now() string {
	switch w := st.idle(); {
	case st.Age < 0:
		return "has reported nothing yet"
	case st.silent():
		return fmt.Sprintf("has reported nothing for %.1f s", st.Age)
	case w != nil:
		return fmt.Sprintf("has waited %.1f s for rank %d (%s)", w.Seconds+st.Age, w.Rank, w.For)
	case len(st.Waits) > 0:
		return fmt.Sprintf("waits for rank %d (%s)", st.Waits[0].Rank, st.Waits[0].For)
	case st.After == "":
		return fmt.Sprintf("prepares since %.1f s", st.Busy+st.Age)
	}
	return fmt.Sprintf("computes since %.1f s, after %s", st.Busy+st.Age, st.After)
}

// roots finds for whom all wait in the end: each wait is followed to a rank that
// waits for none, or in a cycle.
func roots(ranks []Status) string {
	var ends []int
	circle := false
	for from := range ranks {
		at, steps := from, 0
		for w := ranks[at].idle(); w != nil && w.Rank >= 0 && w.Rank < len(ranks) &&
			steps <= len(ranks); w = ranks[at].idle() {
			at, steps = w.Rank, steps+1
		}
		switch {
		case steps > len(ranks):
			circle = true
		case steps > 0 && !slices.Contains(ends, at):
			ends = append(ends, at)
		}
	}
	switch {
	case len(ends) == 0 && circle:
		return "they wait for each other"
	case len(ends) == 0:
		return "no rank waits"
	case len(ends) == 1:
		st := &ranks[ends[0]]
		if st.PID == 0 {
			return fmt.Sprintf("all wait for rank %d", st.Rank)
		}
		return fmt.Sprintf("all wait for rank %d (pid %d on %s)", st.Rank, st.PID, st.Host)
	}
	slices.Sort(ends)
	return "all wait for ranks " + join(ends)
}

// show answers a watcher with the job's view, once.
func (c *Coordinator) show(p *control, welcome message) error {
	if c.cfg.Watch == nil {
		return errors.New("this job cannot be watched")
	}
	view := make(chan any, 1)
	if !c.onLoop(func() { view <- c.cfg.Watch() }) {
		return errEnded
	}
	body, err := json.Marshal(<-view)
	if err != nil { // a watcher must not end the job
		return fmt.Errorf("the status of this job cannot be encoded: %w", err)
	}
	if err := p.write(welcome); err != nil {
		return err
	}
	return p.write(message{Type: "view", Body: body})
}

// Watch asks a job for its view, once, and decodes it into view.
func Watch(ctx context.Context, in JoinRequest, view any) error {
	conn, err := in.Identity.Dial(ctx, in.Coordinator)
	if err != nil {
		return fmt.Errorf("no run answers at %s: %w", in.Coordinator, err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	c := newControl(conn, in.Timeout, wire.OrReal(in.Clock))
	if err := c.introduce(Hello{Version: in.Version, Rank: -1, Watch: true}, "watcher", in); err != nil {
		return err
	}
	m, err := c.expect("view", maxLine, 0, time.Time{})
	if err != nil {
		return err
	}
	return json.Unmarshal(m.Body, view)
}
