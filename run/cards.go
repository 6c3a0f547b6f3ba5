package run

import (
	"context"
	"errors"
	"fmt"

	"starling/collective"
	"starling/event"
	"starling/spec"
	"starling/tensor"
	"starling/train"
	"starling/wire"
)

// meetCards has workers of this host read each other's rows on their cards, and tells where that is not so. A worker
// whose rows go through the host's memory computes the same numbers.
func meetCards(ctx context.Context, s *spec.Spec, dev tensor.Device, end wire.Endpoint, events event.Listener) error {
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
		events.On(event.Note{Minor: true, Text: fmt.Sprintf("worker 0 reads the rows of %d workers on their cards", n)})
	}
	return nil
}

// reduceByCards has NCCL sum gradients where --all-reduce asks for it and all workers can, and tells why not.
func reduceByCards(ctx context.Context, s *spec.Spec, dev tensor.Device, end wire.Endpoint, g *train.Group,
	events event.Listener) error {
	if s.Cluster.AllReduce != "nccl" || end.Size() < 2 {
		return nil
	}
	r, err := collective.JoinReducer(ctx, dev, end, timeoutOf(s))
	switch {
	case collective.IsNoReducer(err):
		if end.Rank() == 0 {
			events.On(event.Note{Text: fmt.Sprintf("gradients are summed by the hosts (--all-reduce host): %v", err)})
		}
	case err != nil:
		return err
	default:
		g.ReduceBy(r, timeoutOf(s))
	}
	return nil
}
