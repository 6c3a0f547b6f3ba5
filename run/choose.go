package run

import (
	"context"

	"starling/event"
	"starling/plan"
	"starling/spec"
	"starling/train"
)

// withChoice is the spec with the settings that the strategy would choose by. They are measured by the
// workers themselves, in a run of one epoch that writes nothing; workers of other hosts are not
// started for that, and a run that is resumed has its choice.
func withChoice(ctx context.Context, c *clusterRun) (spec.Spec, error) {
	s := c.spec
	if needed, err := c.planned().Chooses(); !needed || err != nil || c.from != nil || s.NoLaunch || s.Hosts != "" {
		return s, err
	}
	r, err := trainCluster(ctx, measuring(s), nil, event.All())
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

// measuring is a run of one epoch that writes nothing.
func measuring(s spec.Spec) spec.Spec {
	s.Epochs, s.EvalEvery, s.Patience = 1, 0, 0
	s.Out, s.JSON, s.Events, s.Trace, s.MetricsListen = "", "", "", "", ""
	s.CheckpointDir, s.Resume, s.ResumeIfAny = "", false, false
	return s
}

// dryRunCluster is the spec of a run of several workers, completed, and its plan.
func dryRunCluster(s spec.Spec, events event.Listener) (spec.Spec, *plan.Plan, error) {
	c, err := prepareCluster(context.Background(), s, nil, events)
	if err != nil {
		return s, nil, err
	}
	defer func() { c.parts.Remove() }()
	with, err := withChoice(context.Background(), c)
	if err != nil {
		return s, nil, err
	}
	if len(with.Settings) != len(c.spec.Settings) { // now all can be planned
		c.spec, c.plans = with, nil
	}
	if c.plans == nil {
		c.plans, err = c.planned().Plan(events)
	}
	return c.spec, c.plans, err
}
