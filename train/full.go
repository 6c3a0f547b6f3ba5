package train

import (
	"context"
	"fmt"
	"math"
	"time"

	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/rng"
	"starling/tensor"
)

// full is full-graph training on one worker: every epoch is one step over all
// vertices.
type full struct {
	opt    Options
	dev    tensor.Device
	events event.Listener

	model *nn.Model
	optim *nn.Optimiser
	task  nn.Task
	x     nn.Input

	trainOn, measureOn *nn.Local
	splits             [3]tensor.Index // train, validation, test
	vertices           int64

	state State
}

// Full trains on a whole graph in this process. It returns early, with what was
// reached and Reason "interrupted", when ctx ends.
func Full(ctx context.Context, dev tensor.Device, data *graph.Dataset, opt Options, events event.Listener) (*Result, error) {
	if events == nil {
		events = event.All()
	}
	f, err := newFull(dev, data, opt, events)
	if err != nil {
		return nil, err
	}
	events.On(event.Started{Dataset: data.Meta.Name, Model: opt.Model.Model, Strategy: "none", Workers: 1,
		Vertices: int64(data.Graph.Nodes()), Edges: data.Graph.Edges(), Parameters: f.model.Size(),
		FirstEpoch: f.state.Epoch, Epochs: opt.Epochs, Metric: f.task.Name()})
	return f.run(ctx)
}

func newFull(dev tensor.Device, data *graph.Dataset, opt Options, events event.Listener) (*full, error) {
	f := &full{opt: opt, dev: dev, events: events, vertices: int64(data.Graph.Nodes())}
	if err := f.load(data); err != nil {
		return nil, err
	}
	f.model = nn.New(dev, opt.Model, opt.Seed)
	f.optim = nn.NewOptimiser(dev, f.model.Params, opt.Optim)
	f.state.History.BestEpoch = -1
	if opt.Resume != nil {
		return f, f.resume(opt.Resume)
	}
	return f, nil
}

// load puts graph, features, labels and splits on the device.
func (f *full) load(data *graph.Dataset) error {
	if data.Features == nil || data.Labels == nil || len(data.Splits.Train) == 0 {
		return fmt.Errorf("dataset %s: training needs features, labels and a train split", data.Dir)
	}
	f.x = input(f.dev, data.Features, f.opt)
	f.task = nn.Classify{Labels: f.dev.Indices(labels(data.Labels))}
	f.splits = [3]tensor.Index{f.dev.Indices(data.Splits.Train), f.dev.Indices(data.Splits.Val), f.dev.Indices(data.Splits.Test)}
	f.measureOn = nn.NewLocal(nn.NewTopology(f.dev, data.Graph), f.opt.CacheFirst)
	f.trainOn = f.measureOn
	if f.opt.Inductive {
		seen := make([]bool, data.Graph.Nodes())
		for _, v := range data.Splits.Train {
			seen[v] = true
		}
		f.trainOn = nn.NewLocal(nn.NewTopology(f.dev, data.Graph.Subgraph(seen)), f.opt.CacheFirst)
	}
	return nil
}

func (f *full) resume(s *State) error {
	if err := f.model.Load(f.dev, s.Model); err != nil {
		return fmt.Errorf("the checkpoint does not fit the model: %w", err)
	}
	if err := f.optim.Load(s.Optim, s.Steps); err != nil {
		return fmt.Errorf("the checkpoint does not fit the optimiser: %w", err)
	}
	f.state = *s
	return nil
}

func (f *full) run(ctx context.Context) (*Result, error) {
	reason := "finished"
	for f.state.Epoch < f.opt.Epochs {
		if ctx.Err() != nil {
			reason = "interrupted"
			break
		}
		if f.outOfPatience() {
			reason = "early stop"
			break
		}
		if err := f.epoch(); err != nil {
			return nil, err
		}
	}
	if err := f.save(true); err != nil {
		return nil, err
	}
	return f.result(reason), nil
}

// outOfPatience reports whether validation has not improved for too long.
func (f *full) outOfPatience() bool {
	h := &f.state.History
	return f.opt.Patience > 0 && h.BestEpoch >= 0 && f.state.Epoch-1-h.BestEpoch >= f.opt.Patience
}

// epoch trains one epoch, measures if it is time to, and saves if it is time to.
func (f *full) epoch() error {
	n := f.state.Epoch
	e := event.Epoch{Epoch: n, LR: f.opt.Schedule.Rate(f.opt.Optim.LR, n)}
	start := time.Now()
	e.Loss = f.step(n, e.LR)
	e.Seconds = time.Since(start).Seconds()
	if math.IsNaN(e.Loss) || math.IsInf(e.Loss, 0) {
		return fmt.Errorf("the loss is %g in epoch %d: training has diverged; try a lower --lr (now %g), and check the features with 'starling info'", e.Loss, n, e.LR)
	}
	h := &f.state.History
	h.Loss, h.EpochSeconds = append(h.Loss, e.Loss), append(h.EpochSeconds, e.Seconds)
	f.state.Epoch++
	if f.timeToMeasure(n) {
		start = time.Now()
		f.measure(&e)
		e.Eval = time.Since(start).Seconds()
	}
	f.events.On(e)
	return f.save(false)
}

func (f *full) timeToMeasure(epoch int) bool {
	last := epoch == f.opt.Epochs-1
	return last || f.opt.EvalEvery > 0 && (epoch+1)%f.opt.EvalEvery == 0
}

// pass is the setting of a run through the model.
func (f *full) pass(on *nn.Local, training bool, epoch int) *nn.Pass {
	kind := "evaluate"
	if training {
		kind = "forward"
	}
	return &nn.Pass{Dev: f.dev, Agg: on, Train: training, Vertices: f.vertices, Rows: f.opt.Rows,
		Key: rng.New(f.opt.Seed).Fold(uint64(epoch)), Span: f.spans(kind)}
}

// spans reports parts of a pass as events.
func (f *full) spans(kind string) func(string) func() {
	return func(name string) func() {
		start := time.Now()
		return func() { f.events.On(event.Span{Name: name, Kind: kind, Start: start, Dur: time.Since(start)}) }
	}
}

// step is forward, backward and update over the whole graph. It returns the mean loss.
func (f *full) step(epoch int, lr float64) float64 {
	p := f.pass(f.trainOn, true, epoch)
	f.model.ZeroGrad(f.dev)
	end := f.spans("step")("forward")
	logits := f.model.Forward(p, f.x)
	end()
	// The loss's gradient takes the place of the logits, which nobody needs after.
	loss := f.task.Loss(f.dev, logits, logits, f.splits[0], 1/float64(f.splits[0].Len()))
	p.Span = f.spans("backward")
	end = f.spans("step")("backward")
	f.model.Backward(p, logits)
	end()
	f.dev.Free(logits)
	end = f.spans("step")("update")
	f.optim.Step(lr)
	end()
	return loss
}

// measure computes the metric on the three splits and keeps the best weights.
func (f *full) measure(e *event.Epoch) {
	end := f.spans("step")("evaluate")
	defer end()
	logits := f.model.Forward(f.pass(f.measureOn, false, e.Epoch), f.x)
	metric := [3]float64{}
	for i, rows := range f.splits {
		metric[i] = f.task.Metric(f.task.Counts(f.dev, logits, rows))
	}
	f.dev.Free(logits)
	e.Measured, e.Train, e.Val, e.Test = true, metric[0], metric[1], metric[2]
	h := &f.state.History
	best := math.Inf(-1)
	for i, at := range h.Measured {
		if at == h.BestEpoch {
			best = h.Val[i]
		}
	}
	h.Measured = append(h.Measured, e.Epoch)
	h.Train, h.Val, h.Test = append(h.Train, e.Train), append(h.Val, e.Val), append(h.Test, e.Test)
	// Without a validation split the last weights are the best there are.
	if e.Best = e.Val > best || math.IsNaN(e.Val); e.Best {
		h.BestEpoch = e.Epoch
		f.state.Best = f.model.State(f.dev)
	}
}

// save hands the state out, every SaveEvery epochs or when now is set.
func (f *full) save(now bool) error {
	if f.opt.Save == nil || !now && (f.opt.SaveEvery == 0 || f.state.Epoch%f.opt.SaveEvery != 0) {
		return nil
	}
	end := f.spans("step")("save")
	defer end()
	s := f.state
	s.Model, s.Optim, s.Steps = f.model.State(f.dev), f.optim.State(), f.optim.Steps
	return f.opt.Save(&s)
}

func (f *full) result(reason string) *Result {
	h := f.state.History
	r := &Result{History: h, Metric: f.task.Name(), Reason: reason, ValMetric: math.NaN(), TestMetric: math.NaN(),
		PeakBytes: f.dev.Peak(), Parameters: f.model.Size(), Final: f.model.State(f.dev), Best: f.state.Best}
	for i, at := range h.Measured {
		if at == h.BestEpoch {
			r.ValMetric, r.TestMetric = h.Val[i], h.Test[i]
		}
	}
	if r.Best == nil {
		r.Best = r.Final
	}
	return r
}
