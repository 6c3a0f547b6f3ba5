package run

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"starling/dataset"
	"starling/event"
	"starling/graph"
)

// Params describe a graph to generate, ImportOptions how to read files, Summary
// what came of either.
type (
	Params        = dataset.Params
	ImportOptions = dataset.ImportOptions
	Summary       = dataset.Summary
)

// DefaultParams are those of starling generate when nothing is said.
func DefaultParams() Params { return dataset.DefaultParams() }

// Kinds are the generators, Formats the importers, LikeNames the public datasets
// whose shape is known.
func Kinds() []string     { return dataset.Kinds() }
func Formats() []string   { return dataset.Formats() }
func LikeNames() []string { return dataset.LikeNames() }

// Like are the parameters of a graph with the published shape of a dataset.
func Like(name string, scale float64, symmetrise bool) (Params, error) {
	if !slices.Contains(LikeNames(), name) {
		return Params{}, mistake("--like", fmt.Sprintf("%q", name), "one of the datasets that starling generate --help lists", suggest(name, LikeNames()))
	}
	return dataset.Like(name, scale, symmetrise)
}

// Generate draws a graph of a kind and writes it to the folder out.
func Generate(ctx context.Context, kind string, p Params, out string, events event.Listener) (Summary, error) {
	if !slices.Contains(Kinds(), kind) {
		return Summary{}, mistake("KIND", fmt.Sprintf("%q", kind), "sbm, rmat or er", suggest(kind, Kinds()))
	}
	if err := checkNotDash("--out", out); err != nil {
		return Summary{}, err
	}
	if free, known := graph.DiskFree(filepath.Dir(filepath.Clean(out))); known && p.DiskBytes() > free {
		return Summary{}, mistake("--out", fmt.Sprintf("%s, on a disk with room for %s", out, event.Bytes(free)), "room for about "+event.Bytes(p.DiskBytes()), "choose another disk, or fewer --nodes, --edges or --features; --bf16 halves these")
	}
	p.Progress = progress(events)
	return untilInterrupted(ctx, out, func() (Summary, error) { return dataset.Generate(kind, p, out) })
}

// Import reads files of a format and writes a dataset to the folder out.
func Import(ctx context.Context, format, src string, opt ImportOptions, out string, events event.Listener) (Summary, error) {
	if !slices.Contains(Formats(), format) {
		return Summary{}, mistake("FORMAT", fmt.Sprintf("%q", format), "one of "+strings.Join(Formats(), ", "), suggest(format, Formats()))
	}
	if err := checkNotDash("--out", out); err != nil {
		return Summary{}, err
	}
	opt.Progress = progress(events)
	return untilInterrupted(ctx, out, func() (Summary, error) { return dataset.Import(format, src, opt, out) })
}

// progress passes on how far a dataset has come, from whichever goroutine.
func progress(events event.Listener) dataset.Progress {
	locked := event.Locked(event.All(events))
	return func(stage string, done, total int64) {
		locked.On(event.Progress{Task: stage, Done: done, Total: total})
	}
}

// InWords says what a new dataset holds.
func InWords(s Summary) string {
	text := event.Counted(s.Nodes, "vertex") + ", " + event.Counted(s.Edges, "edge")
	if s.Features > 0 {
		text += fmt.Sprintf(", %s (%s)", event.Counted(s.Features, "feature"), s.FeatureKind)
	}
	if s.Classes > 0 {
		what := event.Counted(s.Classes, "class")
		switch s.Task {
		case graph.MultiLabel:
			what += ", any number a vertex"
		case graph.Regression:
			what = event.Counted(s.Classes, "number") + " to predict"
		}
		text += fmt.Sprintf(", %s, splits of %s, %s and %s", what, event.Count(int64(s.Train)), event.Count(int64(s.Val)), event.Count(int64(s.Test)))
	}
	return text
}
