package run

import (
	"context"
	"errors"
	"time"

	"starling/event"
	"starling/report"
	"starling/resume"
	"starling/spec"
	"starling/supervise"
	"starling/worker"
)

// trainCluster runs s on several workers, as Train does on one.
func trainCluster(ctx context.Context, s spec.Spec, at *supervise.Rendezvous, events event.Listener) (
	*report.Run, error) {
	began := time.Now()
	c, err := supervise.Prepare(ctx, s, at, events)
	if err != nil {
		return nil, err
	}
	defer c.Parts.Remove()
	release, err := resume.Claim(&c.Spec)
	if err != nil {
		return nil, err
	}
	defer release()
	events, finish, err := eventFiles(ctx, &c.Spec, events)
	if err != nil {
		return nil, err
	}
	events, stop, err := c.Watched(events)
	if err != nil {
		return nil, errors.Join(err, finish())
	}
	defer stop()
	shares, lost := c.Work(ctx, events) // lost: the last state could not be saved
	if shares == nil {
		return nil, errors.Join(lost, finish())
	}
	r, err := worker.JoinShares(shares)
	if err != nil || lost != nil && r.Reason == "interrupted" && ctx.Err() == nil { // by the full disk
		return nil, errors.Join(err, lost, finish())
	}
	written := conclude(&c.Spec, &c.Parts.Meta, c.Parts.Book.Weighted, r, began, events,
		func(dir string) error { return heldOutBeside(&c.Spec, dir) })
	return c.Report(shares, r, time.Since(began)), errors.Join(lost, written, finish())
}
