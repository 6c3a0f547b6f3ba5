package supervise

import (
	"maps"
	"slices"
	"sync"

	"starling/cluster"
	"starling/event"
	"starling/graph"
	"starling/plan"
	"starling/report"
	"starling/resume"
	"starling/setup"
	"starling/spec"
	"starling/watch"
	"starling/worker"
)

// Run is a run of several workers that can start.
type Run struct {
	Spec  spec.Spec
	Parts *setup.Parts
	Plan  *plan.Plan        // nil: the workers are on other hosts
	From  *resume.Start     // nil: from the beginning
	Infer *worker.Inference // nil: it trains
	Token []byte            // the secret that workers share
	Rows  string            // the folder that workers write learnt rows of the model to; "": they send them

	id    *cluster.Identity
	at    *Rendezvous    // where workers that are started elsewhere find the run; nil: they get its address
	slots []cluster.Host // of every worker, with --hosts

	restarts []report.Restart
	watch    *watch.Watcher
	chosen   chosen
}

// Planned is the part of the run that is planned.
func (c *Run) Planned() *plan.Run {
	return &plan.Run{Spec: &c.Spec, Parts: c.Parts, From: c.From}
}

// Learns reports whether workers learn rows of vertices.
func (c *Run) Learns() bool {
	s := c.Parts.Meta.Schema
	return c.Spec.Embeddings.Dim > 0 || s != nil && slices.ContainsFunc(s.Types, func(t graph.VertexType) bool { return t.Features == nil })
}

// Task is what the workers get.
func (c *Run) Task() *worker.Task {
	return &worker.Task{Spec: c.Spec, Data: c.Parts.Meta, Parts: c.Parts.Dir, ID: c.Parts.Book.ID, Infer: c.Infer,
		Rows: c.Rows}
}

// chosen keeps the settings that a run's own choices follow from.
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

// settings are the last ones; nil: there was nothing to choose.
func (c *chosen) settings() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.settings
}
