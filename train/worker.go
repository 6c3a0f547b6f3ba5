package train

import (
	"context"
	"fmt"

	"starling/event"
	"starling/nn"
	"starling/partition"
	"starling/tensor"
	"starling/wire"
)

// Worker trains as one of several workers, on its own part. All workers call it
// with the same options; all return the same result, and the first failure
// anywhere ends all of them.
func Worker(ctx context.Context, dev tensor.Device, part *partition.Part, end wire.Endpoint, peers Peers, opt Options, events event.Listener) (*Result, error) {
	if events == nil {
		events = event.All()
	}
	r, err := worker(ctx, dev, part, end, peers, opt, events)
	if err != nil {
		end.Fail(err) // so that nobody waits for us
		return nil, err
	}
	return r, nil
}

func worker(ctx context.Context, dev tensor.Device, part *partition.Part, end wire.Endpoint, peers Peers, opt Options, events event.Listener) (*Result, error) {
	if part.Book.Parts != end.Size() {
		return nil, fmt.Errorf("the partition has %d parts and there are %d workers; start one worker a part", part.Book.Parts, end.Size())
	}
	// Whoever is asked to stop still finishes the epoch, so waits do not end with ctx.
	s, err := onePart(context.WithoutCancel(ctx), dev, part, end, peers, opt)
	if err != nil {
		return nil, err
	}
	f, err := newLoop(dev, s, peers, opt, events)
	if err != nil {
		return nil, err
	}
	events.On(event.Started{Dataset: part.Book.Dataset, Model: opt.Model.Model, Strategy: "halo", Workers: end.Size(),
		Vertices: s.vertices, Edges: part.Book.Edges, Parameters: f.model.Size(),
		FirstEpoch: f.state.Epoch, Epochs: opt.Epochs, Metric: f.task.Name()})
	return f.run(ctx)
}

// onePart puts a part on the device.
func onePart(ctx context.Context, dev tensor.Device, part *partition.Part, end wire.Endpoint, peers Peers, opt Options) (s share, err error) {
	switch {
	case part.Features == nil || part.Labels == nil:
		return s, fmt.Errorf("part %s: training needs features and labels", part.Dir)
	case opt.Inductive:
		return s, fmt.Errorf("inductive training on several workers is not available; leave out --inductive, or use one worker")
	}
	s.x = input(dev, part.Features, opt)
	s.task = nn.Classify{Labels: dev.Indices(labels(part.Labels))}
	s.splits = splits(dev, &part.Splits)
	s.ids = dev.Indices(part.IDs[:part.Meta.Core])
	s.vertices, s.training = part.Book.Nodes, part.Book.Train
	if s.training == 0 {
		return s, fmt.Errorf("partition of %s: no part has a training vertex", part.Book.Dataset)
	}
	s.trainOn = NewHalo(ctx, dev, part, end, peers, opt.CacheFirst)
	s.measureOn = s.trainOn
	return s, nil
}
