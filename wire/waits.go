package wire

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	"starling/coflow"
)

// Wait is what a goroutine of this rank waits for.
type Wait struct {
	Peer  int
	What  string // "to receive from", "to send to", "for an answer from"
	Key   Key
	Kind  Kind
	Since time.Time
	// Service that was called; empty: it is a message that is waited for.
	Service string
}

// Reason is what is waited for as people say it: "activation rows, layer 1".
func (w Wait) Reason() string {
	id := w.Key.Coflow
	s := w.Kind.String()
	switch {
	case w.Service != "":
		return fmt.Sprintf("to answer %q", w.Service)
	case id.Type == coflow.Rows && w.Kind == Gradient:
		s = "gradients of rows"
	case id.Type == coflow.Rows:
		s += " rows"
	case w.Kind == Parameter:
		s = "gradients of parameters"
	}
	if id.Layer >= 0 {
		s += fmt.Sprintf(", layer %d", id.Layer)
	}
	if w.What == "to send to" {
		s = "to take " + s
	}
	return s
}

// waits are those under way. Only a wait that blocks is entered, after the polling
// that most end in, so that it costs nothing where time matters.
type waits struct {
	sync.Mutex
	all map[*Pending]waiting
	by  []time.Duration // of those that have ended, for each peer
}

// waiting is since when how many wait for the same message.
type waiting struct {
	since time.Time
	times int
}

func (w *waits) begin(p *Pending, at time.Time) {
	w.Lock()
	defer w.Unlock()
	if w.all == nil {
		w.all = map[*Pending]waiting{}
	}
	x, also := w.all[p]
	if !also {
		x.since = at
	}
	x.times++
	w.all[p] = x
}

func (w *waits) end(p *Pending) {
	now := p.endpoint.clock.Now()
	w.Lock()
	defer w.Unlock()
	x := w.all[p]
	if x.times--; x.times > 0 {
		w.all[p] = x
		return
	}
	delete(w.all, p)
	if w.by == nil {
		w.by = make([]time.Duration, len(p.endpoint.links))
	}
	if p.peer >= 0 && p.peer < len(w.by) {
		w.by[p.peer] += now.Sub(x.since)
	}
}

func (n *endpoint) Waited(into []time.Duration) []time.Duration {
	n.waits.Lock()
	defer n.waits.Unlock()
	return append(into, n.waits.by...)
}

// WaitAny returns when one of several messages has left or arrived, well or not, or
// with the error of the first when the endpoint's timeout has passed, or ctx ends.
// Messages that have arrived already end it at once.
func WaitAny(ctx context.Context, list []*Pending) error {
	which := Awaited{any: list}
	if len(list) == 0 || which.Done() || list[0].endpoint.poll(which) {
		return nil
	}
	n := list[0].endpoint
	start := n.clock.Now()
	var cases []reflect.SelectCase
	for _, p := range list {
		cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(p.Done())})
		n.waits.begin(p, start)
		defer n.waits.end(p)
	}
	late, timer := Alarm(n.clock, n.opt.Timeout)
	defer timer.Stop()
	over := len(cases)
	cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(late)},
		reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ctx.Done())})
	switch i, _, _ := reflect.Select(cases); {
	case i < over:
		return nil
	case i > over && context.Cause(ctx) != context.DeadlineExceeded:
		return context.Cause(ctx)
	}
	return list[0].timeout(start)
}

func (n *endpoint) Waits() []Wait {
	n.waits.Lock()
	defer n.waits.Unlock()
	var out []Wait
	for p, x := range n.waits.all {
		w := Wait{Peer: p.peer, What: p.what, Key: p.key, Kind: p.kind, Since: x.since}
		if p.call != nil {
			w.Service = p.call.call.Service
			w.What, _ = p.call.blocked()
		}
		out = append(out, w)
	}
	slices.SortFunc(out, func(a, b Wait) int { return a.Since.Compare(b.Since) })
	return out
}
