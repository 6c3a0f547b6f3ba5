package naivehop

import (
	"context"
	"errors"
	"fmt"
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

// TestNaiveHopIsModelCentric: partial sums that travel follow the curve of one worker, which is the curve of
// distdgl with the same global batch, and no row of features is pulled.
func TestNaiveHopIsModelCentric(t *testing.T) {
	for i, model := range []string{"gcn", "sage", "sage-gcn", "gin"} {
		for j, shape := range []string{"dense", "sparse", "loops", "weighted"} {
			workers := []int{1, 2, 3, 4}[(i+j)%4]
			t.Run(fmt.Sprintf("%s %s %d", model, shape, workers), func(t *testing.T) {
				t.Parallel()
				d := traintest.Communities(t, 120, shape == "sparse")
				if shape == "loops" || shape == "weighted" {
					d = traintest.WithLoops(t, d, shape == "weighted")
				}
				name, aggregator, _ := strings.Cut(model, "-")
				o := traintest.Options(name)
				o.Epochs, o.Model.Layers, o.RowNormalize = 3, 2, j == 1
				o.Model.InputDropout = (i+j)%2 == 0
				if aggregator != "" {
					o.Model.Aggregator = aggregator
				}
				m := train.BatchSettings{Sampler: "neighbour", Size: 30, Fanouts: []int{3, 4}, Threads: 2}
				parts := traintest.Cut(t, d, "fennel", workers)
				got := traintest.Batches(t, parts, o, m, true, "naive-hop")
				traintest.SameRun(t, got.Results[0], mustMini(t, traintest.Ref(), d, o, m))
				centric := traintest.Batches(t, parts, o, m, true, "distdgl", "roots=random")
				traintest.SameRun(t, got.Results[0], centric.Results[0])
				sums := got.Sum(func(c wire.Class) bool { return c.Kind == wire.Activation && c.Layer < 0 })
				if (sums > 0) != (workers > 1) {
					t.Errorf("%d workers: %d bytes of partial sums", workers, sums)
				}
			})
		}
	}
}

// TestNaiveHopRefuses: first layers that are no sum of features.
func TestNaiveHopRefuses(t *testing.T) {
	parts := traintest.Cut(t, traintest.Communities(t, 60, false), "random", 2)
	for _, change := range []func(o *train.Options){
		func(o *train.Options) { o.Model.Model = "gat" },
		func(o *train.Options) { o.Model.TrainEps = true },
	} {
		o := traintest.Options("gin")
		change(&o)
		o.Strategy = traintest.Strategy(t, "naive-hop")
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
