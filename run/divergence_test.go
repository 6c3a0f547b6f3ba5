package run

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"starling/nn"
	"starling/spec"
)

// TestDivergenceInTheLastEpoch: the best finite weights are written, never those that are not,
// and the run fails. Weights grow by 1e12 in a step here, so four steps are one too many.
func TestDivergenceInTheLastEpoch(t *testing.T) {
	for _, workers := range []int{1, 2} {
		for every, want := range []string{"no weights were written", "best finite weights"} {
			s := quick(block(t, nil))
			s.Cluster.Workers, s.Cluster.InProcess, s.Training.Epochs, s.Training.EvalEvery, s.Model.Layers,
				s.Model.Dropout = workers, workers > 1, 4, every, 1, 0
			s.Optimizer.Name, s.Optimizer.LR, s.Optimizer.WeightDecay = "sgd", 1e6, 1e6
			s.Output.Dir = filepath.Join(t.TempDir(), "out")
			_, err := Train(context.Background(), s, nil)
			if err == nil || !strings.Contains(err.Error(), "diverged") || !strings.Contains(err.Error(), want) {
				t.Fatalf("%d workers, measured every %d: %v, want a divergence and %q", workers, every, err, want)
			}
			checkKept(t, s.Output.Dir, every > 0)
		}
	}
}

// checkKept looks for finite weights in a folder, or for no folder.
func checkKept(t *testing.T, dir string, kept bool) {
	t.Helper()
	if _, err := os.Stat(dir); !kept {
		if err == nil {
			t.Fatalf("%s was written", dir)
		}
		return
	}
	weights, _, err := nn.LoadSafetensors(filepath.Join(dir, spec.WeightsFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range weights {
		for _, x := range w.Data {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				t.Fatalf("%s has %g", w.Name, x)
			}
		}
	}
}
