package run

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"starling/disk"
	"starling/event"
	"starling/graph"
	"starling/report"
	"starling/resume"
	"starling/setup"
	"starling/spec"
	"starling/supervise"
	"starling/tensor"
	"starling/train"
	"starling/train/batch"
	"starling/train/batch/pairs"
	"starling/worker"
)

// Train runs s. When ctx ends it finishes the epoch, saves, and returns a report with the
// reason "interrupted". What s asks to write is written before it returns, except the report
// itself, which the caller writes. There is a report beside the error if the run has ended and
// only some of its output could not be written.
func Train(ctx context.Context, s spec.Spec, events event.Listener) (*report.Run, error) {
	return trainWith(ctx, s, nil, events)
}

// trainWith is Train with workers that join through a rendezvous.
func trainWith(ctx context.Context, s spec.Spec, at *supervise.Rendezvous, events event.Listener) (*report.Run, error) {
	start := time.Now()
	defer setup.LimitGarbage()()
	events = event.All(events)
	if err := completeNoted(&s, events); err != nil {
		return nil, err
	}
	if s.Undecided() { // else workers open the parts, and nothing is left of them
		once, release := setup.CutOnce(ctx)
		defer release()
		ctx = once
	}
	s, decided, err := decide(ctx, s, events)
	if err != nil {
		return nil, err
	}
	if s.Distributed() {
		r, err := trainCluster(ctx, s, at, decided, events)
		decided.conclude(r, events)
		return r, err
	}
	p, err := prepare(s, events)
	if err != nil {
		return nil, err
	}
	defer p.data.Close()
	unclaim, err := resume.Claim(&p.spec, p.from)
	if err != nil {
		return nil, err
	}
	defer unclaim()
	out, err := openOutputs(ctx, &p.spec, events)
	if err != nil {
		return nil, err
	}
	events, stop, err := p.watched(out.events)
	if err != nil {
		return nil, errors.Join(err, out.finish())
	}
	out.open(p.plan, nil)
	result, err := setup.OrShrunk(p.train(ctx, events))
	stop()
	if result == nil {
		return nil, errors.Join(err, out.finish())
	}
	weighted := p.data.Graph.Weights != nil
	written := conclude(&p.spec, &p.data.Meta, weighted, result, start, events,
		func(dir string) error { return writeHeldOut(&p.spec, p.data, dir) })
	r := supervise.NewReport(&p.spec, &p.data.Meta, p.plan, result)
	r.Seconds = time.Since(start).Seconds()
	return r, errors.Join(err, written, out.conclude(r), out.finish())
}

// completeNoted completes a spec, and says so where an option that was given chose the strategy.
func completeNoted(s *spec.Spec, events event.Listener) error {
	chosen := s.Strategy != "default"
	err := setup.Complete(s)
	if why := s.Lacking(); err == nil && !chosen && s.Distributed() && why != "" {
		events.On(event.Note{Text: why})
	}
	return err
}

// train runs the loop, with checkpoints if they are asked for.
func (p *prepared) train(ctx context.Context, events event.Listener) (*train.Result, error) {
	s := &p.spec
	dev, err := setup.NewDevice(s, 0)
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	opt, err := setup.Options(s, &p.data.Meta)
	if err != nil {
		return nil, err
	}
	if opt.Disk, err = setup.DiskOptions(s, []*graph.Features{p.data.Features}, 1, p.plan.Needed()); err != nil {
		return nil, err
	}
	opt.Resume = p.from
	saved := resume.SaveCheckpoints(s, &opt, p.data, events)
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
	batches, err := s.BatchSettings(&data.Meta)
	if err != nil {
		return nil, err
	}
	return batch.Run(ctx, dev, data, opt, batches, events)
}

// trainPairs trains on pairs of vertices.
func trainPairs(ctx context.Context, s *spec.Spec, dev tensor.Device, data *graph.Dataset, opt train.Options,
	events event.Listener) (*train.Result, error) {
	if s.LearnsRelations() {
		return trainRelations(ctx, s, dev, data, opt, events)
	}
	l, err := setup.Pairs(ctx, s, data)
	if err != nil && ctx.Err() != nil {
		return nil, report.ErrInterrupted
	}
	if err != nil {
		return nil, err
	}
	if s.Mode == "mini" {
		return pairs.Run(ctx, dev, data, opt, *l, events)
	}
	return train.Link(ctx, dev, data, opt, l.LinkOptions, events)
}

// trainRelations trains on edges of relations of a typed graph.
func trainRelations(ctx context.Context, s *spec.Spec, dev tensor.Device, data *graph.Dataset, opt train.Options,
	events event.Listener) (*train.Result, error) {
	if s.Mode == "full" {
		return train.LinkRelations(ctx, dev, data, opt, events)
	}
	batches, err := s.BatchSettings(&data.Meta)
	if err != nil {
		return nil, err
	}
	return pairs.RunRelations(ctx, dev, data, opt, pairs.Options{Batches: batches, Without: true}, events)
}

// TrainAt trains s as one of the tasks of a launcher, each with one worker. The task of rank 0
// coordinates, and has the report; the others have none. Without a place it is Train.
func TrainAt(ctx context.Context, s spec.Spec, p *supervise.Place, events event.Listener) (*report.Run, error) {
	if p == nil {
		return Train(ctx, s, events)
	}
	at, err := supervise.Meet(&s, p)
	if err != nil {
		return nil, err
	}
	if p.Rank == 0 {
		return trainWith(ctx, s, at, event.All(events))
	}
	return nil, at.Follow(ctx, &s, events)
}

// trainCluster runs s on several workers, as Train does on one.
func trainCluster(ctx context.Context, s spec.Spec, at *supervise.Rendezvous, d *decision, events event.Listener) (
	*report.Run, error) {
	began := time.Now()
	c, err := supervise.Prepare(ctx, s, at, events)
	if err != nil {
		return nil, err
	}
	defer c.Parts.Remove()
	release, err := resume.Claim(&c.Spec, c.From.Trained())
	if err != nil {
		return nil, err
	}
	defer release()
	out, err := openOutputs(ctx, &c.Spec, events)
	if err != nil {
		return nil, err
	}
	events, stop, err := c.Watched(out.events)
	if err != nil {
		return nil, errors.Join(err, out.finish())
	}
	defer stop()
	out.open(c.Plan, d)
	if c.Spec.Output.Dir != "" && c.Learns() {
		rows, err := disk.NewFolder(c.Spec.Output.Dir + ".rows")
		if err != nil {
			return nil, errors.Join(err, out.finish())
		}
		defer rows.Abort()
		if c.Rows, err = filepath.Abs(rows.Tmp); err != nil {
			return nil, errors.Join(err, out.finish())
		}
	}
	shares, lost := c.Work(ctx, events) // lost: the last state could not be saved
	if shares == nil {
		return nil, errors.Join(lost, out.finish())
	}
	r, err := worker.JoinShares(shares)
	if err != nil || lost != nil && r.Reason == "interrupted" && ctx.Err() == nil { // by the full disk
		return nil, errors.Join(err, lost, out.finish())
	}
	written := conclude(&c.Spec, &c.Parts.Meta, c.Parts.Book.Weighted, r, began, events,
		func(dir string) error { return heldOutBeside(&c.Spec, dir) })
	full := c.Report(shares, r, time.Since(began))
	return full, errors.Join(lost, written, out.conclude(full), out.finish())
}
