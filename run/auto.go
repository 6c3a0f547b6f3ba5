package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"starling/cluster"
	"starling/event"
	"starling/report"
	"starling/spec"
	"starling/train"
)

// decision is what --strategy auto chose, and what was predicted of it.
type decision struct {
	choice  Planned
	options PlanOptions
}

// triedChoices is how many of the best are tried with auto+try, and triedEpochs for how long each.
const (
	triedChoices = 3
	triedEpochs  = 2
)

// decide replaces --strategy auto by a choice: that of the checkpoint that the run continues from, or the best exact
// one that fits. The run that follows is one that was told the choice, so that its numbers, checkpoints and
// recovery are those of such a run.
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
	d := &decision{options: PlanOptions{Spec: s, Rate: rate}}
	d.options.Strategy = train.DefaultOf(train.Mode(s.Mode)).Name
	if !remoteWorkers(&s) { // all on this host
		d.options.Sharing = s.Cluster.Workers
	}
	plan, err := PlanChoices(ctx, d.options, events)
	if err != nil {
		return s, nil, err
	}
	if plan.Pick == nil {
		return s, nil, nothingFits(plan)
	}
	d.choice = *plan.Pick
	if try && !remoteWorkers(&s) {
		if d.choice, err = tryChoices(ctx, s, plan, events); err != nil {
			return s, nil, err
		}
	}
	events.On(event.Note{Text: fmt.Sprintf("--strategy auto: %s, %s per epoch predicted (%s); to run it again: %s", d.choice.Name,
		report.Seconds(d.choice.Predicted.Seconds), d.choice.Why, strategyWords(&d.choice))})
	return d.choice.told(s), d, nil
}

// told is a run that was given the choice.
func (p *Planned) told(s spec.Spec) spec.Spec {
	s.Strategy, s.Settings = p.Strategy, p.Settings
	return s
}

// strategyWords are the flags of a choice.
func strategyWords(p *Planned) string { return p.Command[strings.Index(p.Command, "--strategy"):] }

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
	c, err := cluster.Latest(s.Checkpoints.Dir, func(string) {})
	if err != nil {
		return nil
	}
	_, before, err := fromCheckpoint(c)
	if err != nil {
		return nil
	}
	return &before.Spec
}

// nothingFits names what would have to be otherwise.
func nothingFits(plan *Choices) error {
	found := "no exact strategy that can be planned"
	if len(plan.Dropped) > 0 {
		found += ": " + plan.Dropped[0].Name + " " + plan.Dropped[0].Reason
	}
	return spec.Mistake("--strategy", "auto, and "+found, "one that fits", "starling plan says why of each; more workers need less each")
}

// tryChoices trains the best choices for two epochs each, from the same start, and keeps the fastest. Nothing of
// that stays: exact strategies follow one curve, whichever runs.
func tryChoices(ctx context.Context, s spec.Spec, plan *Choices, events event.Listener) (best Planned, err error) {
	least := 0.0
	for i, one := range plan.Rows[:min(triedChoices, len(plan.Rows))] {
		if !one.Exact {
			break
		}
		trial := measuring(one.told(s))
		trial.Training.Epochs, trial.Output.Quiet = triedEpochs, true
		events.On(event.Note{Minor: true, Text: "--strategy auto tries " + one.Name})
		r, failed := trainCluster(ctx, trial, nil, event.All())
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
	path, err := d.options.ratesPath()
	if err != nil {
		return err
	}
	known, err := readRates(path)
	if err != nil {
		return err
	}
	s := d.choice.told(d.options.Spec)
	known.Learn(learntKind(&s), d.choice.Predicted.Seconds, measured)
	return writeRates(path, known)
}
