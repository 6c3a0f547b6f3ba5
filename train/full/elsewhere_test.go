//go:build linux

package full

import (
	"fmt"
	"strings"
	"testing"

	"starling/tensor"
	"starling/tensor/devicetest/elsewhere"
	"starling/train"
	"starling/train/traintest"
)

// another makes devices whose memory the host cannot touch.
func another(t *testing.T) func() tensor.Device {
	return func() tensor.Device {
		d, err := elsewhere.New(1)
		if err != nil {
			t.Skip(err)
		}
		return d
	}
}

// TestElsewhere: training on a device whose memory the host cannot touch follows the CPU's
// curve to the bit, alone and on 4 workers: nothing looks into matrices, rows go through
// staging buffers, and results are waited for.
func TestElsewhere(t *testing.T) {
	another(t)().Close()
	for _, sparse := range []bool{false, true} {
		d := traintest.Communities(t, 120, sparse)
		parts := traintest.Cut(t, d, "random", 4)
		for _, model := range []string{"gcn", "sage", "sage-pool", "gat", "gatv2", "gin", "film"} {
			o := traintest.Small(model)
			label := fmt.Sprintf("%s, sparse features %v", model, sparse)
			want := traintest.Full(t, traintest.Single(), d, o)
			dev := another(t)()
			sameRun(t, label+", alone", traintest.Full(t, dev, d, o), want)
			dev.Close()
			want = traintest.TrainParts(t, parts, traintest.Single, o)[0]
			for _, r := range traintest.TrainParts(t, parts, another(t), o) {
				sameRun(t, label+", on 4 workers", r, want)
			}
		}
	}
}

// TestElsewhereRounded: rows that travel in fewer bytes are packed on the device.
func TestElsewhereRounded(t *testing.T) {
	another(t)().Close()
	parts := traintest.Cut(t, traintest.Communities(t, 120, false), "hash", 4)
	for _, dtype := range []string{"bf16", "int8"} {
		o := traintest.ThreeLayers("sage")
		o.Strategy = traintest.Strategy(t, "halo", "wire_dtype="+dtype)
		want := traintest.TrainParts(t, parts, traintest.Single, o)
		for i, r := range traintest.TrainParts(t, parts, another(t), o) {
			sameRun(t, dtype, r, want[i])
		}
	}
}

// TestRowsOfAnotherMemory: rows that must be copied out of a device before they leave, and
// into it when they have arrived, train to the same bits, for every strategy and form of
// rows. Where a clock decides what is recomputed, sums are made in another order.
func TestRowsOfAnotherMemory(t *testing.T) {
	another(t)().Close()
	parts := traintest.CutForServers(t, traintest.Communities(t, 200, false), "random", 4, 2)
	for _, strategy := range append(train.Names(), "bns:0.3:cached") {
		for _, form := range []string{"", "relay", "sparse relay"} {
			if strings.Contains(form, "relay") && !has(strategy, "relay") {
				continue
			}
			model := "gin"
			if strategy == "plexus" { // which does not take it
				model = "gcn"
			}
			o := sparseOptions(t, model, strategy, optionIf(strings.Contains(form, "sparse"), "sparse_rows"),
				optionIf(form != "", "relay"))
			o.Epochs = 2
			tol := 0.0
			if strategy == "granndis" || strategy == "neutronstar" {
				tol = 1e-6
			}
			want := traintest.TrainParts(t, parts, traintest.Single, o)
			got := traintest.TrainParts(t, parts, another(t), o)
			for k := range got {
				traintest.SameCurve(t, fmt.Sprintf("%s, %s rows, worker %d", strategy, form, k), got[k].Loss,
					want[k].Loss, tol)
			}
		}
	}
}

func sameRun(t *testing.T, what string, got, want *train.Result) {
	t.Helper()
	traintest.SameCurve(t, what, got.Loss, want.Loss, 0)
	traintest.SameCurve(t, what+", validation", got.Val, want.Val, 0)
}
