package serve

import (
	"fmt"
	"math"

	"starling/graph"
	"starling/nn"
	"starling/tensor"
	"starling/tensor/cpu"
)

// What can be predicted.
const (
	// the most likely class; of several labels a 0 or 1 per class; of regression the numbers
	Labels        = "labels"
	Probabilities = "probabilities" // of each class: softmax, or of several labels a sigmoid each
	Embeddings    = "embeddings"    // the input of the last layer; of pairs, its output
)

// Whats are all of them.
var Whats = []string{Labels, Probabilities, Embeddings}

// Predictions holds predictions for all vertices of a dataset: row v is vertex v.
type Predictions struct {
	What     string
	Vertices int
	Width    int // numbers per row; 1 for single labels

	Class []int32 // Labels
	// Probability is the probability of the class of each vertex, beside Class.
	Probability []float32
	Marks       []uint8   // Labels, where a vertex has several
	Values      []float32 // Probabilities, Embeddings, Labels of regression
	// Metric is the name of what Measured is by split: labels compared with the
	// dataset's. Without labels of the same kind there is none.
	Metric   string
	Measured map[string]float64
	// ClassNames are what the classes are called; none: their numbers.
	ClassNames []string
	// Evaluation is the report by class of the test split, or of another where there is none, or of all labels where
	// there are no splits; nil: there are no labels of the kind.
	Evaluation *nn.Evaluation
}

// Predict runs the model over the whole graph.
func (t *Trained) Predict(dev tensor.Device, d *graph.Dataset, what string) (*Predictions, error) {
	if err := t.Suits(d, what); err != nil {
		return nil, err
	}
	if d.Typed() {
		return t.predictTyped(dev, d, what)
	}
	features, err := t.features(d)
	if err != nil {
		return nil, err
	}
	last := func(m *nn.Model, stage int) bool { return t.LeftOut(what) > 0 && stage == m.Stages()-1 }
	out, err := t.forward(dev, d, features, last)
	if err != nil {
		return nil, err
	}
	e := out.logits
	if t.LeftOut(what) > 0 {
		e = out.inputs[len(out.inputs)-1]
	}
	return t.FromRows(d, what, d.Graph.Nodes(), e.width, e.data), nil
}

// Suits refuses a dataset that the model was not trained for, and what it cannot predict. It
// looks at no edge and no feature.
func (t *Trained) Suits(d *graph.Dataset, what string) error {
	if err := t.suits(d); err != nil {
		return err
	}
	if err := t.predicts(d, what); err != nil {
		return err
	}
	if what == Embeddings && !t.ofPairs() && t.Config.Model.Layers < 2 && t.stages() < 2 {
		return &graph.InputError{File: t.Dir, Found: "a model of one layer", Want: "two or more, for embeddings",
			Fix: "the input of its only layer is the features themselves"}
	}
	return nil
}

// LeftOut is how many of the model's last stages are not computed.
func (t *Trained) LeftOut(what string) int {
	if what == Embeddings && !t.ofPairs() {
		return 1
	}
	return 0
}

// FromRows are the predictions that follow from what the model computes for every vertex, which
// they change: its output, or for embeddings the input of its last stage.
func (t *Trained) FromRows(d *graph.Dataset, what string, vertices, width int, data []float32) *Predictions {
	p, task, all := &Predictions{What: what, Vertices: vertices}, t.task(d), rows{width, data}
	if !t.ofPairs() && what != Embeddings {
		p.ClassNames = t.Config.ClassNames
	}
	switch what {
	case Embeddings:
		p.Width, p.Values = width, data
	case Probabilities:
		probabilities(all, task)
		p.Width, p.Values = width, data
	default:
		p.evaluate(t, all, d, task)
		p.label(&t.Config, all, task)
		p.measure(d, task)
	}
	return p
}

// predicts refuses what the task does not have.
func (t *Trained) predicts(d *graph.Dataset, what string) error {
	if d.Typed() && t.ofPairs() && (what != Embeddings || t.of == "") {
		return &graph.InputError{File: t.Dir, Field: "--what", Found: what + " of a model of " + t.Config.Target,
			Want: "--what scores", Fix: "give --pairs FILE or --top 10, or --what embeddings with --type"}
	}
	task := t.task(d)
	if what != Embeddings && t.OfType() != t.Config.Target {
		return &graph.InputError{File: t.Dir, Field: "--type", Found: fmt.Sprintf("%q", t.OfType()),
			Want: fmt.Sprintf("%q, whose %s the model predicts", t.Config.Target, what), Fix: "ask for embeddings of other types"}
	}
	if what == Embeddings || task == nn.TaskClassify || task == nn.TaskMultiLabel || what == Labels &&
		task == nn.TaskRegression {
		return nil
	}
	fix := "ask for embeddings"
	if task == nn.TaskRegression {
		fix = "its labels are the numbers it predicts"
	}
	return &graph.InputError{File: t.Dir, Field: "task", Found: task, Want: "a task with classes, for " + what,
		Fix: fix}
}

// stages is how many the model has.
func (t *Trained) stages() int {
	dev := cpu.New(1)
	defer dev.Close()
	return nn.New(dev, t.Config.Model, 0).Stages()
}

func (p *Predictions) label(c *Config, logits rows, task string) {
	p.Width = 1
	switch task {
	case nn.TaskRegression:
		p.Width, p.Values = logits.width, logits.data
		return
	case nn.TaskClassify:
		p.Class, p.Probability = make([]int32, p.Vertices), make([]float32, p.Vertices)
		graph.Parallel(int64(p.Vertices), 1<<12, func(lo, hi int64) {
			for v := lo; v < hi; v++ {
				row := logits.of(uint32(v))
				p.Class[v] = c.decide(row, task)
				p.Probability[v] = row[p.Class[v]]
			}
		})
		return
	}
	p.Width, p.Marks = logits.width, make([]uint8, len(logits.data))
	has := c.marks(task)
	for v := range p.Vertices {
		row := logits.of(uint32(v))
		for class, x := range row {
			if has(x, class) {
				p.Marks[v*p.Width+class] = 1
			}
		}
	}
}

// largest is the first position of the largest number.
func largest(row []float32) int32 {
	best := 0
	for i, x := range row {
		if x > row[best] {
			best = i
		}
	}
	return int32(best)
}

// probabilities computes them from logits, in place.
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

// probability does so for one row.
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
