package mini

import (
	"fmt"
	"testing"

	"starling/graph"
	"starling/train/traintest"
)

// TestObjectivesInBatches: weighted losses, metrics and the best epoch equal one worker's, whatever the strategy,
// the sampler and the number of workers.
func TestObjectivesInBatches(t *testing.T) {
	strategies := []string{"distdgl", "hopgnn", "bytegnn", "naive-hop", "salient", "cobatch", "p3"}
	at := 0
	for _, kind := range []string{"two", "four", graph.MultiLabel, graph.Regression} {
		d := traintest.Rare(t, kind)
		for i, of := range traintest.Objectives(kind) {
			o := traintest.TaskOptions(d)
			o.Epochs, o.Metric, o.Balanced, o.Weights, o.Focus = 2, of.Metric, of.Balanced, of.Weights, of.Focus
			strategy, workers := strategies[at%len(strategies)], []int{2, 3, 5}[at%3]
			at++
			t.Run(fmt.Sprintf("%s/%d/%s/%d", kind, i, strategy, workers), func(t *testing.T) {
				m := samplerOptions("neighbour", o.Model.Layers)
				got := traintest.Batches(t, traintest.Cut(t, d, "random", workers), o, m, true, strategy)
				one := mustMini(t, traintest.Ref(), d, o, m)
				traintest.SameRun(t, got.Results[0], one)
				if got.Results[0].Metric != one.Metric || o.Metric != "" && one.Metric != o.Metric {
					t.Errorf("judged by %s, of one worker by %s", got.Results[0].Metric, one.Metric)
				}
			})
		}
	}
}
