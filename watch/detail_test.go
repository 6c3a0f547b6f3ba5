package watch

import (
	"reflect"
	"testing"
	"time"

	"starling/cluster"
	"starling/event"
	"starling/wire"
)

// counting is an endpoint that has sent and waited what a test says.
type counting struct {
	wire.Endpoint
	ledger *wire.Ledger
	waited []time.Duration
}

func (c *counting) Ledger() *wire.Ledger                        { return c.ledger }
func (c *counting) Waited(into []time.Duration) []time.Duration { return append(into, c.waited...) }
func (c *counting) SentTo() []int64                             { return []int64{5, 0, 6} }

// detailed is a detail with a clock of its own, which stands at second 0.
type detailed struct {
	detail
	end   *counting
	start time.Time
	clock time.Time
}

func newDetailed() *detailed {
	d := &detailed{end: &counting{ledger: wire.NewLedger(), waited: make([]time.Duration, 3)}, start: time.Unix(1e9, 0)}
	d.clock = d.start
	d.detail = detail{now: func() time.Time { return d.clock }, every: trafficEvery, in: wire.Bytes{},
		activity: activity{step: sliceTime}}
	return d
}

func (d *detailed) at(s float64) time.Time {
	return d.start.Add(time.Duration(s * float64(time.Second)))
}

// does has the worker do something between two seconds.
func (d *detailed) does(kind, name string, from, to float64) {
	d.clock = d.at(to)
	d.on(event.Span{Kind: kind, Name: name, Start: d.at(from), Dur: d.at(to).Sub(d.at(from))}, d.end)
}

// TestDetailOfSpans: each kind of span is the part of a slice that it is for, and a wait is for the peer that was
// waited for longest since the wait before.
func TestDetailOfSpans(t *testing.T) {
	d := newDetailed()
	d.on(event.Started{FirstEpoch: 2}, d.end)
	d.end.waited[2] = 100 * time.Millisecond
	d.does("wait", "activation rows", 0, 0.1)
	d.does("wait", "batch", 0.1, 0.2)
	d.does("step", "save", 0.2, 0.3)
	d.does("step", "evaluate", 0.3, 0.4)
	d.does("sample", "edges", 0, 0.4)
	d.does("transfer", "rows", 0.1, 0.15)
	d.end.waited[1] = 90 * time.Millisecond
	d.does("wait", "gradients", 0.4, 0.5)
	d.does("forward", "convs.0", 0.5, 0.6)
	got := d.activity.take(d.at(2), -1, d.at(2))[:6]
	want := []event.Slice{{Wait: 0.1, For: 2}, {Draw: 0.1, For: -1, Transfer: 0.05}, {Save: 0.1, For: -1},
		{Evaluate: 0.1, For: -1}, {Wait: 0.1, For: 1}, {For: -1}}
	for i := range want {
		want[i].Seconds, want[i].Ago = 0.1, 2-float64(i)*0.1
		if got[i].Ago -= want[i].Ago; got[i].Ago > 1e-6 || got[i].Ago < -1e-6 {
			t.Errorf("slice %d began %v s off", i, got[i].Ago)
		}
		if got[i].Ago = want[i].Ago; got[i] != want[i] {
			t.Errorf("slice %d: %+v, want %+v", i, got[i], want[i])
		}
	}
}

// TestDetailOfTraffic: bytes are compared at the ends of epochs, but not at each of short ones, and once more at the
// end of the run, with what is sent then.
func TestDetailOfTraffic(t *testing.T) {
	d := newDetailed()
	rows := wire.Class{Kind: wire.Feature, Link: wire.SameHost}
	d.plan = wire.NewPlan()
	d.plan.Epoch = func(epoch int) wire.Bytes { return wire.Bytes{rows: int64(100 + epoch)} }
	d.plan.End.Add(rows, 7)
	sent := func(bytes int) { d.end.ledger.AddSent(wire.Feature, wire.SameHost, wire.Key{}, bytes, 0) }
	is := func(when string, planned, counted int64) {
		t.Helper()
		want := []event.Traffic{{Kind: "feature", Link: "same_host", Planned: planned, Counted: counted}}
		if !reflect.DeepEqual(d.traffic, want) {
			t.Errorf("%s: %+v, want %+v", when, d.traffic, want)
		}
	}
	d.on(event.Started{}, d.end)
	sent(100)
	d.clock = d.at(1)
	d.on(event.Epoch{}, d.end)
	is("after an epoch", 100, 100)
	sent(99)
	d.clock = d.at(1.2)
	d.on(event.Epoch{Epoch: 1}, d.end)
	is("after a short one", 100, 100)
	sent(102)
	d.clock = d.at(1.6)
	d.on(event.Epoch{Epoch: 2, Measured: true}, d.end)
	is("after the next", 303, 301)
	sent(9)
	d.on(event.Done{}, d.end)
	is("at the end", 310, 310)
}

// TestDetailOfStatus: a report has the GPU, the bytes by peer and the waits, also one that has not ended; without
// peers, what the worker itself is known by.
func TestDetailOfStatus(t *testing.T) {
	d := newDetailed()
	d.on(event.Started{}, d.end)
	d.end.waited[0] = 1500 * time.Millisecond
	st := &cluster.Status{Rank: 1, Host: "h", PID: 7, Epoch: 3, RSS: 50, Card: "H200", CardUsed: 20, CardSize: 80,
		Waits: []cluster.Waiting{{Rank: 2, Seconds: 2}}}
	got := d.report(st, d.end, d.at(3))
	slices := got.Slices
	if got.Slices = nil; !reflect.DeepEqual(*got, event.Worker{Worker: 1, Host: "h", PID: 7, Epoch: 3, Memory: 50,
		Device: "H200", DeviceUsed: 20, DeviceSize: 80, To: []int64{5, 0, 6}, WaitedFor: []float64{1.5, 0, 0}}) {
		t.Errorf("%+v", got)
	}
	if n := len(slices); n != 30 || slices[5].Wait != 0 || slices[15].Wait != 0.1 || slices[15].For != 2 {
		t.Errorf("%d slices: %+v", n, slices)
	}
	if alone := d.report(st, nil, d.at(4)); alone.To != nil || alone.WaitedFor != nil || alone.DeviceSize != 80 {
		t.Errorf("%+v", alone)
	}
}
