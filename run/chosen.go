package run

import (
	"context"
	"maps"
	"sync"

	"starling/event"
	"starling/spec"
	"starling/train"
)

// chosen hears the settings that a run's own choices follow from.
type chosen struct {
	mu struct {
		sync.Mutex
		settings map[string]string
	}
}

// On implements event.Listener.
func (c *chosen) On(e event.Event) {
	if n, ok := e.(event.Note); ok && n.Settings != nil {
		c.mu.Lock()
		c.mu.settings = maps.Clone(n.Settings)
		c.mu.Unlock()
	}
}

// settings are those that were heard; nil: there was nothing to choose.
func (c *chosen) settings() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.settings
}

// chooses reports whether the strategy of a run would choose by what it measures: where it can
// fill memory with replicas, and was not given all that decides.
func (c *clusterRun) chooses() (bool, error) {
	replicas, err := c.replicaBytes()
	given := c.spec.Settings
	_, rates := given["rates"]
	_, budget := given["memory_budget"]
	return err == nil && replicas > 0 && !(rates && budget), err
}

// choose is the spec with the settings that the strategy would choose by. They are measured by the
// workers themselves, in a run of one epoch that writes nothing; workers of other hosts are not
// started for that, and a run that is resumed has its choice.
func (c *clusterRun) choose(ctx context.Context, s spec.Spec) (spec.Spec, error) {
	if needed, err := c.chooses(); !needed || err != nil || c.from != nil || s.Launch.NoLaunch || s.Launch.Hosts != "" {
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
	s.Training.Epochs, s.Training.EvalEvery, s.Training.Patience = 1, 0, 0
	s.Output.Dir, s.Output.JSON, s.Output.Events, s.Output.Trace, s.Output.MetricsListen = "", "", "", "", ""
	s.Checkpoints.Dir, s.Checkpoints.Resume, s.Checkpoints.ResumeIfAny = "", false, false
	return s
}
