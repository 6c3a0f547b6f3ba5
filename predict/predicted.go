package predict

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"starling/event"
	"starling/graph"
	"starling/report"
	"starling/serve"
	"starling/train"
)

// Predicted tells what a prediction wrote.
type Predicted struct {
	Run      string `json:"run"`
	Dataset  string `json:"dataset"`
	Model    string `json:"model"`
	What     string `json:"what"`
	Out      string `json:"out"`
	Vertices int    `json:"vertices"`
	Target   string `json:"target,omitempty"` // of a typed graph: the type that the vertices are of
	Pairs    int    `json:"pairs,omitempty"`
	Width    int    `json:"width"`
	// IDs is the file that names the vertex of each row, where it is not its number.
	IDs string `json:"ids,omitempty"`
	// Classes is the file that names the classes, beside an array of numbers.
	Classes string `json:"classes,omitempty"`
	// Workers computed it, one per part; 0: this process alone.
	Workers int `json:"workers,omitempty"`
	// Shards is how many files Out stands for, {K} in its name being the part; 0: Out is one file.
	Shards int `json:"shards,omitempty"`
	// Accuracy is the metric of labels by split, where the dataset has any of the kind;
	// Metric is its name.
	Metric   string                   `json:"metric,omitempty"`
	Accuracy map[string]report.Number `json:"accuracy,omitempty"`
	Notes    []string                 `json:"notes,omitempty"` // of tables that were read
	Seconds  float64                  `json:"seconds"`
	RSS      int64                    `json:"peak_rss_bytes"`
	// Evaluation is the report by class, where the dataset has labels of the kind.
	Evaluation *train.Evaluation `json:"evaluation,omitempty"`
	// Ranked is what was measured on candidates.
	Ranked *Ranked `json:"ranked,omitempty"`
}

// write writes predictions.
func (r *Predicted) write(p *serve.Predictions, d *graph.Dataset) error {
	if d.Typed() {
		d = d.OfType(d.Meta.Schema.Type(r.Target))
	}
	r.Vertices, r.Width, r.IDs = p.Vertices, p.Width, idsFile(d)
	r.Evaluation = p.Evaluation
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

// idsFile is the dataset's own list of names, row by row.
func idsFile(d *graph.Dataset) string {
	if name := d.IDFile(); name != "" {
		return filepath.Join(d.Dir, name)
	}
	return ""
}

// WriteReport writes the report by class to a file, or to stdout.
func (p *Predicted) WriteReport(path string, stdout io.Writer) error {
	if path == "" {
		return nil
	}
	title := fmt.Sprintf("%s of %s on %s", p.Model, p.Run, p.Dataset)
	return report.WriteEvaluation(p.Evaluation, title, path, stdout)
}

// Reported says what is in the file of a report; "": there is none.
func (p *Predicted) Reported(path string) string {
	if path == "" || path == "-" || p.Evaluation == nil {
		return ""
	}
	text := fmt.Sprintf("%s: report by class of %s with labels", path, event.Counted(p.Evaluation.Vertices, "vertex"))
	if x, ok := p.Evaluation.Metrics["average_precision"]; ok {
		text += fmt.Sprintf(", average precision %.4f", x)
	}
	return text + "\n"
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
	if p.Target != "" {
		of += " of type " + p.Target
	}
	what := p.What
	if p.Ranked != nil {
		what = "ranks"
	}
	fmt.Fprintf(&b, "%s: %s of %s", p.Out, what, of)
	if p.Width > 1 {
		fmt.Fprintf(&b, ", %d numbers each", p.Width)
	}
	fmt.Fprintf(&b, ", in %.2f s\n", p.Seconds)
	if p.IDs != "" && strings.HasSuffix(p.Out, ".npy") {
		fmt.Fprintf(&b, "row i is the vertex on line i of %s\n", p.IDs)
	}
	if p.Shards > 0 {
		fmt.Fprintf(&b, "K is 0 to %d; row i is the vertex whose number is element i of %s.ids.npy\n", p.Shards-1,
			strings.TrimSuffix(p.Out, ".npy"))
	}
	if p.Classes != "" {
		fmt.Fprintf(&b, "class c is on line c of %s, from 0\n", p.Classes)
	}
	for _, note := range p.Notes {
		fmt.Fprintf(&b, "  note: %s\n", note)
	}
	if p.Ranked != nil {
		b.WriteString(p.Ranked.String())
	}
	for _, split := range []string{"train", "val", "test"} {
		if a, ok := p.Accuracy[split]; ok {
			fmt.Fprintf(&b, "%-5s %s %.4f\n", split, p.Metric, a)
		}
	}
	return b.String()
}
