package run

import (
	"errors"
	"fmt"
	"time"

	"starling/event"
	"starling/graph"
	"starling/spec"
	"starling/train"
)

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
