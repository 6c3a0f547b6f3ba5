package watch

import (
	"cmp"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"starling/cluster"
	"starling/event"
	"starling/tensor"
	"starling/tensor/cuda"
	"starling/train"
	"starling/wire"
)

// Reporter knows what a worker does. A nil one knows nothing.
type Reporter struct {
	end wire.Endpoint // nil: a run of one worker
	mu  struct {
		sync.Mutex
		status cluster.Status
		last   time.Time // when it was last known what the worker does
		saved  time.Time
		detail *detail // nil: nothing shows it
	}
}

func NewReporter(rank int, end wire.Endpoint) *Reporter {
	r := &Reporter{end: end}
	host, _ := os.Hostname()
	r.mu.status = cluster.Status{Rank: rank, Host: host, PID: os.Getpid(),
		Steps: make([]int64, len(cluster.StepBounds)+1)}
	r.mu.last = time.Now()
	return r
}

func (r *Reporter) On(e event.Event) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	st := &r.mu.status
	if d := r.mu.detail; d != nil {
		d.on(e, r.end)
	}
	switch e := e.(type) {
	case event.Started:
		st.Epoch = e.FirstEpoch
	case event.Epoch:
		r.epoch(e)
	case event.Span:
		if e.Kind == "wait" {
			st.Waited += e.Dur.Seconds()
		}
		if e.Kind != "transfer" && e.Kind != "sample" { // of which others end the one, and other threads the other
			st.After, r.mu.last = spanText(e), e.Start.Add(e.Dur)
		}
	}
}

// REQUIRES: mu held.
func (r *Reporter) epoch(e event.Epoch) {
	st := &r.mu.status
	st.Epoch, st.StepSeconds = e.Epoch+1, e.Seconds
	if !math.IsNaN(e.Loss) && !math.IsInf(e.Loss, 0) {
		st.Loss = e.Loss
	}
	at, _ := slices.BinarySearch(cluster.StepBounds, e.Seconds)
	st.Steps[at]++
	st.StepSum += e.Seconds
}

// spanText is a part of an epoch as text.
func spanText(e event.Span) string {
	switch e.Kind {
	case "step":
		return "the " + e.Name
	case "wait":
		return "waiting for " + e.Name
	}
	return e.Kind + " " + e.Name
}

// Saving takes note of every state that keep has taken.
func (r *Reporter) Saving(keep func(*train.State) error) func(*train.State) error {
	if r == nil {
		return keep
	}
	return func(st *train.State) error {
		err := keep(st)
		if err == nil {
			r.mu.Lock()
			r.mu.status.Saved, r.mu.saved = st.Epoch, time.Now()
			r.mu.Unlock()
		}
		return err
	}
}

// Listens sets the address of the worker's metrics.
func (r *Reporter) Listens(addr string) {
	r.mu.Lock()
	r.mu.status.Metrics = addr
	r.mu.Unlock()
}

// mostWaits is how many waits a status lists, the longest first.
const mostWaits = 8

// Status is the worker's status now.
func (r *Reporter) Status() cluster.Status {
	r.mu.Lock()
	st, now := r.mu.status, time.Now()
	st.Steps = slices.Clone(st.Steps)
	st.Busy, st.SavedAgo = now.Sub(r.mu.last).Seconds(), -1
	if !r.mu.saved.IsZero() {
		st.SavedAgo = now.Sub(r.mu.saved).Seconds()
	}
	r.mu.Unlock()
	st.RSS = tensor.RSS()
	st.Card, st.CardUsed, st.CardSize = cuda.InUse()
	if r.end == nil {
		return st
	}
	for i, w := range r.end.Waits() {
		if i < mostWaits {
			st.Waits = append(st.Waits, cluster.Waiting{Rank: w.Peer, For: w.Reason(),
				Seconds: now.Sub(w.Since).Seconds()})
		}
	}
	sent, received := r.end.Ledger().Channels()
	st.Sent, st.Received = moved(sent), moved(received)
	return st
}

// Report is the status with its detail, of what has happened since the last report.
func (r *Reporter) Report() cluster.Status {
	st := r.Status()
	r.mu.Lock()
	defer r.mu.Unlock()
	if d := r.mu.detail; d != nil {
		st.Detail = d.report(&st, r.end, time.Now())
	}
	return st
}

// moved is bytes by channel, in order.
func moved(by map[wire.Channel]int64) (out []cluster.Moved) {
	for c, bytes := range by {
		out = append(out, cluster.Moved{Kind: c.Kind.String(), Link: c.Link.String(), Bytes: bytes})
	}
	slices.SortFunc(out, func(a, b cluster.Moved) int {
		return cmp.Or(cmp.Compare(a.Link, b.Link),
			cmp.Compare(a.Kind, b.Kind))
	})
	return out
}
