package run

import (
	"context"
	"fmt"
	"math"
	"runtime/debug"
	"slices"
	"time"

	"starling/collective"
	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/partition"
	"starling/report"
	"starling/run/watch"
	"starling/spec"
	"starling/tensor"
	"starling/train"
	"starling/wire"
)

// task is what every worker of a run is told, beside its rank.
type task struct {
	Spec  spec.Spec   `json:"spec"`
	Data  graph.Meta  `json:"data"`
	Parts string      `json:"parts"` // the partition's folder
	ID    string      `json:"id"`    // and its id
	From  *checkpoint `json:"from,omitempty"`
	Infer *inference  `json:"infer,omitempty"` // nil: it trains

	watch *watch.Reporter // of this worker
	here  int             // workers on this host, each a process; 0: all in this one
}

// share is what one worker ended with.
type share struct {
	History    history          `json:"history"`
	Metric     string           `json:"metric"`
	Reason     string           `json:"reason"`
	Val        report.Number    `json:"val"`
	Test       report.Number    `json:"test"`
	Parameters int              `json:"parameters"`
	PeakBytes  int64            `json:"peak_bytes"`
	PeakRSS    int64            `json:"peak_rss"`
	Threads    int              `json:"threads"`
	Metered    watch.Metered    `json:"metered"`
	Traffic    []report.Traffic `json:"traffic"`
	AtMost     bool             `json:"at_most,omitempty"` // the plan is an upper bound
	Deviation  float64          `json:"deviation,omitempty"`
	Rows       train.RowCounts  `json:"rows"`
	CPU        cpuUse           `json:"cpu"`

	Explainer train.ExplainerUse `json:"explainer"`

	best []nn.Tensor
}

// timeoutOf bounds every wait of a worker for another.
func timeoutOf(s *spec.Spec) time.Duration { return time.Duration(s.Cluster.Timeout) * time.Second }

// heartbeatOf is how long a worker may be silent.
func heartbeatOf(s *spec.Spec) time.Duration { return time.Duration(s.Cluster.Heartbeat) * time.Second }

// work trains as one rank; keep takes its state. When ctx ends on any rank, all stop after the
// same epoch.
func (t *task) work(ctx context.Context, part *partition.Part, end wire.Endpoint, threads int, from *train.State,
	keep func(*train.State) error, events event.Listener) (_ *share, err error) {
	defer deviceFailure(&err)
	if t.Infer != nil {
		return t.infer(ctx, part, end, threads, from)
	}
	s := t.Spec
	s.Machine.Threads = threads
	opt, err := s.Options(&t.Data)
	if err != nil {
		return nil, err
	}
	opt.Resume, opt.HostDevice = from, hostDevice(s)
	dev, err := newDevice(&s, end.Rank())
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	m := watch.NewMeter(end.Ledger())
	events = event.All(m, t.watch, event.Func(freeAfterPreparation), ownEvents(end.Rank(), events))
	if midway, last := savesState(&s); midway || last {
		opt.Save, opt.MidwayOnly = t.watch.Saving(keep), !last
		opt.SaveEvery, opt.SaveSteps = saveEvery(&s)
	}
	// Waits do not end with ctx: a worker that is told to stop still finishes the epoch.
	peers := train.NewGroup(context.WithoutCancel(ctx), end, dev, part.Book.Servers)
	if err := meetCards(context.WithoutCancel(ctx), &s, dev, end, events); err != nil {
		return nil, err
	}
	if err := reduceByCards(context.WithoutCancel(ctx), &s, dev, end, peers, events); err != nil {
		return nil, err
	}
	used := measureCPU(t.here)
	r, err := train.Worker(ctx, dev, part, end, peers, opt, events)
	if err != nil {
		return nil, err
	}
	if err := collective.Part(context.WithoutCancel(ctx), dev, end); err != nil {
		return nil, err
	}
	return &share{History: historyOf(&r.History), Metric: r.Metric, Reason: r.Reason, Val: report.Number(r.ValMetric),
		Test: report.Number(r.TestMetric), Parameters: r.Parameters, PeakBytes: r.PeakBytes, PeakRSS: tensor.PeakRSS(),
		Threads: threads, Metered: m.Total(), AtMost: r.Plan.AtMost, Deviation: r.Plan.Deviation, Rows: r.Rows, CPU: used(), Explainer: r.Explainer,
		Traffic: report.NewTraffic(plannedBytes(from, r), end.Ledger().SentBytes()), best: r.Best}, nil
}

// plannedBytes is what the plan says that a run sends which went as r did.
func plannedBytes(from *train.State, r *train.Result) wire.Bytes {
	first, epochs, evaluated := 0, len(r.Loss), len(r.Measured)
	if from != nil {
		first, epochs, evaluated = from.Epoch, epochs-from.Epoch, evaluated-len(from.History.Measured)
	}
	begun := epochs
	if r.Reason == "interrupted" {
		begun++
	}
	return r.Plan.Total(first, epochs, evaluated, begun)
}

// freeAfterPreparation returns what the strategy needed to prepare, before matrices are
// allocated.
func freeAfterPreparation(e event.Event) {
	if _, ok := e.(event.Started); ok {
		debug.FreeOSMemory()
	}
}

// ownEvents is the listener of a rank: rank 0 tells what is the same on all, the others only
// what is their own.
func ownEvents(rank int, events event.Listener) event.Listener {
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

// openPart maps the part of a rank: in the run's partition or, if dir is given, in a partition
// there, a folder of some parts, or the folder of the part itself.
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
		return nil, &graph.InputError{File: part.Dir,
			Found: fmt.Sprintf("part %d of partition %s", part.Meta.Part, part.Book.ID),
			Want:  fmt.Sprintf("part %d of %s", rank, t.ID),
			Fix:   "copy the right part to this host, or name its folder with --part-dir"}
	}
	regroup(&t.Spec, part)
	return part, nil
}

// regroup makes strategies group workers by --servers, whatever the partition was made for.
func regroup(s *spec.Spec, part *partition.Part) {
	if s.Cluster.Servers > 0 {
		part.Book.Servers = s.Cluster.Servers
	}
}

// joinShares joins what the workers ended with. They must agree on all that was all-reduced.
func joinShares(shares []*share) (*train.Result, error) {
	first := shares[0]
	for r, s := range shares {
		if !s.agrees(first) {
			return nil, fmt.Errorf("rank %d ended with %d epochs (%s) and best epoch %d, rank 0 with %d (%s) and %d: "+
				"they have diverged, which is a bug", r, len(s.History.Loss), s.Reason, s.History.BestEpoch,
				len(first.History.Loss), first.Reason, first.History.BestEpoch)
		}
	}
	out := &train.Result{History: first.History.floats(), Metric: first.Metric, Reason: first.Reason,
		ValMetric: float64(first.Val), TestMetric: float64(first.Test), Parameters: first.Parameters, Best: first.best}
	for _, s := range shares {
		out.PeakBytes = max(out.PeakBytes, s.PeakBytes)
	}
	return out, nil
}

func (s *share) agrees(o *share) bool {
	same := func(a, b report.Number) bool { return math.Float64bits(float64(a)) == math.Float64bits(float64(b)) }
	return s.Reason == o.Reason && s.History.BestEpoch == o.History.BestEpoch &&
		slices.EqualFunc(s.History.Loss, o.History.Loss, same)
}
