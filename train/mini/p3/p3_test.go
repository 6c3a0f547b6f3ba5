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

// TestTransformedFirst: layers that transform rows before they look at them together, attention, FiLM, pooling and the
// encoder of residual blocks, follow one worker's loss curve too, with dropout of the input and with workers whose
// batches are empty.
func TestTransformedFirst(t *testing.T) {
	for i, model := range []string{"gat", "gatv2", "film", "sage-pool", "resgcn+", "ressage+"} {
		for j, shape := range []string{"dense", "sparse", "loops"} {
			workers := []int{2, 3, 8, 5, 1}[(i+j)%5]
			t.Run(fmt.Sprintf("%s %s %d", model, shape, workers), func(t *testing.T) {
				t.Parallel()
				d := traintest.Communities(t, 120, shape == "sparse")
				if shape == "loops" {
					d = traintest.WithLoops(t, d, false)
				}
				o := traintest.Options(model)
				o.Epochs, o.Model.Layers, o.Model.Norm = 3, 2, "none"
				if strings.HasPrefix(model, "res") {
					o.Model.Norm = "layer"
				}
				o.Model.InputDropout = j == 2
				m := train.BatchSettings{Sampler: "neighbour", Size: []int{25, 4}[j%2], Fanouts: []int{3, 4},
					Threads: 2}
				if j == 2 {
					m.Sampler, m.Fanouts = "ladies", []int{20, 30}
				}
				one := mustMini(t, traintest.Ref(), d, o, m)
				parts := traintest.Cut(t, d, []string{"random", "fennel"}[i%2], workers)
				roots := []string{"owner", "random"}[(i+j/2)%2]
				traintest.SameRun(t, traintest.Batches(t, parts, o, m, j%2 == 0, "p3", "roots="+roots).Results[0], one)
			})
		}
	}
}

// TestAttentionOverEdgeFeatures: features of edges stay with the batch's worker.
func TestAttentionOverEdgeFeatures(t *testing.T) {
	d := traintest.WithEdgeFeatures(traintest.Communities(t, 120, false))
	for _, model := range []string{"gat", "gatv2"} {
		o := traintest.EdgeOptions(model)
		o.Epochs, o.Model.Layers, o.Model.Norm = 3, 2, "none"
		m := train.BatchSettings{Sampler: "neighbour", Size: 25, Fanouts: []int{3, 4}, Threads: 2}
		one := mustMini(t, traintest.Ref(), d, o, m)
		traintest.SameRun(t, traintest.Batches(t, traintest.Cut(t, d, "random", 3), o, m, true, "p3").Results[0], one)
	}
}

// TestFirstWeightsStayOut: the gradients of the first layer's weights are not all-reduced: per step parameters travel
// as much as those of a model without them, and per epoch their rows once.
func TestFirstWeightsStayOut(t *testing.T) {
	d := traintest.Communities(t, 200, false)
	parts := traintest.Cut(t, d, "random", 2)
	o := traintest.Options("sage")
	o.Epochs, o.Model.Layers, o.Model.Norm, o.EvalEvery = 3, 2, "none", 0
	m := train.BatchSettings{Sampler: "neighbour", Size: 10, Fanouts: []int{3, 3}, Threads: 1}
	sent := func(strategy string, layer int16) int64 {
		return traintest.Batches(t, parts, o, m, true, strategy).Sum(func(c wire.Class) bool {
			return c.Kind == wire.Parameter && c.Layer == layer
		})
	}
	steps := int64(o.Epochs) * int64((len(d.Splits.Train)+m.Size-1)/m.Size)
	first := int64(8 * 2 * d.Features.Cols * o.Model.Hidden) // bytes of W and R
	all, without, rows := sent("distdgl", -1), sent("p3", -1), sent("p3", 0)
	if all-without != 2*first*steps || rows != first*int64(o.Epochs) {
		t.Errorf("parameters are %d bytes of distdgl, %d of p3 and %d of first layers; %d steps, of %d bytes", all,
			without, rows, steps, first)
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
	d := traintest.WithEdgeFeatures(traintest.Communities(t, 60, false))
	parts := traintest.Cut(t, d, "random", 2)
	for _, change := range []func(o *train.Options){
		func(o *train.Options) { o.Model.TrainEps = true },
		func(o *train.Options) { o.Model.EdgeDim = traintest.EdgeDim },
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
		if err := errors.Join(errs...); err == nil || !strings.Contains(err.Error(), "whole rows") {
			t.Errorf("%+v: %v", o.Model, err)
		}
	}
}
