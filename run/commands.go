package run

import (
	"context"

	"starling/dataset"
	"starling/event"
	"starling/fetch"
	"starling/internal/version"
	"starling/plan"
	"starling/watch"
	"starling/worker"
)

// Commands see no room but this one. What they need of the others is named here.

// Version is the release, or what else the program was built from.
func Version() string { return version.Name() }

// Commit is the commit that the program was built from; "": not known.
func Commit() string { return version.Commit() }

// Top watches a run: see package watch.
type Top = watch.Top

// GetOptions say where a public dataset comes from and goes to.
type GetOptions = fetch.Options

// PublicNames are the public datasets that Get knows.
func PublicNames() []string { return fetch.Names() }

// AboutPublic is a line about a public dataset.
func AboutPublic(name string) string { return fetch.About(name) }

// Get downloads a public dataset and imports it.
func Get(ctx context.Context, name string, opt GetOptions, events event.Listener) (dataset.Summary, error) {
	return fetch.Get(ctx, name, opt, events)
}

// WorkerSpec is what a user can say to starling worker.
type WorkerSpec = worker.Spec

// Work joins a run and trains as one of its workers.
func Work(ctx context.Context, w WorkerSpec, events event.Listener) error {
	return worker.Run(ctx, w, events)
}

// PlanOptions say what to plan for, WhatIfOptions which graph and cluster there are not yet.
type (
	PlanOptions   = plan.Options
	WhatIfOptions = plan.WhatIfOptions
)

// DefaultPlan is a plan without any flag.
func DefaultPlan() PlanOptions { return plan.Default() }

// PlanChoices predicts what every strategy and its options would take, and ranks them.
func PlanChoices(ctx context.Context, o PlanOptions, events event.Listener) (*plan.Choices, error) {
	return plan.Choose(ctx, o, events)
}

// PlanWhatIf plans for a graph that is not at hand.
func PlanWhatIf(o WhatIfOptions, events event.Listener) (*plan.WhatIfPlan, error) {
	return plan.WhatIf(o, events)
}

// JoinLinks measures links with the other workers of a plan.
func JoinLinks(ctx context.Context, w *WorkerSpec) error { return plan.JoinLinks(ctx, w) }
