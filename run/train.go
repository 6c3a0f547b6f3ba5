package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"starling/event"
	"starling/graph"
	"starling/report"
	"starling/spec"
	"starling/tensor"
	"starling/train"
	"starling/train/mini"
)

// Train runs s. When ctx ends it finishes the epoch, saves, and returns a report with the
// reason "interrupted". What s asks to write is written before it returns, except the report
// itself, which the caller writes. There is a report beside the error if the run has ended and
// only some of its output could not be written.
func Train(ctx context.Context, s spec.Spec, events event.Listener) (*report.Run, error) {
	return trainWith(ctx, s, nil, events)
}

// trainWith is Train with workers that join through a rendezvous.
func trainWith(ctx context.Context, s spec.Spec, at *rendezvous, events event.Listener) (*report.Run, error) {
	start := time.Now()
	defer limitGarbage()()
	events = event.All(events)
	if err := complete(&s); err != nil {
		return nil, err
	}
	s, decided, err := decide(ctx, s, events)
	if err != nil {
		return nil, err
	}
	if s.Distributed() {
		r, err := trainCluster(ctx, s, at, events)
		decided.conclude(r, events)
		return r, err
	}
	p, err := prepare(s, events)
	if err != nil {
		return nil, err
	}
	defer p.data.Close()
	release, err := claimCheckpoints(&p.spec)
	if err != nil {
		return nil, err
	}
	defer release()
	events, finish, err := eventFiles(ctx, &p.spec, events)
	if err != nil {
		return nil, err
	}
	events, stop, err := p.watched(events)
	if err != nil {
		return nil, errors.Join(err, finish())
	}
	defer stop()
	result, err := orShrunk(p.train(ctx, events))(events)
	if result == nil {
		return nil, errors.Join(err, finish())
	}
	weighted := p.data.Graph.Weights != nil
	written := conclude(&p.spec, &p.data.Meta, weighted, result, start, events, p.writeHeldOut)
	err = errors.Join(err, written, finish())
	r := newReport(&p.spec, &p.data.Meta, p.plan, result)
	r.Seconds = time.Since(start).Seconds()
	return r, err
}

// conclude writes --out and tells that the run has ended, even if that could not be written.
func conclude(s *spec.Spec, data *graph.Meta, weighted bool, r *train.Result, start time.Time, events event.Listener,
	more ...func(dir string) error) (err error) {
	if s.Output.Dir != "" && len(r.Best) > 0 {
		write := func(out string) error { return writeModelFolder(out, s, data, weighted, r, more...) }
		if err = write(s.Output.Dir); err != nil {
			err = writeElsewhere(s.Output.Dir, err, write)
		}
	}
	if r.Reason == train.Diverged {
		err = errors.Join(divergence(s, r), err)
	}
	events.On(event.Done{Reason: r.Reason, Epochs: len(r.Loss), BestEpoch: r.BestEpoch, Val: r.ValMetric,
		Test: r.TestMetric, Seconds: time.Since(start).Seconds()})
	return err
}

// divergence says what is left of a run whose last weights are not finite.
func divergence(s *spec.Spec, r *train.Result) error {
	kept := "no weights were written"
	if s.Output.Dir != "" && len(r.Best) > 0 {
		kept = fmt.Sprintf("%s has the best finite weights, of epoch %d", s.Output.Dir, r.BestEpoch)
	}
	return fmt.Errorf("weights are not finite after epoch %d: training has diverged; %s; try a lower --lr (now %g)",
		len(r.Loss)-1, kept, s.Optimizer.LR)
}

// train runs the loop, with checkpoints if they are asked for.
func (p *prepared) train(ctx context.Context, events event.Listener) (r *train.Result, err error) {
	defer deviceFailure(&err)
	s := &p.spec
	dev, err := newDevice(s, 0)
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	opt, err := s.Options(&p.data.Meta)
	if err != nil {
		return nil, err
	}
	opt.Resume = p.from
	saved := saveCheckpoints(s, &opt, p.data, events)
	result, err := trainOn(ctx, s, dev, p.data, opt, events)
	return result, errors.Join(err, saved())
}

// trainOn trains in the mode and the task of s.
func trainOn(ctx context.Context, s *spec.Spec, dev tensor.Device, data *graph.Dataset, opt train.Options,
	events event.Listener) (*train.Result, error) {
	if s.LearnsPairs() {
		return trainPairs(ctx, s, dev, data, opt, events)
	}
	if s.Mode == "full" {
		return train.Full(ctx, dev, data, opt, events)
	}
	batches, err := mini.OptionsOf(s.BatchSettings())
	if err != nil {
		return nil, err
	}
	return mini.Run(ctx, dev, data, opt, batches, events)
}
