package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"starling/event"
	"starling/nn"
	"starling/rng"
	"starling/tensor"
)

// loop is full-graph training as one worker sees it: every epoch is one step over
// all its vertices, and what concerns all workers is added up. It is the same for
// one worker and for many, and for every strategy.
type loop struct {
	opt    Options
	dev    tensor.Device
	events event.Listener
	peers  Peers
	share

	model *nn.Model
	optim *nn.Optimiser
	state State
	// train is an epoch's training, which returns the mean loss.
	train func(epoch int, lr float64) (float64, error)
	// measure takes the metric of the splits.
	measure func(e *event.Epoch) error
}

// share is a worker's share of the data, on its device.
type share struct {
	x      nn.Input
	task   nn.Task
	splits [3]tensor.Index // train, validation, test: rows of this worker
	ids    tensor.Index    // vertex ids of the rows; none: row i is vertex i
	own    int             // rows that are not copies of other workers'; 0: all
	copies bool            // workers compute copies of others' rows
	// trainOn and measureOn bring rows from neighbours; they differ for inductive training.
	trainOn, measureOn Strategy
	vertices           int64 // of all workers
	training           int64 // training vertices of all workers
}

// measured is what measuring passes start from: copies are of the strategy that trains.
func (s *share) measured() nn.Input {
	x := s.x
	switch {
	case s.own == 0 || s.measureOn == s.trainOn:
	case x.Sparse != nil:
		x.Sparse = x.Sparse.Slice(0, s.own)
	default:
		x.Matrix = x.Slice(0, s.own)
	}
	return x
}

// Peers are the other workers, for what is not rows of vertices.
type Peers interface {
	// AddUp adds numbers over all workers, in place, to the same bits on each.
	AddUp(epoch int, v []float64) error
	// Gradients begins to add up the gradients of all parameters.
	Gradients(epoch int, params []*nn.Param) (Gradients, error)
}

// Gradients are being added up over all workers, in place.
type Gradients interface {
	// Ready says that those of some parameters are final here.
	Ready(params []*nn.Param)
	// Wait returns when all are added up. All must be Ready before.
	Wait() error
}

// alone is a worker without others.
type alone struct{}

func (alone) AddUp(int, []float64) error                    { return nil }
func (alone) Gradients(int, []*nn.Param) (Gradients, error) { return alone{}, nil }
func (alone) Ready([]*nn.Param)                             {}
func (alone) Wait() error                                   { return nil }

func newLoop(dev tensor.Device, s share, peers Peers, opt Options, events event.Listener) (*loop, error) {
	f := &loop{opt: opt, dev: dev, events: events, peers: peers, share: s}
	f.model = nn.New(dev, opt.Model, opt.Seed)
	f.optim = nn.NewOptimiser(dev, f.model.Params, opt.Optim)
	f.state.History.BestEpoch = -1
	f.train, f.measure = f.step, f.measureSplits
	if opt.Resume != nil {
		return f, f.resume(opt.Resume)
	}
	return f, nil
}

func (f *loop) resume(s *State) error {
	if err := f.model.Load(f.dev, s.Model); err != nil {
		return fmt.Errorf("the checkpoint does not fit the model: %w", err)
	}
	if err := f.optim.Load(s.Optim, s.Steps); err != nil {
		return fmt.Errorf("the checkpoint does not fit the optimiser: %w", err)
	}
	f.state = *s
	f.state.Caches = nil
	f.state.History = s.History.apart()
	return nil
}

// run trains until the epochs are done, patience is out, or ctx ends. There is a result beside
// the error if only the last state could not be saved.
func (f *loop) run(ctx context.Context) (*Result, error) {
	reason := "finished"
	for f.state.Epoch < f.opt.Epochs {
		if f.outOfPatience() {
			reason = "early stop"
			break
		}
		stop, err := f.askedToStop(ctx)
		if err != nil {
			return nil, err
		}
		if stop {
			reason = "interrupted"
			break
		}
		if err := f.epoch(); err != nil {
			return nil, err
		}
	}
	if f.opt.MidwayOnly {
		return f.result(reason), nil
	}
	err := f.save(true)
	return f.result(reason), err
}

// askedToStop reports whether ctx has ended on any worker; all see the same answer.
func (f *loop) askedToStop(ctx context.Context) (bool, error) {
	v := []float64{0}
	if ctx.Err() != nil {
		v[0] = 1
	}
	err := f.peers.AddUp(f.state.Epoch, v)
	return v[0] > 0, err
}

// outOfPatience reports whether validation has not improved for too long.
func (f *loop) outOfPatience() bool {
	h := &f.state.History
	return f.opt.Patience > 0 && h.BestEpoch >= 0 && f.state.Epoch-1-h.BestEpoch >= f.opt.Patience
}

// epoch trains one epoch, measures if it is time to, and saves if it is time to.
func (f *loop) epoch() (err error) {
	n := f.state.Epoch
	e := event.Epoch{Epoch: n, LR: f.opt.Schedule.Rate(f.opt.Optim.LR, n)}
	start := time.Now()
	if e.Loss, err = f.train(n, e.LR); err != nil {
		return err
	}
	e.Seconds = time.Since(start).Seconds()
	if math.IsNaN(e.Loss) || math.IsInf(e.Loss, 0) {
		return fmt.Errorf("the loss is %g in epoch %d: training has diverged; try a lower --lr (now %g), and check the features with 'starling info'", e.Loss, n, e.LR)
	}
	h := &f.state.History
	h.Loss, h.EpochSeconds = append(h.Loss, e.Loss), append(h.EpochSeconds, e.Seconds)
	f.state.Epoch++
	if f.timeToMeasure(n) {
		start = time.Now()
		if err := f.measure(&e); err != nil {
			return err
		}
		e.Eval = time.Since(start).Seconds()
	}
	f.events.On(e)
	return f.save(false)
}

func (f *loop) timeToMeasure(epoch int) bool {
	last := epoch == f.opt.Epochs-1
	return last || f.opt.EvalEvery > 0 && (epoch+1)%f.opt.EvalEvery == 0
}

// pass is the setting of a run through the model.
func (f *loop) pass(on Strategy, training bool, epoch int) *nn.Pass {
	on.Begin(epoch, training)
	kind := "evaluate"
	if training {
		kind = "forward"
	}
	return &nn.Pass{Dev: f.dev, Agg: on, Train: training, Vertices: f.vertices, Own: f.own, Fewer: f.copies && training, Masked: f.opt.Strategy.masks(), Rows: f.opt.Rows, IDs: f.ids,
		Key: rng.New(f.opt.Seed).Fold(uint64(epoch)), Span: f.spans(kind)}
}

// spans reports parts of a pass as events.
func (f *loop) spans(kind string) func(string) func() {
	return func(name string) func() {
		start := time.Now()
		return func() { f.events.On(event.Span{Name: name, Kind: kind, Start: start, Dur: time.Since(start)}) }
	}
}

// step is forward, backward and update over the whole graph. It returns the mean
// loss of all training vertices.
func (f *loop) step(epoch int, lr float64) (float64, error) {
	p := f.pass(f.trainOn, true, epoch)
	f.model.ZeroGrad(f.dev)
	end := f.spans("step")("forward")
	logits := f.forward(p)
	end()
	// The loss's gradient takes the place of the logits, which nobody needs after.
	loss := []float64{f.task.Loss(f.dev, logits, logits, f.splits[0], 1/float64(f.training))}
	grads, err := f.peers.Gradients(epoch, f.model.Params)
	if err != nil {
		return 0, err
	}
	p.Span, p.Ready = f.spans("backward"), grads.Ready
	clip, clips := f.trainOn.(clipping)
	if clips {
		p.Ready = nil
	}
	end = f.spans("step")("backward")
	f.backward(p, logits)
	if clips {
		clip.clip(f.model.Params)
		grads.Ready(f.model.Params)
	}
	end()
	if err := f.trainOn.Err(); err != nil {
		return 0, err
	}
	end = f.spans("step")("update")
	defer end()
	wait := f.spans("wait")("gradients")
	err = errors.Join(grads.Wait(), f.peers.AddUp(epoch, loss))
	wait()
	if err != nil {
		return 0, err
	}
	f.optim.Step(lr)
	return loss[0], nil
}

// forward and backward go through the model, unless the strategy does.
func (f *loop) forward(p *nn.Pass) tensor.Matrix {
	if d, ok := f.trainOn.(driving); ok {
		return d.Forward(f.model, p, f.x)
	}
	return f.model.Forward(p, f.x)
}

func (f *loop) backward(p *nn.Pass, dlogits tensor.Matrix) {
	if d, ok := f.trainOn.(driving); ok {
		d.Backward(f.model, p, dlogits)
		f.dev.Free(dlogits)
		return
	}
	f.model.Backward(p, dlogits)
}

// measureSplits computes the metric on the three splits and keeps the best weights.
func (f *loop) measureSplits(e *event.Epoch) error {
	end := f.spans("step")("evaluate")
	defer end()
	logits := f.model.Forward(f.pass(f.measureOn, false, e.Epoch), f.measured())
	var counts []float64
	for _, rows := range f.splits {
		counts = append(counts, f.task.Counts(f.dev, logits, rows)...)
	}
	f.dev.Free(logits)
	if err := f.measureOn.Err(); err != nil {
		return err
	}
	if err := f.peers.AddUp(e.Epoch, counts); err != nil {
		return err
	}
	each := len(counts) / len(f.splits)
	metric := func(i int) float64 { return f.task.Metric(counts[i*each : (i+1)*each]) }
	e.Measured, e.Train, e.Val, e.Test = true, metric(0), metric(1), metric(2)
	if f.remember(e); e.Best {
		f.state.History.Measures = f.task.Measures(counts[2*each:])
	}
	return nil
}

// remember adds a measurement to the history and keeps the weights if it is the best.
func (f *loop) remember(e *event.Epoch) {
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
func (f *loop) save(now bool) error {
	midway := f.opt.SaveEvery > 0 && f.state.Epoch%f.opt.SaveEvery == 0 && f.state.Epoch < f.opt.Epochs
	if f.opt.Save == nil || !now && !midway {
		return nil
	}
	end := f.spans("step")("save")
	defer end()
	s := f.state
	s.Model, s.Optim, s.Steps, s.Caches = f.model.State(f.dev), f.optim.State(), f.optim.Steps, f.trainOn.Caches()
	return f.opt.Save(&s)
}

func (f *loop) result(reason string) *Result {
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
