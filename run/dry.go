package run

import (
	"context"

	"starling/event"
	"starling/plan"
	"starling/setup"
	"starling/spec"
	"starling/supervise"
	"starling/train"
)

// withChoice is the spec with the settings that the strategy would choose by. They are measured by the
// workers themselves, in a run of one epoch that writes nothing; workers of other hosts are not
// started for that, and a run that is resumed has its choice.
func withChoice(ctx context.Context, c *supervise.Run) (spec.Spec, error) {
	s := c.Spec
	if needed, err := c.Planned().Chooses(); !needed || err != nil || c.From != nil || s.Launch.NoLaunch ||
		s.Launch.Hosts != "" {
		return s, err
	}
	r, err := trainCluster(ctx, measuring(s), nil, nil, event.All())
	if err != nil {
		return s, err
	}
	for _, o := range train.AllOptions() {
		if value, ok := r.Chosen[o.Name]; ok {
			s.Settings = s.Settings.With(o, value)
		}
	}
	return s, nil
}

// dryRunCluster is the spec of a run of several workers, completed, and its plan.
func dryRunCluster(ctx context.Context, s spec.Spec, events event.Listener) (spec.Spec, *plan.Plan, error) {
	c, err := supervise.Prepare(ctx, s, nil, events)
	if err != nil {
		return s, nil, err
	}
	defer func() { c.Parts.Remove() }()
	with, err := withChoice(ctx, c)
	if err != nil {
		return s, nil, err
	}
	if len(with.Settings) != len(c.Spec.Settings) { // now all can be planned
		c.Spec, c.Plan = with, nil
	}
	if c.Plan == nil {
		c.Plan, err = c.Planned().Plan(events)
	}
	return c.Spec, c.Plan, err
}

// DryRun is the spec completed with defaults, and what the run would need.
func DryRun(s spec.Spec, events event.Listener) (spec.Spec, *plan.Plan, error) {
	if err := completeNoted(&s, events); err != nil {
		return s, nil, err
	}
	ctx, release := setup.CutOnce(context.Background())
	defer release()
	s, _, err := decide(ctx, s, event.All(events))
	if err != nil {
		return s, nil, err
	}
	if s.Distributed() {
		return dryRunCluster(ctx, s, event.All(events))
	}
	p, err := prepare(s, event.All(events))
	if err != nil {
		return s, nil, err
	}
	defer p.data.Close()
	return p.spec, p.plan, nil
}
