package worker

import (
	"context"
	"errors"
	"fmt"

	"starling/collective"
	"starling/event"
	"starling/setup"
	"starling/spec"
	"starling/tensor"
	"starling/train"
	"starling/wire"
)

// meetGPUs has workers of this host read each other's rows on their GPUs, and notes which cannot. A worker
// whose rows go through the host's memory computes the same numbers.
func meetGPUs(ctx context.Context, s *spec.Spec, dev tensor.Device, end wire.Endpoint, events event.Listener) error {
	if !s.Machine.OnGPU() || end.Size() < 2 {
		return nil
	}
	n, near, err := collective.Meet(ctx, dev, end)
	not, isNot := errors.AsType[*collective.NotMet](err)
	switch {
	case isNot && (end.Rank() < not.Peer): // one of the two tells
		events.On(event.Note{Text: fmt.Sprintf("rows of %d of %d workers of this host go through its memory: found %v; "+
			"the numbers are the same", near-n, near, not)})
	case isNot:
	case err != nil:
		return err
	case n > 0 && end.Rank() == 0:
		events.On(event.Note{Minor: true, Text: fmt.Sprintf("worker 0 reads the rows of %s on their GPUs",
			event.Counted(n, "worker"))})
	}
	return nil
}

// reduceByGPUs has NCCL sum gradients where --all-reduce asks for it and all workers can, and notes why not.
func reduceByGPUs(ctx context.Context, s *spec.Spec, dev tensor.Device, end wire.Endpoint, g *train.Group,
	events event.Listener) error {
	if s.Cluster.AllReduce != "nccl" || end.Size() < 2 {
		return nil
	}
	r, err := collective.JoinReducer(ctx, dev, end, setup.Timeout(s))
	switch {
	case collective.IsNoReducer(err):
		if end.Rank() == 0 {
			events.On(event.Note{Text: fmt.Sprintf("gradients are summed by the hosts (--all-reduce host): %v", err)})
		}
	case err != nil:
		return err
	default:
		g.ReduceBy(r, setup.Timeout(s))
	}
	return nil
}
