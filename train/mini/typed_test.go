package mini

import (
	"context"
	"fmt"
	"testing"

	"starling/graph"
	"starling/nn"
	"starling/sample"
	"starling/train"
	"starling/train/batch"
	"starling/train/traintest"
)

// typedBatches are sampled by relation, one of which has fanouts of its own.
func typedBatches(d *graph.Dataset) train.BatchSettings {
	own := make([]int, len(d.Meta.Schema.Relations))
	own[0], own[1] = sample.All, 1
	return train.BatchSettings{Sampler: "neighbour", Size: 16, Fanouts: []int{3, 2}, RelationFanouts: [][]int{own},
		Threads: 1}
}

// TestTypedBatchesAreExact: typed models on several workers follow one worker's loss, whatever the strategy, and send
// what was planned.
func TestTypedBatchesAreExact(t *testing.T) {
	d := traintest.Featured(traintest.Typed(t, 40))
	settings := typedBatches(d)
	for m, model := range nn.TypedModels {
		o := traintest.TypedOptions(d, model)
		o.Epochs, o.EvalEvery = 2, 2
		want := traintest.Ran(t)(batch.Run(context.Background(), traintest.Ref(), d, o, settings, nil))
		for w, workers := range []int{1, 2, 3, 5} {
			parts := traintest.CutForServers(t, d, []string{"random", "hash"}[workers%2], workers, workers)
			for i, c := range typedStrategies {
				if (m+w+i)%len(nn.TypedModels) > 0 {
					continue // every strategy has every number of workers, and every model
				}
				label := fmt.Sprintf("%s with %v on %d workers", model, c, workers)
				for _, r := range traintest.Batches(t, parts, o, settings, true, c[0], c[1:]...).Results {
					traintest.SameCurve(t, label, r.Loss, want.Loss, 1e-12)
					traintest.SameCurve(t, label+", validation", r.Val, want.Val, 1e-12)
				}
			}
		}
	}
}

var typedStrategies = [][]string{{"distdgl", "roots=random"}, {"salient"}, {"distdgl", "cache=s3fifo"}, {"bytegnn"},
	{"hopgnn"}, {"hopgnn", "pre_gather=false"}, {"cobatch"}}
