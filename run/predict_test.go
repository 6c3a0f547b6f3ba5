package run

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"starling/graph"
	"starling/spec"
)

// TestPredictAfterTraining: a model's accuracy is the same after it was written and
// read, it can be served and exported, and mistakes are named.
func TestPredictAfterTraining(t *testing.T) {
	dir := block(t, nil)
	s := quick(dir)
	s.Output.Dir = filepath.Join(t.TempDir(), "run")
	report := trained(t, s, nil)
	out := filepath.Join(t.TempDir(), "labels.npy")
	p, err := Predict(context.Background(), PredictOptions{Run: s.Output.Dir, Dataset: dir, What: "labels", Out: out})
	if err != nil {
		t.Fatal(err)
	}
	if p.Vertices != 300 || math.Abs(float64(p.Accuracy["test"]-report.TestAccuracy)) > 1e-9 {
		t.Errorf("%+v, trained to %v", p, report.TestAccuracy)
	}
	served(t, s.Output.Dir, dir)
	for _, o := range []PredictOptions{
		{Run: s.Output.Dir, Dataset: dir, What: "label", Out: out},
		{Run: s.Output.Dir, Dataset: dir, What: "labels", Out: "labels.txt"},
		{Run: dir, Dataset: dir, What: "labels", Out: out},
		{Run: s.Output.Dir, Dataset: s.Output.Dir, What: "labels", Out: out},
	} {
		if _, err := Predict(context.Background(), o); !errors.Is(err, graph.ErrInput) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := Export(s.Output.Dir, "pyg", s.Output.Dir, false); !errors.Is(err, graph.ErrInput) {
		t.Errorf("an export in the place of the run: %v", err)
	}
	to := filepath.Join(t.TempDir(), "export")
	for range 2 { // the second takes the place of the first
		if _, err := Export(s.Output.Dir, "dgl", to, true); err != nil {
			t.Error(err)
		}
	}
	os.WriteFile(filepath.Join(to, "load.py"), nil, 0o644)
	if _, err := Export(s.Output.Dir, "dgl", to, true); !errors.Is(err, graph.ErrInput) ||
		!strings.Contains(err.Error(), "load.py") {
		t.Errorf("an export that replaces a folder with a user's script in it: %v", err)
	}
	weights := filepath.Join(s.Output.Dir, spec.WeightsFile)
	b, err := os.ReadFile(weights)
	if err != nil {
		t.Fatal(err)
	}
	b[len(b)-1] ^= 1
	if err := os.WriteFile(weights, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Predict(context.Background(), PredictOptions{Run: s.Output.Dir, Dataset: dir, What: "labels",
		Out: out}); !errors.Is(err, graph.ErrInput) {
		t.Errorf("damaged weights: %v", err)
	}
}

// served asks a server and ends it.
func served(t *testing.T, run, dir string) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	o := DefaultServe()
	o.Run, o.Dataset, o.Listen = run, dir, "127.0.0.1:0"
	err := Serve(ctx, o, func(addr string, _ int) {
		defer stop()
		r, err := http.Post("http://"+addr+"/predict", "application/json", strings.NewReader(`{"vertices":[7]}`))
		if err != nil {
			t.Error(err)
			return
		}
		defer r.Body.Close()
		if b, _ := io.ReadAll(r.Body); r.StatusCode != http.StatusOK || !strings.Contains(string(b), `"vertex":7,"label":`) {
			t.Error(r.Status, string(b))
		}
	})
	if err != nil {
		t.Error(err)
	}
	o.Listen = "0.0.0.0:0"
	if err := Serve(ctx, o, nil); !errors.Is(err, graph.ErrInput) {
		t.Errorf("listens to all without a secret: %v", err)
	}
}
