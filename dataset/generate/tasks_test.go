package generate

import (
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"starling/graph"
)

// Labels are as tasks.go defines them, and graph and splits do not depend on the task.
func TestTasks(t *testing.T) {
	open := func(task string) *graph.Dataset {
		p := DefaultParams()
		p.Nodes, p.Edges, p.Features, p.Classes, p.Task = 4000, 20_000, 8, 5, task
		return generate(t, "sbm", p)
	}
	one, multi, number := open("classify"), open("multilabel"), open("regression")
	for _, d := range []*graph.Dataset{multi, number} {
		if !slices.Equal(d.Graph.Indices, one.Graph.Indices) || !slices.Equal(d.Splits.Test, one.Splits.Test) {
			t.Errorf("%s: another graph", d.Meta.Source)
		}
	}
	if multi.Meta.Task != graph.MultiLabel || multi.Meta.Classes != 5 || number.Meta.Task != graph.Regression ||
		number.Meta.Classes != 1 {
		t.Fatal(multi.Meta, number.Meta)
	}
	more, square := 0, 0.0
	for v := range 4000 {
		c := one.Labels.Class[v]
		if multi.Labels.Row(v)[c] != 1 {
			t.Fatalf("vertex %d is not of its class", v)
		}
		for _, m := range multi.Labels.Row(v) {
			more += int(m)
		}
		apart := float64(number.Labels.Values[v]) - math.Sqrt(12)*((float64(c)+0.5)/5-0.5)
		square += apart * apart
	}
	if mean := float64(more) / 4000; math.Abs(mean-1.8) > 0.1 { // one and 4/5 more
		t.Errorf("%g classes per vertex", mean)
	}
	if sd := math.Sqrt(square / 4000); math.Abs(sd-0.3) > 0.02 {
		t.Errorf("noise of %g", sd)
	}
	for _, p := range []Params{{Task: "link"}, {Task: "regression"}} {
		p.Nodes = 3
		if _, err := Dataset("er", p, filepath.Join(t.TempDir(), "bad")); !errors.Is(err, graph.ErrInput) ||
			!strings.Contains(err.Error(), "task") {
			t.Errorf("%+v: %v", p.Task, err)
		}
	}
}
