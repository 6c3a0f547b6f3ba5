package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"starling/event"
	"starling/plan"
	"starling/report"
	"starling/resume"
	"starling/setup"
	"starling/spec"
)

// decision is what --strategy auto chose, and what was predicted of it.
type decision struct {
	choice  plan.Planned
	options plan.Options
}

// triedChoices is how many of the best are tried with auto+try, and triedEpochs for how long each.
const (
	triedChoices = 3
	triedEpochs  = 2
)

// decide replaces --strategy auto by a choice: the one in the checkpoint that the run continues from, or the best
// exact one that fits. The run that follows is an ordinary run of that choice, with the same numbers, checkpoints
// and recovery.
func decide(ctx context.Context, s spec.Spec, events event.Listener) (spec.Spec, *decision, error) {
	if !s.Undecided() {
		return s, nil, nil
	}
	if before := decidedBefore(&s); before != nil {
		s.Strategy, s.Settings = before.Strategy, before.Settings
		events.On(event.Note{Text: "--strategy auto: " + s.Strategy + ", as the run that is continued"})
		return s, nil, nil
	}
	rate, try, err := autoOptions(s.Strategy)
	if err != nil {
		return s, nil, err
	}
	d := &decision{options: plan.Options{Spec: s, Rate: rate}}
	d.options.Strategy = s.DefaultStrategy()
	if !setup.RemoteWorkers(&s) { // all on this host
		d.options.Sharing = s.Cluster.Workers
	}
	choices, err := plan.Choose(ctx, d.options, events)
	if err != nil {
		return s, nil, err
	}
	if choices.Pick == nil {
		return s, nil, nothingFits(choices)
	}
	d.choice = *choices.Pick
	if try && !setup.RemoteWorkers(&s) {
		if d.choice, err = tryChoices(ctx, s, choices, events); err != nil {
			return s, nil, err
		}
	}
	events.On(event.Note{Text: fmt.Sprintf("--strategy auto: %s, %s per epoch predicted (%s); to run it again: %s", d.choice.Name,
		report.Seconds(d.choice.Predicted.Seconds), d.choice.Why, plan.StrategyWords(&d.choice))})
	return d.choice.Told(s), d, nil
}

// autoOptions reads what follows auto: the rate of links between servers, and +try.
func autoOptions(text string) (rate string, try bool, err error) {
	text, try = strings.CutSuffix(strings.TrimPrefix(text, "auto"), "+try")
	rate = strings.TrimPrefix(text, ":")
	if text != "" && !strings.HasPrefix(text, ":") {
		return "", false, spec.Mistake("--strategy", "auto"+text, "auto, auto:RATE, or either with +try", "for example auto:1gbit")
	}
	return rate, try, nil
}

// decidedBefore is the spec of the run that is continued; nil: it is a new one, or its checkpoint says why not later.
func decidedBefore(s *spec.Spec) *spec.Spec {
	if !s.Checkpoints.Resume && !s.Checkpoints.ResumeIfAny || s.Checkpoints.Dir == "" {
		return nil
	}
	c, err := resume.Latest(s.Checkpoints.Dir, func(string) {})
	if err != nil {
		return nil
	}
	_, before, err := resume.FromCheckpoint(c)
	if err != nil {
		return nil
	}
	return &before.Spec
}

// nothingFits names what would have to be otherwise.
func nothingFits(choices *plan.Choices) error {
	found := "no exact strategy that can be planned"
	if len(choices.Dropped) > 0 {
		found += ": " + choices.Dropped[0].Name + " " + choices.Dropped[0].Reason
	}
	return spec.Mistake("--strategy", "auto, and "+found, "one that fits", "starling plan says why of each; more workers need less each")
}

// tryChoices trains the best choices for two epochs each, from the same start, and keeps the fastest. Nothing of
// that stays: exact strategies follow one curve, whichever runs.
func tryChoices(ctx context.Context, s spec.Spec, choices *plan.Choices, events event.Listener) (best plan.Planned, err error) {
	least := 0.0
	for i, one := range choices.Rows[:min(triedChoices, len(choices.Rows))] {
		if !one.Exact {
			break
		}
		trial := measuring(one.Told(s))
		trial.Training.Epochs, trial.Output.Quiet = triedEpochs, true
		events.On(event.Note{Minor: true, Text: "--strategy auto tries " + one.Name})
		r, failed := trainCluster(ctx, trial, nil, nil, event.All())
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("trying %s: %w", one.Name, failed))
			continue
		}
		seconds := float64(slices.Min(r.EpochSeconds))
		events.On(event.Note{Minor: true, Text: fmt.Sprintf("--strategy auto tried %s: %s per epoch, %s predicted", one.Name,
			report.Seconds(seconds), report.Seconds(one.Predicted.Seconds))})
		if i == 0 || best.Name == "" || seconds < least {
			best, least = one, seconds
		}
	}
	if best.Name != "" {
		err = nil
	}
	return best, err
}

// enoughEpochs is how many a run needs so that rates learn from it: the first also does what is done once.
const enoughEpochs = 3

// conclude puts what was predicted beside what was measured into the report, and lets the file of rates learn.
func (d *decision) conclude(r *report.Run, events event.Listener) {
	if d == nil || r == nil {
		return
	}
	p := d.choice.Predicted
	r.Predicted = &report.Predicted{Choice: d.choice.Name, Why: d.choice.Why, EpochSeconds: report.Number(p.Seconds),
		ComputeSeconds: report.Number(p.Compute), ExposedSeconds: report.Number(p.Exposed),
		WaitingSeconds: report.Number(p.Waiting), EpochBytes: p.Between + p.Inside, MemoryBytes: p.Memory,
		MeasuredSeconds: r.MedianEpochSeconds}
	if len(r.Restarts) > 0 {
		r.Predicted.Stale = "a worker was lost and the run began anew"
	}
	if len(r.EpochSeconds) < enoughEpochs || r.Predicted.Stale != "" {
		return
	}
	if err := d.learn(float64(r.MedianEpochSeconds)); err != nil {
		events.On(event.Note{Text: "warning: the file of rates did not learn from this run: " + err.Error()})
	}
}

// learn takes the measured epochs into the file of rates.
func (d *decision) learn(measured float64) error {
	return d.options.Learn(d.choice.Told(d.options.Spec), d.choice.Predicted.Seconds, measured)
}

// measuring is a run of one epoch that writes nothing.
func measuring(s spec.Spec) spec.Spec {
	s.Training.Epochs, s.Training.EvalEvery, s.Training.Patience = 1, 0, 0
	s.Output = spec.Output{Quiet: s.Output.Quiet}
	s.Checkpoints.Dir, s.Checkpoints.Resume, s.Checkpoints.ResumeIfAny = "", false, false
	return s
}
