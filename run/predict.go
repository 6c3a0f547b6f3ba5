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
	"starling/serve"
	"starling/tensor"
)

// PredictOptions say what to predict, and where to.
type PredictOptions struct {
	Run, Dataset string
	What         string // one of serve.Whats
	Out          string // an .npy or .parquet file; empty: WHAT.npy here
	Pairs        string // a file of them, for scores
	Threads      int
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
	// Accuracy is the metric of labels by split, where the dataset has any of the kind;
	// Metric is its name.
	Metric   string            `json:"metric,omitempty"`
	Accuracy map[string]Number `json:"accuracy,omitempty"`
	Seconds  float64           `json:"seconds"`
	RSS      int64             `json:"peak_rss_bytes"`
}

// PredictWhats are what can be predicted.
var PredictWhats = append(slices.Clone(serve.Whats), serve.Scores)

// Predict computes predictions for all vertices of a dataset and writes them. When ctx ends
// first, nothing is written.
func Predict(ctx context.Context, o PredictOptions) (*Predicted, error) {
	if err := o.settle(); err != nil {
		return nil, err
	}
	return untilInterrupted(ctx, o.Out, o.predict)
}

func (o PredictOptions) predict() (*Predicted, error) {
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
	dev := tensor.NewCPU(o.Threads)
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
	if err != nil {
		return err
	}
	r.Vertices, r.Width, r.IDs, r.Metric, r.Accuracy = p.Vertices, p.Width, idsFile(d), p.Metric, convert[float64, Number](p.Measured)
	if strings.HasSuffix(r.Out, ".parquet") {
		return p.WriteParquet(r.Out, d)
	}
	return p.WriteNPY(r.Out)
}

func (o *PredictOptions) settle() error {
	if err := checkThreads(o.Threads); err != nil {
		return err
	}
	if !slices.Contains(PredictWhats, o.What) {
		return mistake("--what", fmt.Sprintf("%q", o.What), "one of "+strings.Join(PredictWhats, ", "), Suggest(o.What, PredictWhats))
	}
	if o.What == serve.Scores {
		return o.settleScores()
	}
	if o.Pairs != "" {
		return mistake("--pairs", o.Pairs, "nothing without --what scores", "")
	}
	if o.Out == "" {
		o.Out = o.What + ".npy"
	}
	if ext := filepath.Ext(o.Out); ext != ".npy" && ext != ".parquet" {
		return mistake("--out", o.Out, "a file that ends in .npy or .parquet", "")
	}
	return CheckFile("--out", o.Out)
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
func (p *Predicted) JSON(path string, stdout io.Writer) error { return writeJSON(p, path, stdout) }

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
	if p.IDs != "" {
		fmt.Fprintf(&b, "row i is the vertex on line i of %s\n", p.IDs)
	}
	for _, split := range []string{"train", "val", "test"} {
		if a, ok := p.Accuracy[split]; ok {
			fmt.Fprintf(&b, "%-5s %s %.4f\n", split, p.Metric, a)
		}
	}
	return b.String()
}
