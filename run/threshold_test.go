package run

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"starling/dataset/generate"
	"starling/predict"
	"starling/serve"
	"starling/setup/setuptest"
)

// TestChosenThresholdIsUsed: the threshold that a run chose on its validation vertices is kept with it. predict and the
// server decide by it, so that what predict measures is what the run reported.
func TestChosenThresholdIsUsed(t *testing.T) {
	dir := setuptest.Block(t, func(p *generate.Params) { p.Classes, p.Signal = 2, 0.3 })
	s := setuptest.Quick(dir)
	s.Objective.Metric, s.Objective.Threshold, s.Output.Dir = "macro_f1", "best", filepath.Join(t.TempDir(), "run")
	r := trained(t, s, nil)
	run, err := serve.Open(s.Output.Dir)
	if err != nil || len(run.Config.Threshold) != 1 || run.Config.Threshold[0] == 0.5 ||
		r.Evaluation.Threshold[0] != run.Config.Threshold[0] {
		t.Fatalf("threshold %v, reported %v, %v", run.Config.Threshold, r.Evaluation.Threshold, err)
	}
	p, err := predict.Run(t.Context(), predict.Options{Run: s.Output.Dir, Dataset: dir, What: "labels",
		Out: filepath.Join(t.TempDir(), "labels.npy")})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := float64(p.Accuracy["test"]), r.Evaluation.Metrics["accuracy"]; math.Abs(got-want) > 1e-9 {
		t.Errorf("predict is right in %g of the test vertices, the run in %g", got, want)
	}
	positive, between := int32(run.Config.Positive), 0
	for v, c := range served300(t, s.Output.Dir, dir) {
		chance := float64(c.Probabilities[positive])
		if is := *c.Label == positive; is != (chance >= run.Config.Threshold[0]) {
			t.Errorf("vertex %d: class %d at %g, threshold %g", v, *c.Label, chance, run.Config.Threshold[0])
		}
		if (chance >= 0.5) != (chance >= run.Config.Threshold[0]) {
			between++
		}
	}
	if between == 0 {
		t.Error("no vertex is decided otherwise than by one half")
	}
}

// servedClass is what a server says of a vertex.
type servedClass struct {
	Label         *int32
	Probabilities []float32
}

// served300 asks a server about vertices 0 to 299.
func served300(t *testing.T, run, dir string) (out []servedClass) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	o := predict.DefaultServe()
	o.Run, o.Dataset, o.Listen = run, dir, "127.0.0.1:0"
	list := strings.Trim(strings.ReplaceAll(fmt.Sprint(upTo(300)), " ", ","), "[]")
	err := predict.Serve(ctx, o, func(addr string, _ int) {
		defer stop()
		r, err := http.Post("http://"+addr+"/predict", "application/json",
			strings.NewReader(`{"vertices":[`+list+`]}`))
		if err != nil {
			t.Error(err)
			return
		}
		defer r.Body.Close()
		b, _ := io.ReadAll(r.Body)
		var reply struct{ Predictions []servedClass }
		if err := json.Unmarshal(b, &reply); err != nil || len(reply.Predictions) != 300 {
			t.Errorf("%v in %.300s", err, b)
		}
		out = reply.Predictions
	})
	if err != nil || len(out) != 300 {
		t.Fatal(err)
	}
	return out
}

func upTo(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}
