package traintest

import (
	"testing"

	"starling/graph"
	"starling/nn"
	"starling/train"
)

// Rare are the communities with two classes, one of a sixth of the vertices, or with all four, or with labels of
// another kind.
func Rare(t testing.TB, kind string) *graph.Dataset {
	if kind != "two" && kind != "four" {
		return WithTask(t, kind)
	}
	d := Communities(t, 240, false)
	if kind == "two" {
		for v, c := range d.Labels.Class {
			if d.Labels.Class[v] = 0; c == 0 && v%3 > 0 {
				d.Labels.Class[v] = 1
			}
		}
		d.Labels.Classes, d.Meta.Classes = 2, 2
	}
	return d
}

// Objectives are losses and metrics for labels of such a kind, as options.
func Objectives(kind string) (list []train.Options) {
	task := nn.TaskOf(kind)
	if kind == "two" || kind == "four" {
		task = nn.TaskClassify
	}
	for _, m := range nn.MetricNames(task) {
		list = append(list, train.Options{Metric: m})
	}
	if task == nn.TaskRegression {
		return list
	}
	weights := []float64{1, 2, 0.5, 4}
	if kind == "two" {
		weights = weights[:2]
	}
	return append(list, train.Options{Balanced: true}, train.Options{Weights: weights}, train.Options{Focus: 2},
		train.Options{Balanced: true, Focus: 0.5, Metric: "auc"})
}
