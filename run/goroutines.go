package run

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"starling/coflow"
	"starling/event"
	"starling/run/watch"
	"starling/wire"
)

// runGoroutines trains with the workers in this process. As with runProcesses, there are shares
// beside the error if only the last state could not be saved.
func (c *clusterRun) runGoroutines(ctx context.Context, events event.Listener) ([]*share, error) {
	n := c.spec.Cluster.Workers
	opt := wire.DefaultOptions()
	opt.Timeout, opt.ServerOf, opt.Order = timeoutOf(&c.spec), c.servers(), coflow.OrderNamed(c.spec.Cluster.SendOrder)
	ends := wire.NewGroup(n, opt)
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	k, err := newKeeper(c, events, stop)
	if err != nil {
		return nil, err
	}
	tasks, reporters := make([]task, n), make([]*watch.Reporter, n)
	for r, end := range ends {
		tasks[r], reporters[r] = *c.task(), watch.NewReporter(r, end)
		tasks[r].watch = reporters[r]
	}
	defer c.watch.Poll(reporters)()
	defer watch.ServeLocal(c.watch.Snapshot)()
	shares, errs := make([]*share, n), make([]error, n)
	var wg sync.WaitGroup
	for r, end := range ends {
		wg.Go(func() {
			shares[r], errs[r] = tasks[r].onGoroutine(ctx, end, c.spec.Machine.CoresOf(n), k, events)
			if errs[r] != nil {
				end.Fail(errs[r])
			}
		})
	}
	wg.Wait()
	for _, end := range ends {
		end.Close()
	}
	if err := firstError(errs); err != nil {
		return nil, k.close(err)
	}
	return shares, k.close(nil)
}

// onGoroutine trains as the rank of an endpoint.
func (t *task) onGoroutine(ctx context.Context, end wire.Endpoint, threads int, k *keeper, events event.Listener) (
	*share, error) {
	part, err := t.openPart(end.Rank(), "")
	if err != nil {
		return nil, err
	}
	defer part.Close()
	from, err := k.restore(end.Rank())
	if err != nil {
		return nil, err
	}
	return orShrunk(t.work(ctx, part, end, threads, from, sendState(end.Rank(), k.keep(end.Rank())), events))(events)
}

// firstError is the error that caused those of the other ranks.
func firstError(errs []error) error {
	var any error
	for r, err := range errs {
		switch f, told := errors.AsType[*wire.Failure](err); {
		case err == nil:
		case !told || f.Rank == r:
			return fmt.Errorf("rank %d: %w", r, err)
		case any == nil:
			any = fmt.Errorf("rank %d: %w", r, err)
		}
	}
	return any
}
