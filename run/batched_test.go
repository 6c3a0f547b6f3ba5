package run

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"starling/dataset/generate"
	"starling/event"
	"starling/graph"
	"starling/train"
)

// TestTooLargeTurnsToBatches: with --batch auto a full batch that does not fit becomes cooperative batches
// of the largest size that does, and the run says so; what fits stays, and what fits in no way, or does not go together with
// batches, is refused.
func TestTooLargeTurnsToBatches(t *testing.T) {
	dir := block(t, func(p *generate.Params) { p.Nodes, p.Edges, p.Features = 5000, 30_000, 16 })
	s := onFewThreads(quick(dir))
	s.Model.Name, s.Model.Layers, s.Model.Hidden, s.Model.Norm, s.Training.Epochs = "ressage+", 16, 48, "layer", 1
	s.Cluster.Workers, s.Cluster.Servers, s.Cluster.InProcess, s.Strategy = 4, 2, true, "granndis:0"
	auto := s
	for _, o := range train.AllOptions() {
		if o.Name == "batch" {
			auto.Settings = auto.Settings.With(o, "auto")
		}
	}
	budget := func(text string) (strategy string, notes string, err error) {
		one := auto
		for _, o := range train.AllOptions() {
			if o.Name == "memory_budget" {
				one.Settings = one.Settings.With(o, text)
			}
		}
		with, _, err := DryRun(one, event.Func(func(e event.Event) {
			if n, ok := e.(event.Note); ok {
				notes += n.Text + "\n"
			}
		}))
		return with.Strategy, notes, err
	}
	_, plan, err := DryRun(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	less := fmt.Sprint(plan.largest() * 9 / 10)
	if strategy, notes, err := budget("4GiB"); err != nil || strategy != "granndis:0" {
		t.Errorf("4 GiB: %s, %v: %s", strategy, err, notes)
	}
	if strategy, notes, err := budget(less); err != nil || strategy != "cobatch:eas1,15" ||
		!strings.Contains(notes, "training on cooperative batches instead") {
		t.Errorf("%s bytes: %s, %v: %s", less, strategy, err, notes)
	}
	if _, _, err := budget("4MiB"); !errors.Is(err, graph.ErrInput) || !strings.Contains(err.Error(), "per worker") {
		t.Errorf("4 MiB: %v", err)
	}
	auto.Model.Norm = "batch" // of which cooperative batches have none
	if _, _, err := budget(less); !errors.Is(err, graph.ErrInput) || !strings.Contains(err.Error(), "--batch") ||
		!strings.Contains(err.Error(), "--norm batch") {
		t.Errorf("%s bytes with --norm batch: %v", less, err)
	}
}
