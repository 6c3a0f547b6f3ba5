package train

import (
	"os"
	"path/filepath"
	"testing"

	"starling/dataset"
	"starling/graph"
	"starling/nn"
)

// cora is the real graph; a test without it is skipped.
func cora(t *testing.T) *graph.Dataset {
	t.Helper()
	dir := os.Getenv("STARLING_DATA")
	if dir == "" {
		dir = "../../shared/data"
	}
	if _, err := os.Stat(filepath.Join(dir, "planetoid")); err != nil {
		t.Skipf("no real data: %v; set STARLING_DATA to a folder with planetoid/ind.cora.*", err)
	}
	out := filepath.Join(t.TempDir(), "cora")
	if _, err := dataset.Import("planetoid", filepath.Join(dir, "planetoid"), dataset.ImportOptions{Name: "cora"}, out); err != nil {
		t.Fatal(err)
	}
	d, err := graph.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// TestCora trains on the real graph with the published settings. The full figure,
// ten seeds each, is scripts/accuracy's; two seeds catch what breaks.
func TestCora(t *testing.T) {
	d := cora(t)
	for _, model := range []string{"gcn", "sage", "gat"} {
		o := Options{Epochs: 200, EvalEvery: 1, Optim: nn.DefaultOptim(), RowNormalise: true}
		o.Model = nn.Config{Model: model, Layers: 2, Hidden: 16, Heads: 8, OutHeads: 1, Norm: "none", Aggregator: "gcn",
			Dropout: 0.5, InputDropout: true, In: d.Features.Cols, Out: d.Labels.Classes}
		o.Optim.WeightDecay, o.Optim.DecayFirst = 5e-4, model == "gcn"
		if model == "gat" {
			o.Model.Hidden, o.Model.Dropout, o.Model.AttentionDropout, o.Optim.LR = 64, 0.6, 0.6, 0.005
		}
		mean := 0.0
		for o.Seed = range uint64(2) {
			mean += mustTrain(t, cpu(t, 2), d, o).TestMetric / 2
		}
		t.Logf("%s: test accuracy %.4f", model, mean)
		if mean < 0.80 {
			t.Errorf("%s: test accuracy %.4f on Cora, want at least 0.80", model, mean)
		}
	}
}
