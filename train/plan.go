package train

import (
	"context"
	"slices"

	"starling/collective"
	"starling/event"
	"starling/nn"
	"starling/partition"
	"starling/tensor"
	"starling/wire"
)

// DryRunBytes is what the worker of part will send, found out without the other workers.
// end need only know who is where. What depends on the other workers is wire.ErrUnplanned.
func DryRunBytes(part *partition.Part, end wire.Endpoint, dev tensor.Device, model *nn.Model, task nn.Task,
	opt Options) (*wire.Plan, error) {
	s := &Site{Ctx: context.Background(), Dev: dev, Part: used(part, opt), End: end, Opt: opt, Events: event.All(),
		Alone: true}
	if opt.Pairs != nil && len(opt.Pairs.Relations) > 0 {
		return nil, Unplanned("pairs of a relation")
	}
	on, err := newStrategy(s)
	if err != nil {
		return nil, err
	}
	return s.plan(on, model, task), nil
}

// plan is what a worker will send: the strategy's, and the loop's sums and gradients.
func (s *Site) plan(on Strategy, model *nn.Model, task nn.Task) *wire.Plan {
	p := on.Plan(model)
	if s.links != nil {
		s.links.plan(p, model)
	}
	s.planSums(p.Begin, 1) // whether to stop
	s.planObjective(p, task)
	s.planEvaluation(p, task)
	always, step, saved := wire.Bytes{}, wire.Bytes{}, wire.Bytes{}
	reducing, settled := model.Params, wire.Bytes(nil)
	if o, ok := as[Owning](on); ok {
		var own []*nn.Param
		own, settled = o.Owned(model)
		reducing = slices.DeleteFunc(slices.Clone(reducing), func(p *nn.Param) bool { return slices.Contains(own, p) })
	}
	buckets, _ := gradientBuckets(collective.New(s.End), s.Dev, s.Part.Book.Servers, reducing)
	reduced := buckets.Plan()
	if g, ok := s.Peers.(*Group); ok && g.reducer != nil {
		reduced = nil // what a library sends, it does not tell
	}
	for q, t := range reduced {
		step.Add(wire.Class{Kind: wire.Parameter, Layer: -1, Link: s.End.Link(q)}, t.Bytes)
	}
	steps := 1
	b, batches := as[Batching](on)
	if batches {
		steps = allSteps(on, b)
		s.planSums(always, 1)             // seed vertices
		s.planSums(saved, 2*s.End.Size()) // of an epoch so far
	}
	taken := func(_, from int) int { return steps - from }
	if sk, ok := as[Skipping](on); ok {
		taken = sk.Taken
	}
	s.planSums(always, 1) // the loss
	for _, width := range model.NormSums() {
		s.planSums(always, 2*width)
		s.planSums(always, 2*width)
	}
	joined, rows := *p, p.Epoch
	joined.Epoch = func(epoch int) wire.Bytes {
		out := wire.Bytes{}
		if rows != nil {
			out = rows(epoch)
		}
		done := s.Opt.Resume.StepsOf(epoch)
		out.AddAll(always, 1)
		out.AddAll(settled, 1)
		out.AddAll(step, taken(epoch, done))
		if batches && s.Opt.SaveSteps > 0 {
			before := taken(epoch, 0) - taken(epoch, done)
			for e := range epoch {
				before += taken(e, 0)
			}
			saves := savesIn(&s.Opt, before, taken(epoch, done))
			out.AddAll(saved, saves)
			out.AddAll(settled, saves)
		}
		return out
	}
	if from := s.Opt.Resume; from != nil {
		joined.Done = float64(min(from.Batch, steps)) / float64(steps)
	}
	return &joined
}

// StepsOf is how many steps of an epoch are done; nil is the state before the first.
func (s *State) StepsOf(epoch int) int {
	if s == nil || s.Epoch != epoch {
		return 0
	}
	return s.Batch
}

// savesIn is how often the state is saved during some steps after others.
func savesIn(o *Options, before, steps int) (n int) {
	for i := before + 1; i <= before+steps; i++ {
		if saves(o, i) {
			n++
		}
	}
	return n
}

// planSums plans an all-reduce of some numbers.
func (s *Site) planSums(into wire.Bytes, count int) {
	for q, t := range collective.AllReduceSent(collective.Ordered, s.End.Rank(), s.End.Size(), count, 8) {
		into.Add(wire.Class{Kind: wire.Control, Layer: -1, Link: s.End.Link(q)}, t.Bytes)
	}
}
