package traintest

import (
	"context"
	"math"
	"testing"

	"starling/graph"
	"starling/nn"
	"starling/tensor"
	"starling/tensor/cpu"
	"starling/tensor/ref"
	"starling/train"
)

// Options are for a short run of a model on Communities.
func Options(model string) train.Options {
	o := train.Options{Epochs: 20, EvalEvery: 5, Seed: 3, Optim: nn.DefaultOptim(), CacheFirst: true}
	o.Model = nn.Config{Model: model, Layers: 2, Hidden: 16, Heads: 2, OutHeads: 1, Norm: "none", Aggregator: "mean",
		Dropout: 0.5, In: 12, Out: 4}
	if model == "resgcn+" || model == "ressage+" {
		o.Model.Norm, o.Model.Layers = "layer", 28
	}
	if nn.Attends(model) {
		o.Model.AttentionDropout = 0.3
	}
	return o
}

// Small is Options of six epochs; gcn with batch norm, deep models of three layers.
func Small(model string) train.Options {
	o := Options(model)
	o.Epochs, o.EvalEvery = 6, 3
	if o.Model.Layers > 2 {
		o.Model.Layers = 3
	}
	if model == "gcn" {
		o.Model.Norm = "batch"
	}
	return o
}

// ThreeLayers is Options of four epochs and three layers; gcn with batch norm, deep models
// of four layers.
func ThreeLayers(model string) train.Options {
	o := Options(model)
	o.Epochs, o.EvalEvery = 4, 2
	if o.Model.Layers = 3; o.Model.Norm == "layer" {
		o.Model.Layers = 4
	}
	if model == "gcn" {
		o.Model.Norm = "batch"
	}
	return o
}

// EdgeOptions are Options of a model that looks at features of edges.
func EdgeOptions(model string) train.Options {
	o := Options(model)
	o.Epochs, o.EvalEvery, o.Model.EdgeDim = 5, 2, EdgeDim
	return o
}

// TaskOptions are Options for a graph of WithTask.
func TaskOptions(d *graph.Dataset) train.Options {
	o := Options("sage")
	o.Model.Out, o.Model.Dropout, o.Epochs = d.Labels.Classes, 0.2, 30
	o.Model.StandardizeTargets = d.Labels.Kind() == graph.Regression
	return o
}

// CoraOptions are the published settings of a model on Cora.
func CoraOptions(d *graph.Dataset, model string) train.Options {
	o := train.Options{Epochs: 200, EvalEvery: 1, Optim: nn.DefaultOptim(), RowNormalize: true}
	o.Model = nn.Config{Model: model, Layers: 2, Hidden: 16, Heads: 8, OutHeads: 1, Norm: "none", Aggregator: "gcn",
		Dropout: 0.5, InputDropout: true, In: d.Features.Cols, Out: d.Labels.Classes}
	o.Optim.WeightDecay, o.Optim.DecayFirst = 5e-4, model == "gcn"
	if model == "gat" {
		o.Model.Hidden, o.Model.Dropout, o.Model.AttentionDropout, o.Optim.LR = 64, 0.6, 0.6, 0.005
	}
	return o
}

// FamilyModels are one of each kind of layer.
var FamilyModels = []string{"gcn", "sage", "gat", "gin", "ressage+"}

// Ref is the device of float64, and Single that of float32 on one thread.
func Ref() tensor.Device    { return ref.New() }
func Single() tensor.Device { return cpu.New(1) }

// CPU is a device of some threads, closed after the test.
func CPU(t testing.TB, threads int) tensor.Device {
	c := cpu.New(threads)
	t.Cleanup(c.Close)
	return c
}

// Numbers are the numbers of a matrix.
func Numbers(dev tensor.Device, m tensor.Matrix) []float64 {
	v := make([]float64, m.Rows*m.Cols)
	dev.Download(v, m)
	return v
}

// Full is train.Full, which must succeed.
func Full(t testing.TB, dev tensor.Device, d *graph.Dataset, o train.Options) *train.Result {
	t.Helper()
	r, err := train.Full(context.Background(), dev, d, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// SameCurve fails where two curves differ by more than a share of the wanted one.
func SameCurve(t testing.TB, what string, got, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d epochs, want %d", what, len(got), len(want))
	}
	for e := range want {
		if !(math.Abs(got[e]-want[e]) <= tol*math.Abs(want[e])) {
			t.Fatalf("%s: %.12g in epoch %d, want %.12g", what, got[e], e, want[e])
		}
	}
}

// LearnsTask: a run on a graph of WithTask has the task's metric, well above chance.
func LearnsTask(t testing.TB, kind, name string, r *train.Result) {
	t.Helper()
	want := map[string]string{graph.MultiLabel: "micro_f1", graph.Regression: "r2"}[kind]
	if r.Metric != want || !(r.TestMetric > 0.4) || r.Measures[want] != r.TestMetric {
		t.Errorf("%s, %s: %s is %.3f, measures %v", kind, name, r.Metric, r.TestMetric, r.Measures)
	}
}
