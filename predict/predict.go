package predict

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"starling/graph"
	"starling/partition"
	"starling/serve"
	"starling/setup"
	"starling/spec"
	"starling/tensor"
	"starling/train"
	"starling/train/batch"
)

// Whats are what can be predicted.
var Whats = append(slices.Clone(serve.Whats), serve.Scores)

// Run computes predictions for all vertices of a dataset and writes them. When ctx ends
// first, nothing is written.
func Run(ctx context.Context, o Options) (*Predicted, error) {
	if err := o.settle(); err != nil {
		return nil, err
	}
	if o.Shards {
		return setup.UntilInterrupted(ctx, o.Out, o.inShards)
	}
	if partition.IsPartition(o.Dataset) {
		return setup.UntilInterrupted(ctx, o.Out, o.overParts)
	}
	if o.Workers > 1 {
		return nil, spec.Mistake("--workers", fmt.Sprint(o.Workers), "a partition of the dataset, with a part per worker",
			fmt.Sprintf("starling partition %s --parts %d --out PARTS", o.Dataset, o.Workers))
	}
	if o.Graph != "" {
		return setup.UntilInterrupted(ctx, o.Out, o.predictAdded)
	}
	return setup.UntilInterrupted(ctx, o.Out, o.predict)
}

func (o Options) predict() (*Predicted, error) {
	start := time.Now()
	trained, err := o.open()
	if err != nil {
		return nil, err
	}
	dir, notes := o.Dataset, []string(nil)
	if isTable(dir) {
		var remove func()
		if dir, notes, remove, err = o.imported(trained); err != nil {
			return nil, err
		}
		defer remove()
	}
	d, err := openForPrediction(dir, trained)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	s := o.onDevice()
	dev, err := setup.NewDevice(&s, 0)
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	out := &Predicted{Run: o.Run, Dataset: d.Meta.Name, Model: trained.Config.Model.Model, What: o.What,
		Out: o.Out, Vertices: d.Graph.Nodes()}
	if o.What == serve.Scores {
		err = out.scores(trained, dev, d, &o)
	} else {
		err = out.vertices(trained, dev, d)
	}
	if err != nil {
		return nil, err
	}
	if out.Notes = notes; dir != o.Dataset {
		out.IDs = "" // rows have the order of the table
	}
	out.Seconds, out.RSS = time.Since(start).Seconds(), tensor.PeakRSS()
	return out, nil
}

// open reads the run.
func (o Options) open() (*serve.Trained, error) {
	t, err := serve.Open(o.Run)
	if err == nil {
		err = t.ForType(o.Type)
	}
	return t, err
}

// vertices predicts for all vertices and writes it.
func (r *Predicted) vertices(trained *serve.Trained, dev tensor.Device, d *graph.Dataset) error {
	p, err := predictions(trained, dev, d, r.What)
	if lost := graph.Shrunk(); lost != nil {
		err = lost
	}
	if err != nil {
		return err
	}
	r.Target = trained.OfType()
	return r.write(p, d)
}

// predictions are by the whole graph, or of a temporal model by what is from before each vertex's time.
func predictions(t *serve.Trained, dev tensor.Device, d *graph.Dataset, what string) (*serve.Predictions, error) {
	if t.Config.Temporal == nil {
		return t.Predict(dev, d, what)
	}
	if err := t.Suits(d, what); err != nil {
		return nil, err
	}
	features, err := t.Features(d)
	if err != nil {
		return nil, err
	}
	opt := train.Options{Model: t.Config.Model, Rows: t.Rows()}
	width, rows, err := batch.PredictAsOf(dev, d, features, opt, t.Weights, t.LeftOut(what), t.Config.Temporal)
	if err != nil {
		return nil, err
	}
	return t.FromRows(d, what, d.Graph.Nodes(), width, rows), nil
}

func (o *Options) settle() error {
	if err := errors.Join(spec.CheckThreads(o.Threads), checkTimeout(o.Timeout, o.Dataset), o.checkTables(),
		o.checkGraph()); err != nil {
		return err
	}
	if s := o.onDevice(); s.Machine.Device != "cpu" && !s.Machine.OnGPU() {
		return spec.Mistake("--device", s.Machine.Device, "cpu, cuda or cuda:N", "see starling devices")
	}
	if !slices.Contains(Whats, o.What) {
		return spec.Mistake("--what", fmt.Sprintf("%q", o.What), "one of "+strings.Join(Whats, ", "),
			train.Suggest(o.What, Whats))
	}
	if err := o.checkReport(); err != nil {
		return err
	}
	if o.What == serve.Scores {
		if o.Shards {
			return spec.Mistake("--shards", "it with --what scores", "what every vertex has", "leave it out")
		}
		return o.completeScores()
	}
	if o.Pairs != "" || o.Candidates != "" || o.Top != 0 || len(o.Vertices) > 0 || o.Known || o.Relation != "" {
		return spec.Mistake("--pairs, --candidates, --top, --vertex, --known, --relation", "one of them with --what "+o.What,
			"--what scores, which are of pairs", "")
	}
	if o.Out == "" {
		o.Out = o.What + ".npy"
	}
	if ext := filepath.Ext(o.Out); ext != ".npy" && ext != ".parquet" && ext != ".csv" {
		return spec.Mistake("--out", o.Out, "a file that ends in .csv, .parquet or .npy", "")
	}
	if err := o.checkShards(); err != nil || o.Shards {
		return err
	}
	return o.checkOut()
}

// knowsTarget refuses a graph that has types where the model has none, or not the type that it predicts.
func knowsTarget(d *graph.Dataset, t *serve.Trained) error {
	if t.Config.Model.Typed != nil && t.Config.Model.Decoder != "" {
		return nil // its target is a relation
	}
	if t.Config.Model.Typed == nil {
		return d.Untyped("a model of --model " + t.Config.Model.Model)
	}
	if !d.Typed() {
		return nil // which the model then refuses
	}
	if d.Meta.Schema.Type(t.Config.Target) < 0 {
		return &graph.InputError{File: d.Dir, Field: "schema", Found: "no type " + t.Config.Target,
			Want: "the type that the model predicts", Fix: "name the dataset that goes with the run"}
	}
	return nil
}

// openForPrediction maps a dataset, of which only the edges and features matter.
func openForPrediction(dir string, t *serve.Trained) (*graph.Dataset, error) {
	if err := setup.NoPartition(dir); err != nil {
		return nil, err
	}
	d, err := graph.OpenWith(dir, graph.OpenOptions{CheckFeatures: true})
	if err != nil {
		return nil, err
	}
	if err = knowsTarget(d, t); err == nil && d.Typed() && t.Config.Model.Typed != nil && t.Config.Model.Decoder == "" {
		d.SetTarget(d.Meta.Schema.Type(t.Config.Target))
	}
	if err == nil && 4*d.Graph.Edges() > graph.SmallArray {
		err = graph.InFile(dir, d.Graph.Validate())
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}
