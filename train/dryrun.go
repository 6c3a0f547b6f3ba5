package train

import (
	"cmp"
	"context"
	"sync"

	"starling/coflow"
	"starling/collective"
	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/partition"
	"starling/sample"
	"starling/tensor"
	"starling/wire"
)

// A memory dry run computes nothing and sends no row, but takes and gives back all memory
// as a real run does: loop, strategy and layers are the real ones, on a device that only
// counts. So what a run will need is known before it starts, and cannot come apart from
// what it does.

// dryEpochs: stale rows of the first epoch are held in the second, and what measuring
// keeps is held beside training from the second on.
const dryEpochs = 2

// DryOptions are the options of a memory dry run.
func DryOptions(opt Options) Options {
	opt.Epochs, opt.EvalEvery, opt.Patience, opt.Resume, opt.Save = dryEpochs, 1, 0, nil, nil
	return opt
}

// Needs is what a memory dry run finds out, beside what its device counts.
type Needs struct {
	Parameters int
	// Kept is how many bytes a checkpoint has of this worker beside the weights.
	Kept int64
	// Early is the bytes of the largest exchange that may arrive before they are asked
	// for, when other workers are ahead of this one.
	Early int64
	// Unfilled is the bytes of buffers of batches that the dry run had no batches for.
	Unfilled int64
	// Ranking is the bytes of ends that pairs are ranked among, and of their scores.
	Ranking int64
	// Plan is what the worker will send; nil: it is the only one.
	Plan *wire.Plan
	// Steps is how many an epoch of the run has, and DrySteps how many the dry run took.
	Steps, DrySteps int
}

// Phased is a device that is told when an epoch's training begins and ends, so that it can count
// what belongs to training.
type Phased interface{ Training(begins bool) }

// DryRunFull is the memory dry run of Full. The last epoch is told when everything is there.
func DryRunFull(ctx context.Context, dev tensor.Device, data *graph.Dataset, opt Options,
	events event.Listener) (*Needs, error) {
	r, err := Full(ctx, dev, data, DryOptions(opt), events)
	if err != nil {
		return nil, err
	}
	return &Needs{Parameters: r.Parameters}, nil
}

// DryRunLink is the memory dry run of Link. Pairs that are held out have one end each to be
// ranked among, which is quick to draw, and not ends as in the run.
func DryRunLink(ctx context.Context, dev tensor.Device, data *graph.Dataset, opt Options, link LinkOptions, ends int,
	events event.Listener) (*Needs, error) {
	link.Unranked = true
	r, err := Link(ctx, dev, data, DryOptions(opt), link, events)
	if err != nil {
		return nil, err
	}
	return &Needs{Parameters: r.Parameters, Ranking: link.RankingBytes(ends)}, nil
}

// RankingBytes is what ranking held-out pairs among some ends takes beyond what they
// hold already; 0 ends: among those that they hold.
func (o *LinkOptions) RankingBytes(ends int) (bytes int64) {
	for _, on := range []*sample.Ranked{o.Val, o.Test} {
		if on == nil {
			continue
		}
		k := cmp.Or(ends, on.K)
		bytes += 4*int64(on.Len())*int64(k-on.K) + 16*int64(on.Shared.Len())
		if on == o.ranked() { // and their scores
			bytes += 8 * int64(on.Len()) * int64(k)
		}
	}
	return bytes
}

// DryRun is the memory dry run of Worker. Workers look at each other's parts over end and
// peers where their strategy does so before training; for all other strategies end need
// only know who is where, and peers is nil. What follows from the clock is not known: see
// wire.ErrUnplanned.
func DryRun(ctx context.Context, dev tensor.Device, part *partition.Part, end wire.Endpoint, peers Peers, opt Options,
	events event.Listener) (*Needs, error) {
	epochs := opt.Epochs
	opt = DryOptions(opt)
	if w, ok := opt.Strategy.Options.(Warming); ok {
		opt.Epochs += min(w.WarmUp(), epochs, 100)
	}
	none := &unsent{Endpoint: end}
	none.mu.asked = map[asking]int64{}
	s := &Site{Ctx: ctx, Dev: dev, Part: used(part, opt), End: none, Opt: opt, Events: events, Alone: peers == nil,
		MemoryOnly: true,
		Peers:      &unsummed{real: peers, end: end, dev: dev, servers: part.Book.Servers}}
	f, on, plan, err := s.loop()
	if err != nil {
		return nil, err
	}
	tellPhases(f, dev)
	measure := f.Measure
	f.Measure = func(e *event.Epoch) error {
		none.measure(true)
		defer none.measure(false)
		return measure(e)
	}
	if _, err := f.Run(ctx); err != nil {
		return nil, err
	}
	r := &Needs{Parameters: f.Model.Size(), Plan: plan, Steps: 1, DrySteps: 1}
	if b, ok := as[Batching](on); ok {
		r.Steps, r.DrySteps = allSteps(on, b), b.Steps()
	}
	if b, ok := as[Buffering](on); ok {
		r.Unfilled = b.Unfilled()
	}
	if k, ok := as[Keeping](on); ok {
		r.Kept = k.Kept()
	}
	for _, bytes := range none.mu.asked {
		r.Early = max(r.Early, bytes)
	}
	return r, on.Finish()
}

// tellPhases tells a device that is Phased when the loop trains.
func tellPhases(f *Loop, dev tensor.Device) {
	p, ok := dev.(Phased)
	if !ok {
		return
	}
	trainEpoch := f.TrainEpoch
	f.TrainEpoch = func(epoch int, lr float64) (float64, error) {
		p.Training(true)
		defer p.Training(false)
		return trainEpoch(epoch, lr)
	}
}

// unsent is an endpoint whose messages have always arrived, but for what is looked up
// before training.
type unsent struct {
	wire.Endpoint
	mu struct {
		sync.Mutex                  // batches are drawn on several cores
		asked      map[asking]int64 // bytes
		measuring  bool
	}
}

func (e *unsent) measure(begins bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.measuring = begins
}

func (e *unsent) Send(to int, key wire.Key, kind wire.Kind, payload []byte) *wire.Pending {
	if key.Coflow == coflow.Preparing {
		return e.Endpoint.Send(to, key, kind, payload)
	}
	return wire.Settled()
}

func (e *unsent) Recv(from int, key wire.Key, kind wire.Kind, into []byte) *wire.Pending {
	if key.Coflow == coflow.Preparing {
		return e.Endpoint.Recv(from, key, kind, into)
	}
	if kind == wire.Control { // whatever peers are asked, they say yes
		for i := range into {
			into[i] = 1
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.mu.asked[asking{key.Coflow, e.mu.measuring}] += int64(len(into))
	return wire.Settled()
}

func (e *unsent) RecvAtMost(from int, key wire.Key, kind wire.Kind, into []byte) *wire.Pending {
	return e.Recv(from, key, kind, into)
}

// asking names an exchange of rows: in training, or to measure.
type asking struct {
	coflow.ID
	measuring bool
}

// unsummed are peers whose gradients are never reduced, but have their buckets.
type unsummed struct {
	real    Peers // nil: there are none
	end     wire.Endpoint
	dev     tensor.Device
	servers int
	buckets *collective.Buckets
}

func (u *unsummed) AllReduce(epoch, batch int, v []float64) error {
	if u.real == nil {
		return nil
	}
	return u.real.AllReduce(epoch, batch, v)
}

// Gradients have the memory in which they travel.
func (u *unsummed) Gradients(_, _ int, params []*nn.Param) (Gradients, error) {
	if u.buckets == nil {
		u.buckets, _ = gradientBuckets(collective.New(u.end), u.dev, u.servers, params)
	}
	return Alone{}, nil
}
