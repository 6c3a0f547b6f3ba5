package run

import (
	"context"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/predict"
	"starling/serve"
	"starling/setup/setuptest"
	"starling/spec"
	"starling/tensor/cpu"
)

// farTargets is a block model with two targets far from 0 and of other sizes.
func farTargets(t *testing.T) string {
	t.Helper()
	d, err := graph.Open(taskBlock(t, nn.TaskRegression))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	l := &graph.Labels{Classes: 2}
	for _, y := range d.Labels.Values {
		l.Values = append(l.Values, 10000+200*y, 3-y/100)
	}
	dir := filepath.Join(t.TempDir(), "far")
	if err := graph.Save(dir, &graph.Dataset{Meta: graph.Meta{Name: "far"}, Graph: d.Graph, Features: d.Features, Labels: l,
		Splits: d.Splits}, graph.WriterOptions{}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestFarTargetsAreLearnt with the default rate, and are not where they are not standardized; metrics, predictions,
// answers about new vertices and explanations are in the targets' own units.
func TestFarTargetsAreLearnt(t *testing.T) {
	dir := farTargets(t)
	s := setuptest.Quick(dir)
	s.Training.Epochs, s.Output.Dir = 60, filepath.Join(t.TempDir(), "run")
	s.Objective.StandardizeTargets = spec.Off
	if r := trained(t, s, nil); r.TestAccuracy > 0 {
		t.Errorf("targets as they are: R² is %v", r.TestAccuracy)
	}
	s.Objective.StandardizeTargets, s.Output.Overwrite = spec.ToggleAuto, true
	var notes []string
	r := trained(t, s, event.Func(func(e event.Event) {
		if n, ok := e.(event.Note); ok && strings.Contains(n.Text, "standardized for training") {
			notes = append(notes, n.Text)
		}
	}))
	if r.TestAccuracy < 0.5 || len(notes) != 1 || !strings.Contains(notes[0], "(mean 9") {
		t.Errorf("R² is %v; notes %q", r.TestAccuracy, notes)
	}
	d, err := graph.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	parts := filepath.Join(t.TempDir(), "parts")
	cut := spec.DefaultPartition()
	cut.Parts, cut.Out, cut.Method = 2, parts, "chunk"
	if _, err := Partition(context.Background(), dir, cut, event.All()); err != nil {
		t.Fatal(err)
	}
	model, err := serve.Open(s.Output.Dir)
	if err != nil {
		t.Fatal(err)
	}
	dev := cpu.New(1)
	defer dev.Close()
	all, err := model.Predict(dev, d, serve.Labels)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, v := range d.Splits.Test {
		for k := range 2 {
			apart := float64(all.Values[2*v+uint32(k)] - d.Labels.Values[2*v+uint32(k)])
			sum += apart * apart
		}
	}
	if mse := sum / float64(2*len(d.Splits.Test)); math.Abs(mse-float64(*r.MSE)) > 1e-3*mse {
		t.Errorf("predictions have a mean squared error of %g, the report has %g", mse, *r.MSE)
	}
	for _, data := range []string{dir, parts} {
		p, err := predict.Run(context.Background(), predict.Options{Run: s.Output.Dir, Dataset: data, What: "labels",
			Out: filepath.Join(t.TempDir(), "labels.npy"), InProcess: true})
		if err != nil || math.Abs(float64(p.Accuracy["test"]-r.TestAccuracy)) > 1e-5 {
			t.Errorf("%s: %v, %+v, want %v", data, err, p, r.TestAccuracy)
		}
	}
	answers, err := serve.NewAnswers(dev, model, d)
	if err != nil {
		t.Fatal(err)
	}
	row := make([]float32, d.Features.Cols)
	d.Features.CopyRow(row, 5)
	fresh := answers.PredictNew(row, d.Graph.Indices[d.Graph.Indptr[5]:d.Graph.Indptr[6]], nil)
	if known := answers.Predict(5); math.Abs(float64(known.Values[0]-10000)) > 1500 ||
		math.Abs(float64(fresh.Values[0]-10000)) > 1500 || math.Abs(float64(fresh.Values[1]-3)) > 0.2 {
		t.Errorf("vertex 5 is %v, a new one like it %v", known.Values, fresh.Values)
	}
	why := predict.DefaultExplain()
	x, err := model.Explain(d, 5, why.ExplainOptions)
	if err != nil || math.Abs(x.Values[0]-float64(all.Values[10])) > 0.01 {
		t.Errorf("%v: %+v, predicted %v", err, x, all.Values[10:12])
	}
}

// TestTargetScaleGoesWithWeights: --init-from keeps the scale of the run that it starts from, and weights that learnt
// other targets are refused.
func TestTargetScaleGoesWithWeights(t *testing.T) {
	dir := taskBlock(t, nn.TaskRegression)
	s := setuptest.Quick(dir)
	s.Training.Epochs, s.Output.Dir = 2, filepath.Join(t.TempDir(), "run")
	trained(t, s, nil)
	d, err := graph.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	l := &graph.Labels{Classes: 1}
	for _, y := range d.Labels.Values {
		l.Values = append(l.Values, 50+3*y)
	}
	other := filepath.Join(t.TempDir(), "other")
	if err := graph.Save(other, &graph.Dataset{Meta: graph.Meta{Name: "other"}, Graph: d.Graph, Features: d.Features,
		Labels: l, Splits: d.Splits}, graph.WriterOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, workers := range []int{1, 2} {
		next := setuptest.Quick(other)
		next.Training.InitFrom, next.Training.Epochs = s.Output.Dir, 3
		next.Cluster.Workers, next.Cluster.InProcess, next.Strategy = workers, workers > 1, "default"
		next.Output.Dir = filepath.Join(t.TempDir(), "next")
		trained(t, next, nil)
		if got, want := scaleIn(t, next.Output.Dir), scaleIn(t, s.Output.Dir); !got.Equal(want) {
			t.Errorf("%d workers: the scale became %v, was %v", workers, got, want)
		}
	}
	next := setuptest.Quick(other)
	next.Training.InitFrom, next.Objective.StandardizeTargets = s.Output.Dir, spec.Off
	if _, err := Train(context.Background(), next, nil); !setuptest.IsMistake(err, "standardize_targets") {
		t.Error(err)
	}
	classes := setuptest.Quick(setuptest.Block(t, nil))
	classes.Objective.StandardizeTargets = spec.On
	if _, err := Train(context.Background(), classes, nil); !setuptest.IsMistake(err, "--standardize-targets") {
		t.Error(err)
	}
}

// scaleIn is the target scale of a run's folder.
func scaleIn(t *testing.T, dir string) *graph.Scale {
	t.Helper()
	model, err := serve.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	dev := cpu.New(1)
	defer dev.Close()
	m, err := model.Model(dev)
	if err != nil {
		t.Fatal(err)
	}
	return m.TargetScale(dev)
}
