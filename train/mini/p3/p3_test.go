package p3

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"starling/graph"
	"starling/tensor"
	"starling/train"
	"starling/train/batch"
	"starling/train/traintest"
	"starling/wire"
)

func mustMini(t testing.TB, dev tensor.Device, d *graph.Dataset, o train.Options, m train.BatchSettings) *train.Result {
	t.Helper()
	return traintest.Ran(t)(batch.Run(context.Background(), dev, d, o, m, nil))
}

// TestP3IsOneWorker: features that are split by columns follow one worker's loss curve, for every
// model that can be split, kind of graph and features, number of workers (also more than
// columns), and way to divide a batch.
func TestP3IsOneWorker(t *testing.T) {
	for i, model := range []string{"gcn", "sage", "sage-gcn", "gin"} {
		for j, shape := range []string{"dense", "sparse", "loops", "weighted", "bf16"} {
			workers := []int{1, 2, 3, 5, 8}[(i+j)%5]
			t.Run(fmt.Sprintf("%s %s %d", model, shape, workers), func(t *testing.T) {
				d := traintest.Communities(t, 120, shape == "sparse")
				switch shape {
				case "loops", "weighted":
					d = traintest.WithLoops(t, d, shape == "weighted")
				case "bf16":
					d.Features = traintest.Rounded(d.Features)
					d.Meta.Features.Kind = d.Features.Kind()
				}
				name, aggregator, _ := strings.Cut(model, "-")
				o := traintest.Options(name)
				o.Epochs, o.Model.Layers, o.Model.Norm, o.RowNormalize = 3, 2, "none", j == 1
				if aggregator != "" {
					o.Model.Aggregator = aggregator
				}
				m := train.BatchSettings{Sampler: "neighbour", Size: 25, Fanouts: []int{3, 4}, Threads: 2,
					Replace: j == 1}
				one := mustMini(t, traintest.Ref(), d, o, m)
				parts := traintest.Cut(t, d, []string{"random", "fennel"}[i%2], workers)
				roots := []string{"owner", "random"}[(i+j/2)%2]
				traintest.SameRun(t, traintest.Batches(t, parts, o, m, j%2 == 0, "p3", "roots="+roots).Results[0], one)
			})
		}
	}
}

// TestP3Bytes: rows of features travel before training only, and an epoch sends about what was
// planned, of every kind.
func TestP3Bytes(t *testing.T) {
	d := traintest.Communities(t, 300, false)
	o := traintest.Options("sage")
	o.Epochs, o.Model.Layers, o.Model.Norm, o.EvalEvery = 10, 2, "none", 0
	m := train.BatchSettings{Sampler: "neighbour", Size: 20, Fanouts: []int{4, 4}, Threads: 2}
	r := traintest.Batches(t, traintest.Cut(t, d, "random", 3), o, m, true, "p3")
	for _, kind := range []wire.Kind{wire.Activation, wire.Gradient} {
		is := func(c wire.Class) bool { return c.Kind == kind && c.Layer == 0 }
		planned, deviation := int64(0), 0.0
		for _, w := range r.Results {
			for c, bytes := range w.Plan.Drawn {
				if is(c) {
					planned += bytes * int64(o.Epochs)
				}
			}
			for c, bytes := range w.Plan.Measure {
				if is(c) {
					planned += bytes
				}
			}
			for c, bytes := range w.Plan.OnceMeasured {
				if is(c) {
					planned += bytes
				}
			}
			deviation = max(deviation, w.Plan.Deviation)
		}
		sent := r.Sum(is)
		if off := math.Abs(float64(sent-planned)) / float64(planned); sent == 0 || off > 4*deviation {
			t.Errorf("%v: %d bytes, planned %d with a deviation of %.3f", kind, sent, planned, deviation)
		}
	}
}

// TestP3Refuses: models whose first layer is no sum of products with columns.
func TestP3Refuses(t *testing.T) {
	d := traintest.Communities(t, 60, false)
	parts := traintest.Cut(t, d, "random", 2)
	for _, change := range []func(o *train.Options){
		func(o *train.Options) { o.Model.Model = "gat" },
		func(o *train.Options) { o.Model.TrainEps = true },
	} {
		o := traintest.Options("gin")
		o.Model.Layers, o.Model.Norm = 2, "none"
		change(&o)
		o.Strategy = traintest.Strategy(t, "p3")
		o.Batches = &train.BatchSettings{Sampler: "neighbour", Size: 20, Fanouts: []int{4, 4}}
		ends := traintest.Ends(2)
		errs := make([]error, 2)
		traintest.Each(2, func(k int) { _, errs[k] = traintest.Work(parts[k], ends[k], traintest.Ref, o, nil) })
		traintest.Close(ends)
		if err := errors.Join(errs...); err == nil || !strings.Contains(err.Error(), "use gcn, sage or gin") {
			t.Errorf("%+v: %v", o.Model, err)
		}
	}
}
