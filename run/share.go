package run

import (
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"time"

	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/partition"
	"starling/tensor"
	"starling/train"
	"starling/wire"
)

// task is what every worker of a run is told, beside its rank.
type task struct {
	Spec  Spec        `json:"spec"`
	Data  graph.Meta  `json:"data"`
	Parts string      `json:"parts"` // the partition's folder
	ID    string      `json:"id"`    // and its id
	From  *checkpoint `json:"from,omitempty"`

	watch *reporter // of this worker
}

// share is what one worker ended with.
type share struct {
	History    history   `json:"history"`
	Metric     string    `json:"metric"`
	Reason     string    `json:"reason"`
	Val        Number    `json:"val"`
	Test       Number    `json:"test"`
	Parameters int       `json:"parameters"`
	PeakBytes  int64     `json:"peak_bytes"`
	PeakRSS    int64     `json:"peak_rss"`
	Threads    int       `json:"threads"`
	Metered    metered   `json:"metered"`
	Traffic    []Traffic `json:"traffic"`
	AtMost     bool      `json:"at_most,omitempty"` // the plan is an upper bound

	best []nn.Tensor
}

// timeout bounds every wait of a worker for another.
func (s *Spec) timeout() time.Duration { return time.Duration(s.Timeout) * time.Second }

// heartbeat is how long a worker may be silent.
func (s *Spec) heartbeat() time.Duration { return time.Duration(s.Heartbeat) * time.Second }

// threadsOf is the cores of each of so many workers on one host.
func (s *Spec) threadsOf(workers int) int {
	if s.Threads > 0 || s.DType == "f64" {
		return s.threads()
	}
	return max(s.threads()/workers, 1)
}

// work trains as one rank. keep is where its state goes. When ctx ends on any rank, all stop after the same epoch.
func (t *task) work(ctx context.Context, part *partition.Part, end wire.Endpoint, threads int, from *train.State, keep func(*train.State) error, events event.Listener) (*share, error) {
	s := t.Spec
	s.Threads = threads
	opt, err := s.options(&t.Data)
	if err != nil {
		return nil, err
	}
	opt.Resume = from
	dev := s.device()
	defer dev.Close()
	m := newMeter(end.Ledger())
	events = event.All(m, t.watch, event.Func(tidy), t.heard(end.Rank(), events))
	if midway, last := s.saves(); midway || last {
		opt.Save, opt.SaveEvery, opt.MidwayOnly = t.watch.saving(keep), s.CheckpointEvery, !last
	}
	// Waits do not end with ctx: whoever is asked to stop still finishes the epoch.
	peers := train.NewGroup(context.WithoutCancel(ctx), end, dev, part.Book.Servers)
	r, err := train.Worker(ctx, dev, part, end, peers, opt, events)
	if err != nil {
		return nil, err
	}
	return &share{History: historyOf(&r.History), Metric: r.Metric, Reason: r.Reason, Val: Number(r.ValMetric), Test: Number(r.TestMetric), Parameters: r.Parameters,
		PeakBytes: r.PeakBytes, PeakRSS: tensor.PeakRSS(), Threads: threads, Metered: m.total(), AtMost: r.Plan.AtMost,
		Traffic: traffic(planned(from, r), train.Counted(end.Ledger())), best: r.Best}, nil
}

// tidy gives back what a strategy needed to make its lists, before matrices are made.
func tidy(e event.Event) {
	if _, ok := e.(event.Started); ok {
		debug.FreeOSMemory()
	}
}

// heard is the listener of a rank: rank 0 speaks for all, the others tell only what
// is their own.
func (t *task) heard(rank int, events event.Listener) event.Listener {
	return event.Func(func(e event.Event) {
		switch x := e.(type) {
		case event.Span:
			x.Worker = rank
			events.On(x)
		case event.Note:
			events.On(e)
		default:
			if rank == 0 {
				events.On(e)
			}
		}
	})
}

// openPart maps the part of a rank: in the run's partition, or where the worker was
// told it lies: a partition, a folder of some parts, or the part itself.
func (t *task) openPart(rank int, dir string) (part *partition.Part, err error) {
	if dir == "" {
		dir = t.Parts
	}
	if part, err = partition.OpenPart(dir, rank); err != nil && !partition.IsPartition(dir) {
		part, err = partition.OpenPartFolder(dir, partition.OpenOptions{})
	}
	if err != nil {
		return nil, err
	}
	if part.Book.ID != t.ID || part.Meta.Part != rank {
		defer part.Close()
		return nil, &graph.InputError{File: part.Dir, Found: fmt.Sprintf("part %d of partition %s", part.Meta.Part, part.Book.ID),
			Want: fmt.Sprintf("part %d of %s", rank, t.ID), Fix: "copy the right part to this host, or name its folder with --part-dir"}
	}
	t.Spec.regroup(part)
	return part, nil
}

// regroup makes --servers hold for strategies too, whatever the partition was cut for.
func (s *Spec) regroup(part *partition.Part) {
	if s.Servers > 0 {
		part.Book.Servers = s.Servers
	}
}

// result joins what the workers ended with. They must agree on all that they added up.
func result(shares []*share) (*train.Result, error) {
	first := shares[0]
	for r, s := range shares {
		if s.Reason != first.Reason || !slices.EqualFunc(s.History.Loss, first.History.Loss, same) || s.History.BestEpoch != first.History.BestEpoch {
			return nil, fmt.Errorf("rank %d ended with %d epochs (%s) and best epoch %d, rank 0 with %d (%s) and %d: they have come apart, which is a bug",
				r, len(s.History.Loss), s.Reason, s.History.BestEpoch, len(first.History.Loss), first.Reason, first.History.BestEpoch)
		}
	}
	out := &train.Result{History: first.History.floats(), Metric: first.Metric, Reason: first.Reason, ValMetric: float64(first.Val), TestMetric: float64(first.Test),
		Parameters: first.Parameters, Best: first.best}
	for _, s := range shares {
		out.PeakBytes = max(out.PeakBytes, s.PeakBytes)
	}
	return out, nil
}

func same(a, b Number) bool { return math.Float64bits(float64(a)) == math.Float64bits(float64(b)) }
