package serve

import (
	"math"

	"starling/graph"
	"starling/nn"
	"starling/tensor"
)

// What a prediction is of.
const (
	Labels        = "labels"        // the likeliest class; of several labels a 0 or 1 a class; of regression the numbers
	Probabilities = "probabilities" // of each class: softmax, or of several labels a sigmoid each
	Embeddings    = "embeddings"    // the input of the last layer; of pairs, its output
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
	Values []float32 // Probabilities, Embeddings, Labels of regression
	// Metric is the name of what Measured is by split: labels compared with the
	// dataset's. Without labels of the same kind there is none.
	Metric   string
	Measured map[string]float64
}

// Predict runs the model over the whole graph.
func (t *Trained) Predict(dev tensor.Device, d *graph.Dataset, what string) (*Predictions, error) {
	if err := t.suits(d); err != nil {
		return nil, err
	}
	if err := t.predicts(d, what); err != nil {
		return nil, err
	}
	last := func(m *nn.Model, stage int) bool { return what == Embeddings && stage == m.Stages()-1 }
	if what == Embeddings && !t.ofPairs() && t.Config.Model.Layers < 2 && t.stages() < 2 {
		return nil, &graph.InputError{File: t.Dir, Found: "a model of one layer", Want: "two or more, for embeddings", Fix: "the input of its only layer is the features themselves"}
	}
	out, err := t.forward(dev, d, t.features(d), last)
	if err != nil {
		return nil, err
	}
	p := &Predictions{What: what, Vertices: d.Graph.Nodes()}
	task := t.task(d)
	switch what {
	case Embeddings:
		e := out.logits
		if !t.ofPairs() {
			e = out.inputs[len(out.inputs)-1]
		}
		p.Width, p.Values = e.width, e.data
	case Probabilities:
		probabilities(out.logits, task)
		p.Width, p.Values = out.logits.width, out.logits.data
	default:
		p.label(out.logits, task)
		p.measure(d, task)
	}
	return p, nil
}

// predicts refuses what a task has none of.
func (t *Trained) predicts(d *graph.Dataset, what string) error {
	task := t.task(d)
	if what == Embeddings || task == nn.TaskClassify || task == nn.TaskMultiLabel || what == Labels && task == nn.TaskRegression {
		return nil
	}
	fix := "ask for embeddings"
	if task == nn.TaskRegression {
		fix = "its labels are the numbers it predicts"
	}
	return &graph.InputError{File: t.Dir, Field: "task", Found: task, Want: "a task with classes, for " + what, Fix: fix}
}

// stages is how many the model has.
func (t *Trained) stages() int {
	dev := tensor.NewCPU(1)
	defer dev.Close()
	return nn.New(dev, t.Config.Model, 0).Stages()
}

func (p *Predictions) label(logits rows, task string) {
	p.Width = 1
	switch task {
	case nn.TaskRegression:
		p.Width, p.Values = logits.width, logits.data
		return
	case nn.TaskClassify:
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
func probabilities(logits rows, task string) {
	n := 0
	if logits.width > 0 {
		n = len(logits.data) / logits.width
	}
	graph.Parallel(int64(n), 1<<12, func(lo, hi int64) {
		for v := lo; v < hi; v++ {
			probability(logits.of(uint32(v)), task)
		}
	})
}

// probability does so to one row.
func probability(row []float32, task string) {
	if task == nn.TaskMultiLabel {
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
