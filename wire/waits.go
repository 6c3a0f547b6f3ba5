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

// Wait is what somebody on this rank waits for.
type Wait struct {
	Peer  int
	What  string // "to receive from", "to send to"
	Key   Key
	Kind  Kind
	Since time.Time
}

// Reason is what is waited for as people say it: "activation rows, layer 1".
func (w Wait) Reason() string {
	id := w.Key.Coflow
	s := w.Kind.String()
	switch {
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
	w.Lock()
	defer w.Unlock()
	x := w.all[p]
	if x.times--; x.times > 0 {
		w.all[p] = x
		return
	}
	delete(w.all, p)
}

// WaitAny returns when one of several messages has left or arrived, well or not, or
// with the error of the first when the endpoint's timeout has passed, or ctx ends.
// Messages that have arrived already end it at once.
func WaitAny(ctx context.Context, list []*Pending) error {
	which := sought{any: list}
	if len(list) == 0 || which.found() || list[0].node.spin(which) {
		return nil
	}
	start, n := time.Now(), list[0].node
	var cases []reflect.SelectCase
	for _, p := range list {
		cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(p.Done())})
		n.waits.begin(p, start)
		defer n.waits.end(p)
	}
	late := time.NewTimer(n.opt.Timeout)
	defer late.Stop()
	over := len(cases)
	cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(late.C)},
		reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ctx.Done())})
	switch i, _, _ := reflect.Select(cases); {
	case i < over:
		return nil
	case i > over && context.Cause(ctx) != context.DeadlineExceeded:
		return context.Cause(ctx)
	}
	return list[0].timeout(start)
}

func (n *node) Waits() []Wait {
	n.waits.Lock()
	defer n.waits.Unlock()
	var out []Wait
	for p, x := range n.waits.all {
		out = append(out, Wait{Peer: p.peer, What: p.what, Key: p.key, Kind: p.kind, Since: x.since})
	}
	slices.SortFunc(out, func(a, b Wait) int { return a.Since.Compare(b.Since) })
	return out
}
