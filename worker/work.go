package worker

import (
	"context"
	"runtime/debug"

	"starling/collective"
	"starling/event"
	"starling/graph"
	"starling/partition"
	"starling/resume"
	"starling/setup"
	"starling/tensor"
	"starling/train"
	"starling/watch"
	"starling/wire"
)

// Work trains as one rank; keep takes its state. When ctx ends on any rank, all stop after the
// same epoch.
func (t *Task) Work(ctx context.Context, part *partition.Part, end wire.Endpoint, threads int, from *train.State,
	keep func(*train.State) error, events event.Listener) (*Share, error) {
	if t.Infer != nil {
		return t.infer(ctx, part, end, threads, from)
	}
	s := t.Spec
	s.Machine.Threads = threads
	opt, err := setup.Options(&s, &t.Data)
	if err != nil {
		return nil, err
	}
	here := max(1, s.Cluster.Workers/max(s.Cluster.Servers, 1))
	if opt.Disk, err = setup.DiskOptions(&s, []*graph.Features{part.Features}, here, 0); err != nil {
		return nil, err
	}
	opt.Resume, opt.HostDevice, opt.Planned = from, setup.HostDevices(s), t.Watch.Planned
	dev, err := setup.NewDevice(&s, end.Rank())
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	m := watch.NewMeter(end.Ledger())
	events = event.All(m, t.Watch, event.Func(freeAfterPreparation), OwnEvents(end.Rank(), events))
	if midway, last := resume.SavesState(&s); midway || last {
		opt.Save, opt.MidwayOnly = t.Watch.Saving(keep), !last
		opt.SaveEvery, opt.SaveSteps = resume.SaveEvery(&s)
	}
	// Waits do not end with ctx: a worker that has to stop still finishes the epoch.
	peers := train.NewGroup(context.WithoutCancel(ctx), end, dev, part.Book.Servers)
	if err := meetGPUs(context.WithoutCancel(ctx), &s, dev, end, events); err != nil {
		return nil, err
	}
	if err := reduceByGPUs(context.WithoutCancel(ctx), &s, dev, end, peers, events); err != nil {
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
	out := NewShare(r, from, m, end)
	out.PeakRSS, out.Threads, out.CPU = tensor.PeakRSS(), threads, used()
	out.Explainer, out.Launches = r.Explainer, r.Launches
	return out, out.keepRows(r.LearntRows, &t.Spec, t.Rows)
}

// freeAfterPreparation returns what the strategy needed to prepare, before matrices are
// allocated.
func freeAfterPreparation(e event.Event) {
	if _, ok := e.(event.Started); ok {
		debug.FreeOSMemory()
	}
}

// OwnEvents is the listener of a rank: rank 0 tells what is the same on all, the others only
// what is their own.
func OwnEvents(rank int, events event.Listener) event.Listener {
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
