package train

import (
	"context"
	"fmt"

	"starling/event"
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
	// Whoever is asked to stop still finishes the epoch, so waits do not end with ctx.
	s := &site{ctx: context.WithoutCancel(ctx), dev: dev, part: used(part, opt), end: end, peers: peers, opt: opt, events: events}
	r, err := s.train(ctx)
	if err != nil {
		end.Fail(err) // so that nobody waits for us
		return nil, err
	}
	return r, nil
}

// used is a part without features of edges if the model looks at none, so that nobody
// carries them about.
func used(part *partition.Part, opt Options) *partition.Part {
	if opt.Model.EdgeDim > 0 || part.In.EdgeDim == 0 {
		return part
	}
	less, in := *part, *part.In
	in.EdgeDim, in.EdgeFeatures = 0, nil
	less.In = &in
	return &less
}

func (s *site) train(ctx context.Context) (*Result, error) {
	f, on, plan, err := s.loop()
	if err != nil {
		return nil, err
	}
	book := s.part.Book
	s.events.On(event.Started{Dataset: book.Dataset, Model: s.opt.Model.Model, Strategy: s.opt.Strategy.Name, Workers: s.end.Size(),
		Vertices: book.Nodes, Edges: book.Edges, Parameters: f.model.Size(),
		FirstEpoch: f.state.Epoch, Epochs: s.opt.Epochs, Metric: f.task.Name()})
	r, err := f.run(ctx)
	if err != nil {
		s.end.Fail(err) // so that nobody waits for us, nor we for what is on its way
	}
	if last := on.Finish(); err == nil {
		err = last
	}
	if err != nil {
		return nil, err
	}
	r.Plan = plan
	return r, nil
}

// loop is the worker's, with its strategy and what that will send.
func (s *site) loop() (*loop, planned, *Plan, error) {
	if err := s.check(); err != nil {
		return nil, nil, nil, err
	}
	measure, told, err := s.inductive()
	if err != nil {
		return nil, nil, nil, err
	}
	on, err := newStrategy(s)
	if err != nil {
		return nil, nil, nil, err
	}
	mine := s.share(on)
	if measure != nil {
		mine.measureOn = measure
	}
	f, err := newLoop(s.dev, mine, s.peers, s.opt, s.events)
	if err != nil {
		return nil, nil, nil, err
	}
	plan := on.Plan(f.model, f.task)
	if measure != nil {
		plan = inductivePlan(plan, measure, told, f.model, f.task)
	}
	return f, on, plan, nil
}

// check refuses what cannot be trained.
func (s *site) check() error {
	switch part := s.part; {
	case part.Book.Parts != s.end.Size():
		return fmt.Errorf("the partition has %d parts and there are %d workers; start one worker a part", part.Book.Parts, s.end.Size())
	case part.Features == nil || part.Labels == nil:
		return fmt.Errorf("part %s: training needs features and labels", part.Dir)
	case s.opt.Model.EdgeDim > 0 && part.In.EdgeDim != s.opt.Model.EdgeDim:
		return fmt.Errorf("part %s has %d numbers an edge and the model looks at %d (--edge-features); partition the dataset again", part.Dir, part.In.EdgeDim, s.opt.Model.EdgeDim)
	case part.Book.Train == 0:
		return fmt.Errorf("partition of %s: no part has a training vertex", part.Book.Dataset)
	}
	return nil
}

// share puts a part on the device.
func (s *site) share(on Strategy) share {
	ids, features := s.part.IDs[:s.part.Core()], s.part.Features
	c, copies := on.(copying)
	if copies {
		ids, features = c.Copies()
	}
	return share{x: input(s.dev, features, s.opt), task: taskOf(s.dev, s.part.Labels), splits: splits(s.dev, &s.part.Splits),
		ids: s.dev.Indices(ids), own: s.part.Core(), copies: copies, vertices: s.part.Book.Nodes, training: s.part.Book.Train, trainOn: on, measureOn: on}
}
