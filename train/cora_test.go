package train_test

import (
	"testing"

	"starling/train/traintest"
)

// TestCora trains on the real graph with the published settings. The full figure,
// ten seeds each, is scripts/accuracy's; two seeds catch what breaks.
func TestCora(t *testing.T) {
	d := traintest.Cora(t)
	for _, model := range []string{"gcn", "sage", "gat"} {
		o := traintest.CoraOptions(d, model)
		mean := 0.0
		for o.Seed = range uint64(2) {
			mean += traintest.Full(t, traintest.CPU(t, 2), d, o).TestMetric / 2
		}
		t.Logf("%s: test accuracy %.4f", model, mean)
		if mean < 0.80 {
			t.Errorf("%s: test accuracy %.4f on Cora, want at least 0.80", model, mean)
		}
	}
}
