package train

import (
	"context"
	"fmt"

	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/partition"
	"starling/tensor"
	"starling/wire"
)

// Worker trains as one of several workers, on its own part. All workers call it
// with the same options; all return the same result, and the first failure
// anywhere ends all of them.
func Worker(ctx context.Context, dev tensor.Device, part *partition.Part, end wire.Endpoint, peers Peers, opt Options,
	events event.Listener) (*Result, error) {
	if events == nil {
		events = event.All()
	}
	// A worker that is asked to stop still finishes the epoch, so waits do not end with ctx.
	s := &Site{Ctx: context.WithoutCancel(ctx), Dev: dev, Part: used(part, opt), End: end, Peers: peers, Opt: opt,
		Events: events}
	r, err := s.train(ctx)
	if err != nil {
		end.Fail(err) // so that no peer waits for this worker
		return nil, err
	}
	return r, nil
}

// used is a part without features of edges if the model looks at none, so that they
// are neither sent nor copied.
func used(part *partition.Part, opt Options) *partition.Part {
	if opt.Model.EdgeDim > 0 || part.In.EdgeDim == 0 {
		return part
	}
	less, in := *part, *part.In
	in.EdgeDim, in.EdgeFeatures = 0, nil
	less.In = &in
	return &less
}

func (s *Site) train(ctx context.Context) (*Result, error) {
	f, on, plan, err := s.loop()
	if err != nil {
		return nil, err
	}
	if s.Opt.Planned != nil {
		s.Opt.Planned(plan)
	}
	book := s.Part.Book
	s.Events.On(event.Started{Dataset: book.Dataset, Model: s.Opt.Model.Model, Strategy: s.Opt.Strategy.Name(),
		Workers:  s.End.Size(),
		Vertices: book.Nodes, Edges: book.Edges, Parameters: f.Model.Size(), Learnt: f.LearntNumbers(),
		FirstEpoch: f.State.Epoch, Epochs: s.Opt.Epochs, Metric: f.metric.Name})
	r, err := f.Run(ctx)
	if k, ok := as[Ranking](on); ok && err == nil {
		err = k.Rank(f, r)
	}
	if s.links != nil && err == nil {
		err = s.links.rank(r)
	}
	if err == nil { // last: r may then have rows that are not the model's
		s.shardLearnt(f, r)
		err = r.wholeLearnt(s.End.Size())
	}
	if err != nil {
		s.End.Fail(err) // so that no peer waits for this worker, nor it for what is in flight
	}
	if last := on.Finish(); err == nil {
		err = last
	}
	if err != nil {
		return nil, err
	}
	r.Plan = plan
	if c, ok := as[Counting](on); ok {
		r.Rows = c.RowCounts()
	}
	if x, ok := as[Explaining](on); ok {
		r.Explainer = x.Explained()
	}
	if x, ok := as[Launching](on); ok {
		r.Launches = x.Launches()
	}
	return r, nil
}

// loop is the worker's, with its strategy and what it will send.
func (s *Site) loop() (*Loop, Strategy, *wire.Plan, error) {
	if err := s.check(); err != nil {
		return nil, nil, nil, err
	}
	if s.Opt.Pairs != nil && len(s.Opt.Pairs.Relations) > 0 {
		if err := s.prepareRelations(); err != nil {
			return nil, nil, nil, err
		}
	}
	on, err := newStrategy(s)
	if err != nil {
		return nil, nil, nil, err
	}
	events := s.Events
	if l, ok := as[event.Listener](on); ok {
		events = event.All(events, l)
	}
	opt := s.Opt
	opt.Clock = s.End.Clock()
	f, err := NewLoop(s.Dev, s.share(on), s.Peers, opt, events)
	if err != nil {
		return nil, nil, nil, err
	}
	f.Rank, f.Ranks = s.End.Rank(), s.End.Size()
	f.First = f.Rank == 0
	if b, ok := as[Batching](on); ok {
		f.State.Batch = min(f.State.Batch, b.Steps()) // of another number of workers it may be more
		f.TrainEpoch = b.Train(f)
	}
	if s.links != nil && !s.links.batches {
		s.links.on(f)
	}
	return f, on, s.plan(on, f.Model, f.Task), nil
}

// check refuses what cannot be trained.
func (s *Site) check() error {
	switch part := s.Part; {
	case part.Book.Parts != s.End.Size():
		return fmt.Errorf("the partition has %d parts and there are %d workers; start one worker per part",
			part.Book.Parts, s.End.Size())
	case part.Features == nil && part.Book.Schema == nil && s.Opt.Embeddings == nil:
		return fmt.Errorf("part %s: training needs features", part.Dir)
	case part.Labels == nil && s.Opt.Pairs == nil:
		return fmt.Errorf("part %s: training needs labels", part.Dir)
	case s.Opt.Model.EdgeDim > 0 && part.In.EdgeDim != s.Opt.Model.EdgeDim:
		return fmt.Errorf("part %s has %d numbers per edge and the model looks at %d (--edge-features); partition "+
			"the dataset again", part.Dir, part.In.EdgeDim, s.Opt.Model.EdgeDim)
	case part.Book.Train == 0 && s.Opt.Pairs == nil:
		return fmt.Errorf("partition of %s: no part has a training vertex", part.Book.Dataset)
	case s.Opt.Batches == nil || s.Opt.Model.Attends(): // edges are numbered, and turned around
		return graph.InFile(part.Dir, part.In.CheckLocal())
	}
	return nil
}

// share puts a part on the device.
func (s *Site) share(on Strategy) Share {
	ids, features, byType, types := s.Part.IDs[:s.Part.Core()], s.Part.Features, s.Part.TypeFeatures, s.Part.CoreTypes()
	r, replicas := as[Replicating](on)
	if replicas {
		ids, features, byType = r.Replicas()
	}
	schema := s.Part.Book.Schema
	if replicas && schema != nil {
		types = schema.Runs(ids)
	}
	var task nn.Task = pairTask{}
	if s.Opt.Pairs == nil {
		task = taskOf(s.Dev, s.Part.Labels)
	}
	var x nn.Input
	if s.Opt.Embeddings != nil { // filled before rows are measured
		x = nn.Input{Matrix: s.Dev.New(s.Dev.RowType(s.Opt.Rows), s.Part.Core(), s.Opt.Model.In)}
	} else if schema != nil {
		x = nn.Input{Typed: typedInput(s.Dev, types, byType, ids, schema, s.Opt)}
	} else {
		x = Input(s.Dev, features, s.Opt)
	}
	out := Share{X: x, Task: task,
		Splits: splits(s.Dev, &s.Part.Splits), IDs: tensor.Indices(s.Dev, ids), Own: s.Part.Core(), Replicas: replicas,
		Types: types, Schema: schema,
		Vertices: s.Part.Book.Nodes, Training: s.Part.Book.Train, TrainOn: on, MeasureOn: on}
	if s.Opt.Pairs == nil {
		out.Known = Known{s.Part.Labels, s.Part.Splits, s.End.Rank(), s.End.Size()}
	}
	if m, ok := as[Measuring](on); ok {
		out.MeasureOn = m.Measuring()
	}
	return out
}
