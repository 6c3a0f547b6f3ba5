package train

import (
	"context"
	"fmt"

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

// A rehearsal is a run in which nothing is computed and no row travels, but all memory is
// taken and given back as in a real one: the loop, the strategy and the layers are the
// real ones, on a device that only counts. So what a run will need is known before it
// starts, and cannot come apart from what it does.

// rehearsedEpochs: what is late or old in the first epoch is there in the second, and
// what measuring keeps is beside training from the second on.
const rehearsedEpochs = 2

// rehearsed are the options of a rehearsal.
func rehearsed(opt Options) Options {
	opt.Epochs, opt.EvalEvery, opt.Patience, opt.Resume, opt.Save = rehearsedEpochs, 1, 0, nil, nil
	return opt
}

// Rehearsed is what a rehearsal finds out, beside what its device counts.
type Rehearsed struct {
	Parameters int
	// Kept is how many bytes a checkpoint has of this worker beside the weights.
	Kept int64
	// Early is the bytes of the largest exchange that may come before they are asked for,
	// when other workers are ahead of this one.
	Early int64
	// Ranking is the bytes of ends that pairs are ranked among, and of their scores.
	Ranking int64
}

// RehearseFull rehearses Full. The last epoch is told when everything is there.
func RehearseFull(ctx context.Context, dev tensor.Device, data *graph.Dataset, opt Options, events event.Listener) (*Rehearsed, error) {
	r, err := Full(ctx, dev, data, rehearsed(opt), events)
	if err != nil {
		return nil, err
	}
	return &Rehearsed{Parameters: r.Parameters}, nil
}

// RehearseMini rehearses Mini on a few batches.
func RehearseMini(ctx context.Context, dev tensor.Device, data *graph.Dataset, opt Options, mini MiniOptions, events event.Listener) (*Rehearsed, error) {
	mini.rehearsed = opt.Epochs
	opt = rehearsed(opt)
	if mini.Sampler == "cluster" { // as many vertices, without cutting the graph
		mini.Sampler = "saint-node"
	}
	r, err := Mini(ctx, dev, data, opt, mini, events)
	if err != nil {
		return nil, err
	}
	return &Rehearsed{Parameters: r.Parameters}, nil
}

// RehearseLink rehearses Link, on a few batches where it has some. Pairs that are held out
// have one end each to be ranked among, which is quick to draw, and not ends as in the run.
func RehearseLink(ctx context.Context, dev tensor.Device, data *graph.Dataset, opt Options, link LinkOptions, ends int, events event.Listener) (*Rehearsed, error) {
	if link.Mini != nil {
		few := *link.Mini
		few.rehearsed, link.Mini = opt.Epochs, &few
	}
	link.unranked = true
	r, err := Link(ctx, dev, data, rehearsed(opt), link, events)
	if err != nil {
		return nil, err
	}
	n := &Rehearsed{Parameters: r.Parameters}
	for _, on := range []*sample.Ranked{link.Val, link.Test} {
		if on != nil {
			n.Ranking += 4 * int64(on.Len()) * int64(ends-on.K)
		}
		if on == link.ranked() && on != nil { // and their scores
			n.Ranking += 8 * int64(on.Len()) * int64(ends)
		}
	}
	return n, nil
}

// Rehearse rehearses Worker. Workers look at each other's parts over end and peers where
// their strategy does so before training; for all other strategies end need only know who
// is where, and peers is nil. What follows from the clock is not known: see ErrUnplanned.
func Rehearse(ctx context.Context, dev tensor.Device, part *partition.Part, end wire.Endpoint, peers Peers, opt Options, events event.Listener) (*Rehearsed, error) {
	if opt.Inductive && peers == nil {
		return nil, fmt.Errorf("inductive training: %w", ErrUnplanned)
	}
	epochs := opt.Epochs
	opt = rehearsed(opt)
	opt.Epochs += min(opt.Strategy.SkipG, epochs, 100) // until gradients come that are kept already
	asked := map[asking]int64{}
	s := &site{ctx: ctx, dev: dev, part: used(part, opt), end: unsent{end, asked}, peers: &unsummed{met: peers, end: end, dev: dev, servers: part.Book.Servers}, opt: opt, events: events,
		paper: peers == nil, rehearsed: true}
	f, on, _, err := s.loop()
	if err != nil {
		return nil, err
	}
	if _, err := f.run(ctx); err != nil {
		return nil, err
	}
	r := &Rehearsed{Parameters: f.model.Size()}
	if k, ok := on.(interface{ kept() int64 }); ok {
		r.Kept = k.kept()
	}
	for _, bytes := range asked {
		r.Early = max(r.Early, bytes)
	}
	return r, on.Finish()
}

// kept is how many bytes the next epoch needs from this one, as a checkpoint has them.
func (x *exchanging) kept() (bytes int64) {
	if m, ok := x.move.(remembering); ok {
		for _, r := range m.remember() {
			bytes += int64(r.rows.Rows) * int64(r.rows.Cols) * int64(x.dev.Type().Size())
		}
	}
	return bytes
}

// unsent is an endpoint whose messages have always arrived, but for what is looked up
// before training.
type unsent struct {
	wire.Endpoint
	asked map[asking]int64 // bytes
}

func (e unsent) Send(to int, key wire.Key, kind wire.Kind, payload []byte) *wire.Pending {
	if key.Coflow == preparing {
		return e.Endpoint.Send(to, key, kind, payload)
	}
	return wire.Settled()
}

func (e unsent) Recv(from int, key wire.Key, kind wire.Kind, into []byte) *wire.Pending {
	if key.Coflow == preparing {
		return e.Endpoint.Recv(from, key, kind, into)
	}
	if kind == wire.Control { // whatever peers are asked, they say yes
		for i := range into {
			into[i] = 1
		}
	}
	e.asked[asking{key.Coflow, key.Step < stepBins && key.Step&stepMeasure != 0}] += int64(len(into))
	return wire.Settled()
}

func (e unsent) RecvAtMost(from int, key wire.Key, kind wire.Kind, into []byte) *wire.Pending {
	return e.Recv(from, key, kind, into)
}

// asking names an exchange of rows: in training, or to measure.
type asking struct {
	coflow.ID
	measuring bool
}

// unsummed are peers whose gradients are never added up, but have their buckets.
type unsummed struct {
	met     Peers // nil: there are none
	end     wire.Endpoint
	dev     tensor.Device
	servers int
	buckets *collective.Buckets
}

func (u *unsummed) AddUp(epoch int, v []float64) error {
	if u.met == nil {
		return nil
	}
	return u.met.AddUp(epoch, v)
}

// Gradients have the memory in which they travel.
func (u *unsummed) Gradients(_ int, params []*nn.Param) (Gradients, error) {
	if u.buckets == nil {
		u.buckets, _ = gradientBuckets(collective.New(u.end), u.dev, u.servers, params)
	}
	return alone{}, nil
}
