package full

import (
	"fmt"
	"math"
	"testing"

	"starling/tensor"
	"starling/train"
	"starling/train/traintest"
	"starling/wire"
)

// TestRoundedRowsTrainAlike: with rows rounded for the wire, losses stay near those of
// whole rows, for every strategy that moves rows and every kind of layer; planned
// bytes are those counted.
func TestRoundedRowsTrainAlike(t *testing.T) {
	d := traintest.Communities(t, 200, false)
	parts := traintest.CutForServers(t, d, "random", 4, 2)
	for _, name := range train.Names() {
		if !has(name, "wire_dtype") {
			continue
		}
		for _, model := range []string{"gcn", "sage", "gat"} {
			o := traintest.Small(model)
			o.Epochs = 8
			rates := rated(name, o.Model.Layers)
			o.Strategy = traintest.Strategy(t, name, rates)
			whole := traintest.TrainParts(t, parts, traintest.Single, o)[0]
			for dtype, tol := range map[string]float64{"bf16": 0.01, "int8": 0.05} {
				o.Strategy = traintest.Strategy(t, name, "wire_dtype="+dtype, rates)
				device := traintest.Single
				if model == "gcn" {
					device = traintest.Ref
				}
				for _, r := range traintest.TrainParts(t, parts, device, o) {
					traintest.SameCurve(t, fmt.Sprintf("%s, %s, %s", name, model, dtype), r.Loss, whole.Loss, tol)
				}
			}
		}
	}
}

// TestRoundedRowsAreSmall: bf16 halves the rows of training passes, int8 takes a byte per
// number and four per row; measuring passes, features and bfloat16 rows stay.
func TestRoundedRowsAreSmall(t *testing.T) {
	parts := traintest.Cut(t, traintest.Communities(t, 200, false), "random", 3)
	bytes := func(dtype string, rows tensor.DType) (training, once, measured float64) {
		o := traintest.Small("sage")
		o.Rows, o.Strategy = rows, traintest.Strategy(t, "halo", "wire_dtype="+dtype)
		p := traintest.TrainParts(t, parts, traintest.Single, o)[0].Plan
		for s, b := range p.Epoch(0) {
			if traintest.IsRows(s) {
				training += float64(b)
			}
		}
		for s, b := range p.Measure {
			if s.Kind == wire.Activation {
				measured += float64(b)
			}
		}
		return training, float64(p.Once[wire.Class{Kind: wire.Feature, Layer: -1, Link: wire.SameProcess}]), measured
	}
	training, once, measured := bytes("none", tensor.F32)
	for _, c := range []struct {
		name  string
		rows  tensor.DType
		share float64
		whole float64
	}{
		{"bf16", tensor.F32, 0.5, 1},
		{"int8", tensor.F32, (4 + 4.) / (4 * 4), 1}, // classes are four
		{"bf16", tensor.BF16, 0.5, 0.5},
		{"int8", tensor.BF16, 0.5, 0.5}, // 8 bytes per row either way
	} {
		a, b, m := bytes(c.name, c.rows)
		if a/training != c.share || b/once != c.whole || m/measured != c.whole {
			t.Errorf("%s of %v: %g of the bytes in training, %g of the features, %g measuring; want %g, %g, %g", c.name,
				c.rows,
				a/training, b/once, m/measured, c.share, c.whole, c.whole)
		}
	}
}

// TestThinHalosKeepTheirResiduals: boundary sampling that happens to keep everything is
// halo, error-feedback residuals included.
func TestThinHalosKeepTheirResiduals(t *testing.T) {
	parts := traintest.Cut(t, traintest.Communities(t, 120, false), "random", 3)
	for _, model := range []string{"gcn", "gat"} {
		o := traintest.Small(model)
		o.Strategy = traintest.Strategy(t, "halo", "wire_dtype=int8")
		want := traintest.TrainParts(t, parts, traintest.Ref, o)[0]
		o.Strategy = traintest.Strategy(t, fmt.Sprintf("bns:%.17g", math.Nextafter(1, 0)), "wire_dtype=int8")
		traintest.SameCurve(t, model, traintest.TrainParts(t, parts, traintest.Ref, o)[0].Loss, want.Loss, 1e-9)
	}
}

// TestRoundedRowsOnCora: accuracy on the real graph stays within half a point.
func TestRoundedRowsOnCora(t *testing.T) {
	d := traintest.Cora(t)
	parts := traintest.Cut(t, d, "multilevel", 4)
	accuracy := func(dtype string) (mean float64) {
		const seeds = 2
		o := traintest.CoraOptions(d, "gcn")
		o.EvalEvery, o.Strategy = 4, traintest.Strategy(t, "halo", "wire_dtype="+dtype)
		for o.Seed = range uint64(seeds) {
			mean += traintest.TrainParts(t, parts, traintest.Single, o)[0].TestMetric / seeds
		}
		return mean
	}
	want := accuracy("none")
	for _, dtype := range []string{"bf16", "int8"} {
		got := accuracy(dtype)
		t.Logf("%s: test accuracy %.4f, whole rows %.4f", dtype, got, want)
		if math.Abs(got-want) > 0.005 {
			t.Errorf("%s: test accuracy %.4f on Cora, %.4f with whole rows", dtype, got, want)
		}
	}
}
