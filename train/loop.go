package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/rng"
	"starling/tensor"
	"starling/wire"
)

// Loop is training as one worker sees it: epochs, measurements, checkpoints, and when to
// stop. It is the same for one worker and for many, and for every strategy. An epoch is
// one step over all vertices of the worker, unless TrainEpoch is another.
type Loop struct {
	Share
	Opt    Options
	Dev    tensor.Device
	Events event.Listener
	Peers  Peers
	First  bool // this is rank 0, or the only one
	Rank   int
	Ranks  int // at least 1
	Clock  wire.Clock

	Model  *nn.Model
	Optim  *nn.Optimiser
	Learnt *Learnt // rows of vertices that are learnt; nil: none
	State  State
	// Weighting is what labels count in the loss.
	Weighting nn.Weighting
	// Targets is what the targets of a regression are standardized by; nil: they are not.
	Targets *graph.Scale
	metric  nn.Metric
	known   knownOfAll
	kept    [2]*Outputs // of the best epoch: validation and test; nil: there was none since the run (re)started
	again   bool        // the best weights are measured again
	// TrainEpoch trains for an epoch and returns the mean loss.
	TrainEpoch func(epoch int, lr float64) (float64, error)
	// Measure takes the metric of the splits.
	Measure func(e *event.Epoch) error
	// Outputs are the rows of all own vertices that are measured; nil: those of a pass over the whole graph.
	Outputs func() (tensor.Matrix, error)

	began time.Time // the epoch, here
}

// NewLoop is a loop at its first epoch, or where opt.Resume ended. From weights alone it starts at
// the first epoch, with a new optimiser.
func NewLoop(dev tensor.Device, s Share, peers Peers, opt Options, events event.Listener) (*Loop, error) {
	f := &Loop{Opt: opt, Dev: dev, Events: events, Peers: peers, Share: s, First: true, Ranks: 1}
	if f.Clock = opt.Clock; f.Clock == nil {
		f.Clock = wire.Real
	}
	f.Model = nn.New(dev, opt.Model, opt.Seed)
	f.Optim = nn.NewOptimiser(dev, f.Model.Params, opt.Optim)
	f.Learnt = newLearnt(dev, s.X.Typed, opt.Optim)
	f.State.History.BestEpoch = -1
	f.TrainEpoch, f.Measure = f.step, f.measureSplits
	if err := dev.Err(); err != nil { // what the host keeps beside a model is not taken for one that does not fit
		return nil, err
	}
	if err := f.setObjective(); err != nil {
		return nil, err
	}
	if opt.Resume != nil {
		if err := f.resume(opt.Resume); err != nil {
			return f, err
		}
	}
	f.standardizeTargets()
	return f, nil
}

func (f *Loop) resume(s *State) error {
	if err := f.Model.Load(f.Dev, s.Model); err != nil {
		return fmt.Errorf("the checkpoint does not fit the model: %w", err)
	}
	if s.warmStart() {
		if err := f.Learnt.start(f.Dev, s.Caches); err != nil {
			return fmt.Errorf("the learnt rows do not fit the graph: %w", err)
		}
		return nil
	}
	if err := f.Optim.Load(s.Optim, s.Steps); err != nil {
		return fmt.Errorf("the checkpoint does not fit the optimiser: %w", err)
	}
	if err := f.Learnt.load(f.Dev, s.Caches, s.Steps); err != nil {
		return fmt.Errorf("the checkpoint does not fit the learnt rows: %w", err)
	}
	f.State = *s
	f.State.Caches = nil
	f.State.History = s.History.apart()
	return nil
}

// Diverged is the reason of a run whose last weights are not finite. Its result has the best finite
// weights, or none.
const Diverged = "diverged"

// Run trains until the epochs are done, patience is out, or ctx ends. There is a result beside
// the error if only the last state could not be saved.
func (f *Loop) Run(ctx context.Context) (*Result, error) {
	reason := "finished"
	if err := f.saveChoice(); err != nil {
		return nil, err
	}
	for f.State.Epoch < f.Opt.Epochs {
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
	var unsaved error
	if !finite(f.Model.State(f.Dev)) { // and so on all workers, whose weights are the same
		reason = Diverged
	} else if !f.Opt.MidwayOnly {
		unsaved = f.save(true)
	}
	r := f.result(reason)
	if reason != "interrupted" { // else it goes on
		if err := f.evaluate(r); err != nil {
			return nil, f.failed(err)
		}
	}
	if err := f.Dev.Err(); err != nil {
		return nil, err
	}
	return r, unsaved
}

// askedToStop reports whether ctx has ended on any worker; all see the same answer.
func (f *Loop) askedToStop(ctx context.Context) (bool, error) {
	v := []float64{0}
	if ctx.Err() != nil {
		v[0] = 1
	}
	err := f.Peers.AllReduce(f.State.Epoch, 0, v)
	return v[0] > 0, err
}

// outOfPatience reports whether validation has not improved for too long.
func (f *Loop) outOfPatience() bool {
	h := &f.State.History
	return f.Opt.Patience > 0 && h.BestEpoch >= 0 && f.State.Epoch-1-h.BestEpoch >= f.Opt.Patience
}

// epoch trains one epoch, measures if it is time to, and saves if it is time to.
func (f *Loop) epoch() (err error) {
	n := f.State.Epoch
	e := event.Epoch{Epoch: n, LR: f.Opt.Schedule.Rate(f.Opt.Optim.LR, n)}
	start := f.Clock.Now()
	f.began = start
	e.Loss, err = f.TrainEpoch(n, e.LR)
	if err := f.failed(err); err != nil {
		return err
	}
	e.Seconds = f.State.Seconds + wire.Since(f.Clock, start).Seconds()
	if math.IsNaN(e.Loss) || math.IsInf(e.Loss, 0) {
		return fmt.Errorf("the loss is %g in epoch %d: training has diverged; try a lower --lr (now %g), and check "+
			"the features with 'starling info'", e.Loss, n, e.LR)
	}
	h := &f.State.History
	h.Loss, h.EpochSeconds = append(h.Loss, e.Loss), append(h.EpochSeconds, e.Seconds)
	f.State.Epoch++
	f.State.Batch, f.State.Partial, f.State.Seconds = 0, nil, 0
	if f.timeToMeasure(n) {
		start = f.Clock.Now()
		if err := f.failed(f.Measure(&e)); err != nil {
			return err
		}
		e.Eval = wire.Since(f.Clock, start).Seconds()
	}
	f.Events.On(e)
	return f.save(false)
}

// failed is why the device failed, which is the cause of what follows from that, or else err.
func (f *Loop) failed(err error) error {
	if failure := f.Dev.Err(); failure != nil {
		return failure
	}
	return err
}

func (f *Loop) timeToMeasure(epoch int) bool {
	last := epoch == f.Opt.Epochs-1
	return last || f.Opt.EvalEvery > 0 && (epoch+1)%f.Opt.EvalEvery == 0
}

// Pass is the setting of a run through the model.
func (f *Loop) Pass(on Strategy, training bool, epoch int) *nn.Pass {
	on.Begin(epoch, 0, training)
	kind := "evaluate"
	if training {
		kind = "forward"
	}
	multiplier, _ := as[nn.Multiplier](on)
	return &nn.Pass{Dev: f.Dev, Agg: on, Multiplier: multiplier, Train: training,
		Key: rng.New(f.Opt.Seed).Fold(uint64(epoch)), Vertices: f.Vertices, Own: f.Own,
		Fewer: f.Replicas && training, Masked: masks(on), Rows: f.Opt.Rows, IDs: f.IDs, Types: f.Types,
		Span: f.Span(kind)}
}

// Span reports parts of a pass as events of a kind.
func (f *Loop) Span(kind string) func(string) func() {
	return func(name string) func() {
		start := f.Clock.Now()
		return func() {
			f.Events.On(event.Span{Name: name, Kind: kind, Start: start, Dur: wire.Since(f.Clock, start)})
		}
	}
}

// Waiting reports the time that do takes as time in which the worker waits for others.
func (f *Loop) Waiting(name string, do func() error) error {
	return waiting(f.Clock, f.Events, name, do)
}

func waiting(clock wire.Clock, events event.Listener, name string, do func() error) error {
	start := clock.Now()
	err := do()
	events.On(event.Span{Name: name, Kind: "wait", Start: start, Dur: wire.Since(clock, start)})
	return err
}

// step is forward, backward and update over the whole graph. It returns the mean
// loss of all training vertices.
func (f *Loop) step(epoch int, lr float64) (float64, error) {
	p := f.Pass(f.TrainOn, true, epoch)
	f.Model.ZeroGrad(f.Dev)
	f.Learnt.zeroGrad(f.Dev)
	end := f.Span("step")("forward")
	logits := f.forward(p)
	end()
	if err := f.Dev.Err(); err != nil {
		return 0, err
	}
	// The loss's gradient takes the place of the logits, which are not needed after.
	lost := f.Task.Loss(f.Dev, logits, logits, f.Splits[0], 1/float64(f.Training))
	grads, err := f.Peers.Gradients(epoch, 0, f.Model.Params)
	if err != nil {
		return 0, err
	}
	p.Span, p.Ready = f.Span("backward"), grads.Ready
	end = f.Span("step")("backward")
	f.backward(p, logits)
	end()
	if err := f.TrainOn.Err(); err != nil {
		return 0, err
	}
	end = f.Span("step")("update")
	defer end()
	loss := []float64{nn.TakeLoss(f.Dev, lost)}
	if err := f.Waiting("gradients", func() error {
		return errors.Join(grads.Wait(), f.Peers.AllReduce(epoch, 0, loss))
	}); err != nil {
		return 0, err
	}
	f.Optim.Step(lr)
	f.Learnt.step(lr)
	return loss[0], nil
}

// masks reports whether gradients of a strategy's rows are masked.
func masks(on Strategy) bool {
	m, ok := as[Masking](on)
	return ok && m.Masks()
}

// forward and backward go through the model, unless the strategy does.
func (f *Loop) forward(p *nn.Pass) tensor.Matrix {
	if d, ok := as[Driving](f.TrainOn); ok {
		return d.Forward(f.Model, p, f.X)
	}
	return f.Model.Forward(p, f.X)
}

func (f *Loop) backward(p *nn.Pass, dlogits tensor.Matrix) {
	if d, ok := as[Driving](f.TrainOn); ok {
		d.Backward(f.Model, p, dlogits)
		f.Dev.Free(dlogits)
		return
	}
	f.Model.Backward(p, dlogits)
}

// measureSplits computes the metric on the three splits and keeps the best weights.
func (f *Loop) measureSplits(e *event.Epoch) error {
	end := f.Span("step")("evaluate")
	defer end()
	logits, err := f.outputs(e.Epoch)
	if err != nil {
		return err
	}
	defer f.Dev.Free(logits)
	counts := slices.Concat(f.Task.Counts(f.Dev, logits, f.Splits[:]...)...)
	if err := f.MeasureOn.Err(); err != nil {
		return err
	}
	if err := f.Peers.AllReduce(e.Epoch, 0, counts); err != nil {
		return err
	}
	each := len(counts) / len(f.Splits)
	metric := func(i int) float64 { return f.Task.Metric(counts[i*each : (i+1)*each]) }
	e.Measured, e.Train, e.Val, e.Test = true, metric(0), metric(1), metric(2)
	if f.remember(e, logits) {
		f.State.History.Measures = f.Task.Measures(counts[2*each:])
	}
	return nil
}

// outputs are the model's rows of all own vertices.
func (f *Loop) outputs(epoch int) (tensor.Matrix, error) {
	if f.Outputs != nil {
		return f.Outputs()
	}
	return f.Model.Forward(f.Pass(f.MeasureOn, false, epoch), f.measured()), nil
}

// Remember adds a measurement to the history and keeps the weights if it is the best.
func (f *Loop) Remember(e *event.Epoch) {
	h := &f.State.History
	best := f.metric.Worst()
	for i, at := range h.Measured {
		if at == h.BestEpoch {
			best = h.Val[i]
		}
	}
	h.Measured = append(h.Measured, e.Epoch)
	h.Train, h.Val, h.Test = append(h.Train, e.Train), append(h.Val, e.Val), append(h.Test, e.Test)
	// Without a validation split the last weights are the best there are.
	if e.Best = f.metric.Better(e.Val, best) || math.IsNaN(e.Val); !e.Best {
		return
	}
	weights := f.Model.State(f.Dev)
	if e.Best = finite(weights); e.Best {
		h.BestEpoch, f.State.Best = e.Epoch, weights
		f.Learnt.keepBest(f.Dev)
	}
}

// finite reports whether weights are numbers, none of them infinite.
func finite(weights []nn.Tensor) bool {
	for _, t := range weights {
		for _, x := range t.Data {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return false
			}
		}
	}
	return true
}

// save hands the state out, every SaveEvery epochs or when now is set.
func (f *Loop) save(now bool) error {
	midway := f.Opt.SaveEvery > 0 && f.State.Epoch%f.Opt.SaveEvery == 0 && f.State.Epoch < f.Opt.Epochs
	if f.Opt.Save == nil || !now && !midway {
		return nil
	}
	return f.saveState(f.State)
}

// Choosing is a strategy that may choose what it does from measured rates.
type Choosing interface{ Chosen() bool }

// saveChoice saves the state before the first epoch if the strategy has made a choice: a run that
// starts again, however early, must not choose otherwise.
func (f *Loop) saveChoice() error {
	c, ok := as[Choosing](f.TrainOn)
	resumed := f.Opt.Resume != nil && !f.Opt.Resume.warmStart()
	if f.Opt.Save == nil || resumed || !ok || !c.Chosen() {
		return nil
	}
	return f.saveState(f.State)
}

// StepDone tells the loop that a step of an epoch of several is done, and this worker's sums of
// the epoch so far. Where the state is saved, it has those of all workers, each apart, so that
// a resumed epoch adds them up in the same order.
func (f *Loop) StepDone(epoch, batch int, sums []float64) error {
	if err := f.Dev.Err(); err != nil || !saves(&f.Opt, f.Optim.Steps) {
		return err
	}
	all := make([]float64, len(sums)*f.Ranks)
	copy(all[len(sums)*f.Rank:], sums)
	if err := f.AllReduce(epoch, batch, all); err != nil {
		return err
	}
	s := f.State
	s.Batch, s.Partial, s.Seconds = batch+1, all, f.Elapsed()
	return f.saveState(s)
}

// AllReduce adds numbers of a step over all workers, in place, and reports the time that this one waits for them.
func (f *Loop) AllReduce(epoch, batch int, v []float64) error {
	return f.Waiting("sums over all workers", func() error { return f.Peers.AllReduce(epoch, batch, v) })
}

// SavesNow reports whether StepDone would save the state after the steps that were taken.
func (f *Loop) SavesNow() bool { return saves(&f.Opt, f.Optim.Steps) }

// Elapsed is how many seconds the epoch has taken so far, those before a restart among them.
func (f *Loop) Elapsed() float64 { return f.State.Seconds + wire.Since(f.Clock, f.began).Seconds() }

// saves reports whether the state is saved after a number of steps.
func saves(o *Options, steps int) bool {
	return o.SaveSteps > 0 && o.Save != nil && steps%o.SaveSteps == 0
}

// Resumed are the step that an epoch begins with, and this worker's sums so far, as StepDone
// had them. If another number of workers had them, the first takes over all.
func (f *Loop) Resumed(epoch int, sums []float64) (batch int) {
	if epoch != f.State.Epoch || f.State.Batch == 0 {
		return 0
	}
	if all := f.State.Partial; len(all) == len(sums)*f.Ranks {
		copy(sums, all[len(sums)*f.Rank:])
	} else if f.First {
		for i, x := range all {
			sums[i%len(sums)] += x
		}
	}
	return f.State.Batch
}

// saveState saves s, with weights and caches as they are now.
func (f *Loop) saveState(s State) error {
	end := f.Span("step")("save")
	defer end()
	s.Model, s.Optim, s.Steps, s.Caches = f.Model.State(f.Dev), f.Optim.State(), f.Optim.Steps, f.caches()
	if err := cmp.Or(f.Dev.Err(), f.TrainOn.Err()); err != nil { // a state is complete or not saved
		return err
	}
	if !finite(s.Model) {
		after := fmt.Sprintf("epoch %d", s.Epoch-1)
		if s.Batch > 0 {
			after = fmt.Sprintf("%d steps of epoch %d", s.Batch, s.Epoch)
		}
		return fmt.Errorf("weights are not finite after %s: training has diverged; try a lower --lr (now %g)", after,
			f.Opt.Optim.LR)
	}
	return f.Opt.Save(&s)
}

// caches are what the next epoch needs of this worker, beside the weights.
func (f *Loop) caches() []nn.Tensor {
	list := f.TrainOn.Caches()
	if f.Learnt != nil {
		list = append(list, f.Learnt.tensors(f.Dev)...)
	}
	return list
}

func (f *Loop) result(reason string) *Result {
	h := f.State.History
	_, peak := f.Dev.Usage()
	r := &Result{History: h, Metric: f.metric.Name, Reason: reason, ValMetric: math.NaN(), TestMetric: math.NaN(),
		PeakBytes: peak, Parameters: f.Model.Size(), Learnt: f.LearntNumbers(),
		Final: f.Model.State(f.Dev), Best: f.State.Best}
	for i, at := range h.Measured {
		if at == h.BestEpoch {
			r.ValMetric, r.TestMetric = h.Val[i], h.Test[i]
		}
	}
	if r.Best == nil && reason != Diverged {
		r.Best = r.Final
	}
	return r
}
