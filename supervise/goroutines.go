package supervise

import (
	"context"

	"starling/coflow"
	"starling/event"
	"starling/resume"
	"starling/setup"
	"starling/spec"
	"starling/watch"
	"starling/wire"
	"starling/worker"
)

// runGoroutines trains with the workers in this process. As with runProcesses, there are shares
// beside the error if only the last state could not be saved.
func (c *Run) runGoroutines(ctx context.Context, events event.Listener) ([]*worker.Share, error) {
	n := c.Spec.Cluster.Workers
	opt := wire.DefaultOptions()
	opt.Timeout, opt.Order = setup.Timeout(&c.Spec), coflow.OrderNamed(c.Spec.Cluster.SendOrder)
	opt.ServerOf = setup.ServersOf(&c.Spec)
	ends := wire.NewGroup(n, opt)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	k, err := newKeeper(c, events, stop)
	if err != nil {
		return nil, err
	}
	tasks, reporters := make([]worker.Task, n), make([]*watch.Reporter, n)
	for r, end := range ends {
		tasks[r], reporters[r] = *c.Task(), newReporter(&c.Spec, r, end)
		tasks[r].Watch, tasks[r].Shards = reporters[r], k.folder()
	}
	defer c.watch.Poll(reporters)()
	defer watch.ServeLocal(c.watch.Snapshot)()
	shares, err := worker.Together(ends, func(end wire.Endpoint) (*worker.Share, error) {
		return onGoroutine(ctx, &tasks[end.Rank()], end, c.Spec.Machine.CoresOf(n), k, events)
	})
	for _, end := range ends {
		end.Close()
	}
	if err != nil {
		return nil, k.close(err)
	}
	return shares, k.close(nil)
}

// newReporter is a worker's, with what the run's pages and files show.
func newReporter(s *spec.Spec, rank int, end wire.Endpoint) *watch.Reporter {
	r := watch.NewReporter(rank, end)
	if s.Output.Detailed() {
		r.Detailed()
	}
	return r
}

// onGoroutine does a task as the rank of an endpoint.
func onGoroutine(ctx context.Context, t *worker.Task, end wire.Endpoint, threads int, k *keeper,
	events event.Listener) (*worker.Share, error) {
	part, err := t.OpenPart(end.Rank(), "")
	if err != nil {
		return nil, err
	}
	defer part.Close()
	from, err := k.restore(end.Rank())
	if err != nil {
		return nil, err
	}
	keep := resume.SendState(end.Rank(), t.Shards, k.keep(end.Rank()))
	return setup.OrShrunk(t.Work(ctx, part, end, threads, from, keep, events))
}
