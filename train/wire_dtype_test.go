package train

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"starling/nn"
	"starling/tensor"
	"starling/wire"
)

// TestSmallRowsTrainAlike: with rows rounded for the wire, losses stay near those of
// whole rows, for every strategy that moves rows and every kind of layer; planned
// bytes are those counted.
func TestSmallRowsTrainAlike(t *testing.T) {
	d := communities(t, 200, false)
	parts := cutForServers(t, d, "random", 4, 2)
	for _, name := range Strategies() {
		for _, model := range []string{"gcn", "sage", "gat"} {
			o := small(model)
			o.Epochs = 12
			o.Strategy = DefaultChoice(name)
			whole := trainParts(t, parts, single, o)[0]
			for wireRows, tol := range map[string]float64{"bf16": 0.01, "int8": 0.05} {
				o.Strategy.WireRows = wireRows
				device := single
				if model == "gcn" {
					device = ref
				}
				for _, r := range trainParts(t, parts, device, o) {
					sameCurve(t, fmt.Sprintf("%s, %s, %s", name, model, wireRows), r.Loss, whole.Loss, tol)
				}
			}
		}
	}
}

// TestSmallRowsAreSmall: bf16 halves the rows of training passes, int8 takes a byte a
// number and four a row; measuring passes, features and bfloat16 rows stay.
func TestSmallRowsAreSmall(t *testing.T) {
	parts := cut(t, communities(t, 200, false), "random", 3)
	bytes := func(wireRows string, rows tensor.DType) (training, once, measured float64) {
		o := small("sage")
		o.Rows, o.Strategy = rows, DefaultChoice("halo")
		o.Strategy.WireRows = wireRows
		p := trainParts(t, parts, single, o)[0].Plan
		for s, b := range p.Epoch(0) {
			if s.Kind == wire.Activation || s.Kind == wire.Gradient {
				training += float64(b)
			}
		}
		for s, b := range p.Measure {
			if s.Kind == wire.Activation {
				measured += float64(b)
			}
		}
		return training, float64(p.Once[Sent{wire.Feature, -1, wire.SameProcess}]), measured
	}
	training, once, measured := bytes("", tensor.F32)
	for _, c := range []struct {
		name  string
		rows  tensor.DType
		share float64
		whole float64
	}{
		{"bf16", tensor.F32, 0.5, 1},
		{"int8", tensor.F32, (4 + 4.) / (4 * 4), 1}, // classes are four
		{"bf16", tensor.BF16, 0.5, 0.5},
		{"int8", tensor.BF16, 0.5, 0.5}, // 8 bytes a row either way
	} {
		a, b, m := bytes(c.name, c.rows)
		if a/training != c.share || b/once != c.whole || m/measured != c.whole {
			t.Errorf("%s of %v: %g of the bytes in training, %g of the features, %g measuring; want %g, %g, %g", c.name, c.rows,
				a/training, b/once, m/measured, c.share, c.whole, c.whole)
		}
	}
}

// TestThinBordersKeepTheirRests: boundary sampling that happens to keep everything is
// halo, rests included.
func TestThinBordersKeepTheirRests(t *testing.T) {
	parts := cut(t, communities(t, 120, false), "random", 3)
	for _, model := range []string{"gcn", "gat"} {
		o := small(model)
		o.Strategy = DefaultChoice("halo")
		o.Strategy.WireRows = "int8"
		want := trainParts(t, parts, ref, o)[0]
		o.Strategy.Name, o.Strategy.Keep = "bns", math.Nextafter(1, 0)
		sameCurve(t, model, trainParts(t, parts, ref, o)[0].Loss, want.Loss, 1e-9)
	}
}

// TestSmallRowsOnCora: accuracy on the real graph stays within half a point.
func TestSmallRowsOnCora(t *testing.T) {
	d := cora(t)
	parts := cut(t, d, "multilevel", 4)
	accuracy := func(c Choice) (mean float64) {
		const seeds = 2
		o := Options{Epochs: 200, EvalEvery: 4, Optim: nn.DefaultOptim(), RowNormalise: true, Strategy: c}
		o.Model = nn.Config{Model: "gcn", Layers: 2, Hidden: 16, Norm: "none", Dropout: 0.5, InputDropout: true, In: d.Features.Cols, Out: d.Labels.Classes}
		o.Optim.WeightDecay, o.Optim.DecayFirst = 5e-4, true
		for o.Seed = range uint64(seeds) {
			mean += trainParts(t, parts, single, o)[0].TestMetric / seeds
		}
		return mean
	}
	want := accuracy(DefaultChoice("halo"))
	for _, wireRows := range []string{"bf16", "int8"} {
		c := DefaultChoice("halo")
		c.WireRows = wireRows
		got := accuracy(c)
		t.Logf("%s: test accuracy %.4f, whole rows %.4f", wireRows, got, want)
		if math.Abs(got-want) > 0.005 {
			t.Errorf("%s: test accuracy %.4f on Cora, %.4f with whole rows", wireRows, got, want)
		}
	}
}

// elsewhere is a device whose matrices the host cannot see.
type elsewhere struct{ tensor.Device }

func (elsewhere) Bytes(tensor.Matrix) []byte { return nil }

// TestRowsOfAnotherMemory: rows that must be copied out of a device before they leave, and
// into it when they have come, train to the same bits, for every strategy and form of rows. What
// a clock decides to copy is added up in another order.
func TestRowsOfAnotherMemory(t *testing.T) {
	parts := cutForServers(t, communities(t, 200, false), "random", 4, 2)
	for _, strategy := range append(Strategies(), "bns:0.3:cached") {
		for _, form := range []string{"", "relay", "sparse relay"} {
			o := sparseOptions("gin", strategy)
			o.Epochs = 2
			o.Strategy.SparseRows = strings.Contains(form, "sparse")
			if o.Strategy.Relay = strings.Contains(form, "relay"); o.Strategy.Relay && !CouldRelay(o.Strategy) {
				continue
			}
			tol := 0.0
			if o.Strategy.Name == "granndis" || o.Strategy.Name == "neutronstar" {
				tol = 1e-6
			}
			want := trainParts(t, parts, single, o)
			got := trainParts(t, parts, func() tensor.Device { return elsewhere{single()} }, o)
			for k := range got {
				sameCurve(t, fmt.Sprintf("%s, %s rows, worker %d", strategy, form, k), got[k].Loss, want[k].Loss, tol)
			}
		}
	}
}
