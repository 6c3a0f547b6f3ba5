package serve

import (
	"math"

	"starling/graph"
	"starling/nn"
	"starling/tensor"
)

// What a prediction is of.
const (
	Labels        = "labels"        // the likeliest class; of several labels a 0 or 1 a class
	Probabilities = "probabilities" // of each class: softmax, or of several labels a sigmoid each
	Embeddings    = "embeddings"    // the input of the last layer
)

// Whats are all of them.
var Whats = []string{Labels, Probabilities, Embeddings}

// Predictions are of all vertices of a dataset: row v is vertex v.
type Predictions struct {
	What     string
	Vertices int
	Width    int // numbers a row; 1 for single labels

	Class  []int32   // Labels
	Marks  []uint8   // Labels, where a vertex has several
	Values []float32 // Probabilities, Embeddings
	// Correct compares labels with the dataset's: of the vertices of each split that
	// are labelled, which part is right (of several labels, of all marks).
	Correct map[string]float64
}

// Predict runs the model over the whole graph.
func (t *Trained) Predict(dev tensor.Device, d *graph.Dataset, what string) (*Predictions, error) {
	if err := t.suits(d); err != nil {
		return nil, err
	}
	last := func(m *nn.Model, stage int) bool { return what == Embeddings && stage == m.Stages()-1 }
	if what == Embeddings && t.Config.Model.Layers < 2 && t.stages() < 2 {
		return nil, &graph.InputError{File: t.Dir, Found: "a model of one layer", Want: "two or more, for embeddings", Fix: "the input of its only layer is the features themselves"}
	}
	out, err := t.forward(dev, d, t.features(d), last)
	if err != nil {
		return nil, err
	}
	p := &Predictions{What: what, Vertices: d.Graph.Nodes()}
	multi := t.task(d) == nn.TaskMultiLabel
	switch what {
	case Embeddings:
		e := out.inputs[len(out.inputs)-1]
		p.Width, p.Values = e.width, e.data
	case Probabilities:
		probabilities(out.logits, multi)
		p.Width, p.Values = out.logits.width, out.logits.data
	default:
		p.label(out.logits, multi)
		p.compare(d)
	}
	return p, nil
}

// stages is how many the model has.
func (t *Trained) stages() int {
	dev := tensor.NewCPU(1)
	defer dev.Close()
	return nn.New(dev, t.Config.Model, 0).Stages()
}

func (p *Predictions) label(logits rows, multi bool) {
	p.Width = 1
	if !multi {
		p.Class = make([]int32, p.Vertices)
		graph.Parallel(int64(p.Vertices), 1<<12, func(lo, hi int64) {
			for v := lo; v < hi; v++ {
				p.Class[v] = largest(logits.of(uint32(v)))
			}
		})
		return
	}
	p.Width, p.Marks = logits.width, make([]uint8, len(logits.data))
	for i, x := range logits.data {
		if x > 0 {
			p.Marks[i] = 1
		}
	}
}

// largest is the first place of the largest number.
func largest(row []float32) int32 {
	best := 0
	for i, x := range row {
		if x > row[best] {
			best = i
		}
	}
	return int32(best)
}

// probabilities turns logits into them, in place.
func probabilities(logits rows, multi bool) {
	n := 0
	if logits.width > 0 {
		n = len(logits.data) / logits.width
	}
	graph.Parallel(int64(n), 1<<12, func(lo, hi int64) {
		for v := lo; v < hi; v++ {
			probability(logits.of(uint32(v)), multi)
		}
	})
}

// probability does so to one row.
func probability(row []float32, multi bool) {
	if multi {
		for i, x := range row {
			row[i] = float32(1 / (1 + math.Exp(-float64(x))))
		}
		return
	}
	most := row[largest(row)]
	sum := 0.0
	for _, x := range row {
		sum += math.Exp(float64(x - most))
	}
	for i, x := range row {
		row[i] = float32(math.Exp(float64(x-most)) / sum)
	}
}

// compare fills Correct, where the dataset has labels of the same width.
func (p *Predictions) compare(d *graph.Dataset) {
	p.Correct = map[string]float64{}
	if d.Labels == nil || (d.Labels.Multi != nil) != (p.Marks != nil) || p.Marks != nil && d.Labels.Classes != p.Width {
		return
	}
	for name, ids := range map[string][]uint32{"train": d.Splits.Train, "val": d.Splits.Val, "test": d.Splits.Test} {
		right, all := 0, 0
		for _, v := range ids {
			if !d.Labels.Has(int(v)) {
				continue
			}
			if p.Marks == nil {
				all++
				if p.Class[v] == d.Labels.Class[v] {
					right++
				}
				continue
			}
			for c, known := range d.Labels.Row(int(v)) {
				all++
				if p.Marks[int(v)*p.Width+c] == known {
					right++
				}
			}
		}
		if all > 0 {
			p.Correct[name] = float64(right) / float64(all)
		}
	}
}
