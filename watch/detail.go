package watch

import (
	"time"

	"starling/cluster"
	"starling/event"
	"starling/report"
	"starling/wire"
)

// detail is what pages and files of events show of a worker beside its status.
type detail struct {
	now      func() time.Time
	every    time.Duration // bytes are compared at most so often
	activity activity
	waited   []time.Duration // for each peer, when the last wait ended
	scratch  []time.Duration

	plan      *wire.Plan
	first     int        // epoch of this start
	in        wire.Bytes // planned of the epochs that are done
	epochs    int
	measured  int
	ended     bool
	traffic   []event.Traffic // at the end of an epoch
	trafficAt time.Time
}

// trafficEvery is how often sent bytes are compared with the plan: it takes longer than a short epoch.
const trafficEvery = 500 * time.Millisecond

// Detailed has the reporter also keep what pages and files of events show.
func (r *Reporter) Detailed() *Reporter {
	r.mu.detail = &detail{now: time.Now, every: trafficEvery, in: wire.Bytes{}, activity: activity{step: sliceTime}}
	return r
}

// Planned takes the plan of what the worker sends.
func (r *Reporter) Planned(p *wire.Plan) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.detail != nil {
		r.mu.detail.plan = p
	}
}

// on takes in an event.
func (d *detail) on(e event.Event, end wire.Endpoint) {
	switch e := e.(type) {
	case event.Started:
		d.first = e.FirstEpoch
		now := d.now()
		d.activity.add(now, now, nil)
	case event.Epoch:
		d.epoch(e, end)
	case event.Span:
		d.span(e, end)
	case event.Done:
		d.ended = true
		d.compare(end)
	}
}

func (d *detail) span(e event.Span, end wire.Endpoint) {
	var count func(s *event.Slice, seconds float64)
	switch {
	case e.Kind == "wait" && e.Name == "batch":
		count = func(s *event.Slice, seconds float64) { s.Draw += seconds }
	case e.Kind == "wait":
		peer, wait := d.whom(end), 0.0
		count = func(s *event.Slice, seconds float64) {
			if wait += seconds; s.Wait < seconds || s.For < 0 {
				s.For = peer
			}
			s.Wait += seconds
		}
	case e.Kind == "transfer":
		count = func(s *event.Slice, seconds float64) { s.Transfer += seconds }
	case e.Kind == "step" && e.Name == "save":
		count = func(s *event.Slice, seconds float64) { s.Save += seconds }
	case e.Kind == "step" && (e.Name == "evaluate" || e.Name == "pairs"):
		count = func(s *event.Slice, seconds float64) { s.Evaluate += seconds }
	case e.Kind == "sample":
		return // on threads of its own
	default:
		count = func(*event.Slice, float64) {}
	}
	d.activity.add(e.Start, e.Start.Add(e.Dur), count)
}

// whom is the peer that was waited for longest since the last wait; -1: for none that blocked.
func (d *detail) whom(end wire.Endpoint) int {
	if end == nil {
		return -1
	}
	d.scratch = end.Waited(d.scratch[:0])
	peer, most := -1, time.Duration(0)
	for p, w := range d.scratch {
		if p < len(d.waited) {
			w -= d.waited[p]
		}
		if w > most {
			peer, most = p, w
		}
	}
	d.waited, d.scratch = d.scratch, d.waited
	return peer
}

func (d *detail) epoch(e event.Epoch, end wire.Endpoint) {
	d.epochs++
	if e.Measured {
		d.measured++
	}
	if d.plan == nil || end == nil {
		return
	}
	d.in.AddAll(d.plan.In(e.Epoch), 1)
	if d.now().Sub(d.trafficAt) >= d.every {
		d.compare(end)
	}
}

// compare puts what was planned of the epochs that are done beside what was counted.
func (d *detail) compare(end wire.Endpoint) {
	if d.plan == nil || end == nil {
		return
	}
	p := *d.plan
	if !d.ended {
		p.End = nil
	}
	planned := p.Beside(d.epochs, d.measured, d.epochs)
	planned.AddAll(d.in, 1)
	d.traffic, d.trafficAt = report.NewTraffic(planned, end.Ledger().SentBytes()), d.now()
}

// report is the detail of a status.
func (d *detail) report(st *cluster.Status, end wire.Endpoint, now time.Time) *event.Worker {
	out := &event.Worker{Worker: st.Rank, Host: st.Host, PID: st.PID, Epoch: st.Epoch, Memory: st.RSS, Device: st.Card,
		DeviceUsed: st.CardUsed, DeviceSize: st.CardSize, Traffic: d.traffic}
	peer, since := -1, now
	if len(st.Waits) > 0 && st.Waits[0].Seconds >= unsure.Seconds() {
		peer, since = st.Waits[0].Rank, now.Add(-time.Duration(st.Waits[0].Seconds*float64(time.Second)))
	}
	if d.ended {
		out.Slices = d.activity.rest(now)
	} else {
		out.Slices = d.activity.take(now, peer, since)
	}
	if end == nil {
		return out
	}
	out.To = end.SentTo()
	for _, w := range end.Waited(nil) {
		out.WaitedFor = append(out.WaitedFor, float64(w.Milliseconds())/1e3)
	}
	return out
}
