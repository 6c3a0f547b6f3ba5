package run

import (
	"context"

	"starling/dataset"
	"starling/event"
	"starling/fetch"
	"starling/internal/version"
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
