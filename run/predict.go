package run

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"starling/event"
	"starling/graph"
	"starling/partition"
	"starling/report"
	"starling/serve"
	"starling/spec"
	"starling/tensor"
)

// PredictOptions say what to predict, and where to.
type PredictOptions struct {
	Run, Dataset string
	What         string // one of serve.Whats
	Out          string // a .csv, .parquet or .npy file; empty: WHAT.npy here
	Pairs        string // a file of them, for scores
	Threads      int
	Device       string // cpu, cuda or cuda:N; empty: cpu
	Overwrite    bool   // replace an existing file
	// Of a partition: one worker per part, each a process unless InProcess is set.
	Workers   int
	InProcess bool
}

// Predicted tells what a prediction wrote.
type Predicted struct {
	Run      string `json:"run"`
	Dataset  string `json:"dataset"`
	Model    string `json:"model"`
	What     string `json:"what"`
	Out      string `json:"out"`
	Vertices int    `json:"vertices"`
	Pairs    int    `json:"pairs,omitempty"`
	Width    int    `json:"width"`
	// IDs is the file that names the vertex of each row, where it is not its number.
	IDs string `json:"ids,omitempty"`
	// Classes is the file that names the classes, beside an array of numbers.
	Classes string `json:"classes,omitempty"`
	// Workers computed it, one per part; 0: this process alone.
	Workers int `json:"workers,omitempty"`
	// Accuracy is the metric of labels by split, where the dataset has any of the kind;
	// Metric is its name.
	Metric   string                   `json:"metric,omitempty"`
	Accuracy map[string]report.Number `json:"accuracy,omitempty"`
	Seconds  float64                  `json:"seconds"`
	RSS      int64                    `json:"peak_rss_bytes"`
}

// PredictWhats are what can be predicted.
var PredictWhats = append(slices.Clone(serve.Whats), serve.Scores)

// Predict computes predictions for all vertices of a dataset and writes them. When ctx ends
// first, nothing is written.
func Predict(ctx context.Context, o PredictOptions) (*Predicted, error) {
	if err := o.settle(); err != nil {
		return nil, err
	}
	if partition.IsPartition(o.Dataset) {
		return untilInterrupted(ctx, o.Out, o.overParts)
	}
	if o.Workers > 1 {
		return nil, spec.Mistake("--workers", fmt.Sprint(o.Workers), "a partition of the dataset, with a part per worker",
			fmt.Sprintf("starling partition %s --parts %d --out PARTS", o.Dataset, o.Workers))
	}
	return untilInterrupted(ctx, o.Out, o.predict)
}

// onDevice is a spec with the device of a prediction.
func (o *PredictOptions) onDevice() spec.Spec {
	s := spec.Default()
	s.Machine.Threads = o.Threads
	if o.Device != "" {
		s.Machine.Device = o.Device
	}
	return s
}

func (o PredictOptions) predict() (_ *Predicted, err error) {
	defer deviceFailure(&err)
	start := time.Now()
	trained, err := serve.Open(o.Run)
	if err != nil {
		return nil, err
	}
	d, err := openForPrediction(o.Dataset)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	s := o.onDevice()
	dev, err := newDevice(&s, 0)
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	out := &Predicted{Run: o.Run, Dataset: d.Meta.Name, Model: trained.Config.Model.Model, What: o.What, Out: o.Out, Vertices: d.Graph.Nodes()}
	if o.What == serve.Scores {
		err = out.scores(trained, dev, d, o.Pairs)
	} else {
		err = out.vertices(trained, dev, d)
	}
	if err != nil {
		return nil, err
	}
	out.Seconds, out.RSS = time.Since(start).Seconds(), tensor.PeakRSS()
	return out, nil
}

// vertices predicts for all vertices and writes it.
func (r *Predicted) vertices(trained *serve.Trained, dev tensor.Device, d *graph.Dataset) error {
	p, err := trained.Predict(dev, d, r.What)
	if lost := graph.Shrunk(); lost != nil {
		err = lost
	}
	if err != nil {
		return err
	}
	return r.write(p, d)
}

// write writes predictions.
func (r *Predicted) write(p *serve.Predictions, d *graph.Dataset) error {
	r.Vertices, r.Width, r.IDs = p.Vertices, p.Width, idsFile(d)
	r.Metric, r.Accuracy = p.Metric, report.Convert[float64, report.Number](p.Measured)
	switch filepath.Ext(r.Out) {
	case ".parquet":
		return p.WriteParquet(r.Out, d)
	case ".csv":
		return p.WriteCSV(r.Out, d)
	}
	r.Classes = p.ClassesFile(r.Out)
	return p.WriteNPY(r.Out)
}

func (o *PredictOptions) settle() error {
	if err := spec.CheckThreads(o.Threads); err != nil {
		return err
	}
	if s := o.onDevice(); s.Machine.Device != "cpu" && !s.Machine.OnGPU() {
		return spec.Mistake("--device", s.Machine.Device, "cpu, cuda or cuda:N", "see starling devices")
	}
	if !slices.Contains(PredictWhats, o.What) {
		return spec.Mistake("--what", fmt.Sprintf("%q", o.What), "one of "+strings.Join(PredictWhats, ", "), Suggest(o.What, PredictWhats))
	}
	if o.What == serve.Scores {
		return o.completeScores()
	}
	if o.Pairs != "" {
		return spec.Mistake("--pairs", o.Pairs, "nothing without --what scores", "")
	}
	if o.Out == "" {
		o.Out = o.What + ".npy"
	}
	if ext := filepath.Ext(o.Out); ext != ".npy" && ext != ".parquet" && ext != ".csv" {
		return spec.Mistake("--out", o.Out, "a file that ends in .csv, .parquet or .npy", "")
	}
	return o.checkOut()
}

// checkOut makes sure that the file can be written, and replaces none without --overwrite.
func (o *PredictOptions) checkOut() error {
	if err := spec.CheckFile("--out", o.Out); err != nil {
		return err
	}
	return overwriteable(o.Out, "this file", o.Overwrite)
}

// openForPrediction maps a dataset, of which only the edges and features matter.
func openForPrediction(dir string) (*graph.Dataset, error) {
	if err := noPartition(dir); err != nil {
		return nil, err
	}
	d, err := graph.OpenWith(dir, graph.OpenOptions{CheckFeatures: true})
	if err != nil {
		return nil, err
	}
	if 4*d.Graph.Edges() > graph.SmallArray {
		if err := graph.InFile(dir, d.Graph.Validate()); err != nil {
			d.Close()
			return nil, err
		}
	}
	return d, nil
}

// idsFile is the dataset's own list of names, row by row.
func idsFile(d *graph.Dataset) string {
	for _, name := range []string{"ids.npy", "ids.txt"} {
		if _, ok := d.Meta.Arrays[name]; ok && d.HasIDs() {
			return filepath.Join(d.Dir, name)
		}
	}
	return ""
}

// JSON writes the summary as one object, to a file or with "-" to stdout.
func (p *Predicted) JSON(path string, stdout io.Writer) error {
	return report.WriteJSON(p, path, stdout)
}

// String is the summary for people.
func (p *Predicted) String() string {
	var b strings.Builder
	of := event.Counted(p.Vertices, "vertex")
	if p.Pairs > 0 {
		of = event.Counted(p.Pairs, "pair")
	}
	fmt.Fprintf(&b, "%s: %s of %s", p.Out, p.What, of)
	if p.Width > 1 {
		fmt.Fprintf(&b, ", %d numbers each", p.Width)
	}
	fmt.Fprintf(&b, ", in %.2f s\n", p.Seconds)
	if p.IDs != "" && strings.HasSuffix(p.Out, ".npy") {
		fmt.Fprintf(&b, "row i is the vertex on line i of %s\n", p.IDs)
	}
	if p.Classes != "" {
		fmt.Fprintf(&b, "class c is on line c of %s, from 0\n", p.Classes)
	}
	for _, split := range []string{"train", "val", "test"} {
		if a, ok := p.Accuracy[split]; ok {
			fmt.Fprintf(&b, "%-5s %s %.4f\n", split, p.Metric, a)
		}
	}
	return b.String()
}
