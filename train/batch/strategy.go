package batch

import (
	"context"
	"errors"
	"math"

	"starling/nn"
	"starling/train"
	"starling/wire"
)

// Method is how a strategy trains by a pipeline. What is nil is as the pipeline does it: batches are drawn and
// pulled ahead, each worker trains on its own, and gradients are all-reduced after every step.
type Method struct {
	// Source draws the batches of a loop.
	Source func(ctx context.Context, f *train.Loop, h *Host) Source
	// Over is what layers go over.
	Over func(f *train.Loop) Aggregator
	// Epoch trains for an epoch.
	Epoch func(m *Steps) func(epoch int, lr float64) (float64, error)
	// Plan adds what is sent beyond draws and pulls: to the plan what is known, to sent what is expected.
	Plan func(p *wire.Plan, m *nn.Model, sent *Expected)
	// Kept is added to what a checkpoint keeps.
	Kept func() []nn.Tensor
	// Own are parameters of a model whose gradients are whole on one worker, so that they are not all-reduced. Settle
	// gives all workers their values, when an epoch ends and before a state is saved, which sends what Settled says.
	Own     func(m *nn.Model) []*nn.Param
	Settle  func(f *train.Loop, epoch, number int) error
	Settled func(m *nn.Model) wire.Bytes
	// Rows is the number of vertices whose rows batches needed, where no rows are pulled.
	Rows func() int64
	// Launches are of batches whose sampling was scheduled.
	Launches func() train.Launches
}

// Strategy is a pipeline with a method, as a strategy of the training loop.
type Strategy struct {
	train.Strategy // measures
	p              *Pipeline
	expected       *Plan
	method         Method

	// While it trains.
	steps  *Steps
	cancel context.CancelFunc
	lacks  error // why Caches lacks something
}

// Strategy trains by the pipeline, which is expected to send as planned.
func (p *Pipeline) Strategy(expected *Plan, m Method) *Strategy {
	return &Strategy{Strategy: p.Measure, p: p, expected: expected, method: m}
}

// New opens a pipeline and trains by it, with a cache and a method; nil: the pipeline's own.
func New(s *train.Site, c Setting, cache CacheOptions, method func(p *Pipeline) Method,
	with ...Decoration) (train.Strategy, error) {
	p, err := Open(s, c, with...)
	if err != nil {
		return nil, err
	}
	return p.By(cache, method)
}

// By trains by the pipeline, with a cache and a method; nil: the pipeline's own.
func (p *Pipeline) By(cache CacheOptions, method func(p *Pipeline) Method) (train.Strategy, error) {
	if err := p.Prepare(cache, p.Seeds); err != nil {
		return nil, err
	}
	expected, err := p.Expect(p.Traffic)
	if err != nil {
		return nil, err
	}
	m := Method{}
	if method != nil {
		m = method(p)
	}
	return p.Strategy(expected, m), nil
}

// Steps is the number of batches in an epoch.
func (s *Strategy) Steps() int { return s.p.steps }

// AllSteps is the number of batches in an epoch of the run: a dry run has a few.
func (s *Strategy) AllSteps() int { return s.p.all }

// learner knows which batches have a seed vertex, of some samplers without drawing their edges.
type learner interface {
	Learns(epoch, number int) (learns, known bool)
}

// Taken is the number of steps of an epoch, from a batch on: there is none for a batch that no worker has a seed vertex
// of. Where owners must be asked for the vertices of a batch, it is what the batches that were planned by say.
func (s *Strategy) Taken(epoch, from int) int {
	return s.p.Taken(epoch, from, s.expected.empty)
}

// Taken is the number of steps of an epoch, from a batch on. Where it is unknown which batches are empty, the share of
// those that are is given.
func (p *Pipeline) Taken(epoch, from int, empty float64) (steps int) {
	if p.learner == nil {
		p.learner, _ = p.Sampler().(learner)
	}
	left := p.all - from
	for number := from; number < p.all; number++ {
		learns, known := true, false
		if p.learner != nil {
			learns, known = p.learner.Learns(epoch, number)
		}
		switch {
		case !known:
			return left - int(math.Round(float64(left)*empty))
		case learns:
			steps++
		}
	}
	return steps
}

// Owned are parameters that are not all-reduced, and what is sent to make them whole.
func (s *Strategy) Owned(m *nn.Model) ([]*nn.Param, wire.Bytes) {
	if s.method.Own == nil {
		return nil, nil
	}
	return s.method.Own(m), s.method.Settled(m)
}

// Caches are what the next epoch needs of this worker. Where they lack something, Err says why.
func (s *Strategy) Caches() []nn.Tensor {
	var list []nn.Tensor
	keepers := each[Keeper](s.p.decorations)
	for _, k := range keepers {
		kept, err := k.Kept()
		list, s.lacks = append(list, kept...), errors.Join(s.lacks, err)
	}
	if len(keepers) == 0 {
		list = s.Strategy.Caches()
	}
	if s.method.Kept != nil {
		list = append(list, s.method.Kept()...)
	}
	return list
}

// Err is a failure of measuring, or of Caches.
func (s *Strategy) Err() error { return errors.Join(s.lacks, s.Strategy.Err()) }

// Unfilled is what buffers of batches take that a dry run, of a few batches, did not have.
func (s *Strategy) Unfilled() int64 {
	if s.steps == nil {
		return 0
	}
	buffers := int64(max(0, s.steps.Source.Unfilled(2*s.p.all)))
	return buffers*s.steps.held - s.p.ahead.unfilled(buffers)*s.steps.heldRows
}

// Train is the loop's training of an epoch.
func (s *Strategy) Train(f *train.Loop) func(epoch int, lr float64) (float64, error) {
	p, part := s.p, s.p.Site.Part
	ctx, cancel := context.WithCancel(p.Site.Ctx)
	s.cancel = cancel
	labels := part.Labels
	if p.task != nil {
		labels = nil
	}
	host, over := NewHost(f, part.In, part.Features, labels, p.Loops), s.over(f)
	ahead := s.laysAhead(f, host, over)
	observers := each[Observer](p.decorations)
	for _, o := range observers {
		o.Begin(f)
	}
	s.steps = &Steps{Loop: f, Count: p.steps, joined: true, dry: p.Site.MemoryOnly, input: p.input,
		Over: over, Source: s.source(ctx, f, host), ahead: ahead, stepped: func(epoch, number int) {
			for _, o := range observers {
				o.Stepped(epoch, number)
			}
		}}
	if s.method.Own != nil {
		s.steps.own = s.method.Own(f.Model)
		s.steps.settle = func(epoch, number int) error { return s.method.Settle(f, epoch, number) }
	}
	s.steps.disk = p.disk
	epoch := s.epoch()
	measurers := each[Measurer](p.decorations)
	for i := range measurers {
		measurers[len(measurers)-1-i].Measure(f) // the first is the outermost
	}
	return epoch
}

// laysAhead is what brings the next batch to a device that can, while it computes this one; nil where a batch is not
// known before the one before it is done, or is not all that a step reads.
func (s *Strategy) laysAhead(f *train.Loop, h *Host, over Aggregator) *ahead {
	p := s.p
	on, plain := over.(*Blocks)
	if !plain || f.X.Typed != nil {
		return nil
	}
	h.kind = kindOf(f)
	if s.method.Source != nil || p.task != nil || p.input != nil || p.Guided() || p.Site.MemoryOnly {
		return nil
	}
	return newAhead(f.Dev, on, h)
}

func (s *Strategy) over(f *train.Loop) Aggregator {
	if s.method.Over != nil {
		return s.method.Over(f)
	}
	return NewBlocks(f.Dev, s.p.Loops, f.X.Matrix)
}

func (s *Strategy) source(ctx context.Context, f *train.Loop, h *Host) Source {
	if s.method.Source != nil {
		return s.method.Source(ctx, f, h)
	}
	sampler := s.p.shareSamplers(s.p.AtOnce(), f.State)
	return s.p.Prefetch(f, f.State, h, s.p.AtOnce(), func() Drawer { return s.p.Drawer(ctx, sampler(), s.p.Pull) })
}

func (s *Strategy) epoch() func(epoch int, lr float64) (float64, error) {
	switch {
	case s.method.Epoch != nil:
		return s.method.Epoch(s.steps)
	case s.p.task != nil:
		return s.p.task.Epoch(s.steps)
	}
	return s.steps.Epoch
}

// Plan is what measuring sends, what workers told each other, and what batches are expected to send.
func (s *Strategy) Plan(m *nn.Model) *wire.Plan {
	measure, p := s.Strategy.Plan(m), wire.NewPlan()
	p.AtMost = s.p.Store.Learns()
	p.Prepare.AddAll(measure.Prepare, 1)
	p.Prepare.AddAll(s.p.Setup.Sent, 1)
	p.Measure, p.OnceMeasured = measure.Measure, measure.OnceMeasured
	p.OnceMeasured.AddAll(measure.Once, 1)
	p.Drawn = wire.Bytes{}
	p.Drawn.AddAll(s.expected.Drawn.bytes, 1)
	for _, d := range each[Planner](s.p.decorations) {
		d.Plan(p, m)
	}
	sent := Expected{total: s.expected.Drawn.total}
	if s.method.Plan != nil {
		s.method.Plan(p, m, &sent)
	}
	p.Drawn.AddAll(sent.bytes, 1)
	p.Deviation = sent.deviation()
	return p
}

// RowCounts are the rows that this worker's batches needed.
func (s *Strategy) RowCounts() train.RowCounts {
	if s.method.Rows != nil {
		return train.RowCounts{Needed: s.method.Rows(), Redundancy: s.expected.Redundancy}
	}
	return rowCounts(s.p.Store, s.expected.Redundancy)
}

// Launches counts what a scheduler of sampling launched, if there is one.
func (s *Strategy) Launches() (l train.Launches) {
	if s.method.Launches != nil {
		l = s.method.Launches()
	}
	return l
}

// Explained is what the worker's explainer took, if it has one.
func (s *Strategy) Explained() (u train.ExplainerUse) {
	if x := only[train.Explaining](s.p.decorations); x != nil {
		u = x.Explained()
	}
	return u
}

// Rank measures more of the best weights, and adds what was learnt beside them.
func (s *Strategy) Rank(f *train.Loop, r *train.Result) error {
	var rank func() error
	rankers := each[Ranker](s.p.decorations)
	for i := range rankers {
		k, inner := rankers[len(rankers)-1-i], rank
		rank = func() error { return k.Rank(f, r, inner) }
	}
	if rank == nil {
		return nil
	}
	return rank()
}

// Finish ends drawing, and then what other workers draw from here.
func (s *Strategy) Finish() error {
	if s.steps != nil {
		s.cancel()
		s.steps.Stop()
		s.p.reportRows(s.expected.Redundancy)
	}
	for _, o := range each[Observer](s.p.decorations) {
		o.End()
	}
	err := s.Strategy.Finish()
	if last := s.p.Store.Close(); err == nil {
		err = last
	}
	return err
}
