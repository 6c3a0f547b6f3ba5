package serve

import (
	"math"
	"runtime"
	"slices"

	"starling/graph"
	"starling/nn"
	"starling/tensor"
	"starling/tensor/cpu"
)

// Answers is a model and a graph, prepared for queries about single vertices or
// pairs. It keeps the results of one forward pass over the graph: probabilities, and the
// input of every layer that aggregates (for new vertices) and of the last one
// (embeddings). That is vertices x (classes + width of layers) numbers. Of a model of
// pairs it keeps the embeddings alone.
//
// It is safe for concurrent use.
type Answers struct {
	trained  *Trained
	data     *graph.Dataset
	features *graph.Features // nil: answers are about the graph's own vertices only
	task     string          // one of nn.Tasks
	names    *names
	inputs   []rows
	outputs  rows      // probabilities; values of regression; embeddings of a model of pairs
	norms    []float32 // of embeddings; none in a model of one layer
	degrees  *nn.Degrees
	models   chan *nn.Model // each serves one new vertex at a time
	dev      tensor.Device  // of the models' weights
}

// NewAnswers runs the forward pass. The dataset must stay open.
func NewAnswers(dev tensor.Device, t *Trained, d *graph.Dataset) (*Answers, error) {
	if err := t.suits(d); err != nil {
		return nil, err
	}
	features, err := t.features(d)
	if err != nil {
		return nil, err
	}
	a := &Answers{trained: t, data: d, features: features, task: t.task(d), names: namesOf(d), dev: dev}
	out, err := t.forward(dev, d, a.features,
		func(m *nn.Model, i int) bool { return !t.ofPairs() && (m.Gathers(i) || i == m.Stages()-1) })
	if err != nil {
		return nil, err
	}
	if a.task != nn.TaskRegression && !t.ofPairs() {
		probabilities(out.logits, a.task)
	}
	a.inputs, a.outputs, a.degrees = out.inputs, out.logits, degreesOf(d.Graph)
	return a, a.begin()
}

// AnswersFromRows are answers about the vertices of a graph whose edges are elsewhere, and about no
// new ones: from probabilities, or values of regression, and the input of the last stage, none
// in a model of one.
func AnswersFromRows(dev tensor.Device, t *Trained, d *graph.Dataset, outputs, embeddings *Predictions) (*Answers,
	error) {
	a := &Answers{trained: t, data: d, task: t.task(d), names: namesOf(d), dev: dev, inputs: make([]rows, 1),
		outputs: rows{outputs.Width, outputs.Values}}
	if embeddings != nil {
		a.inputs = append(a.inputs, rows{embeddings.Width, embeddings.Values})
	}
	return a, a.begin()
}

// begin makes what answers need beside the rows.
func (a *Answers) begin() error {
	if _, ok := a.embeddings(); ok {
		a.measure()
	}
	a.models = make(chan *nn.Model, runtime.GOMAXPROCS(0))
	for range cap(a.models) {
		m, err := a.trained.Model(a.dev)
		if err != nil {
			return err
		}
		a.models <- m
	}
	return nil
}

// withoutEdges: there is nothing to compute new vertices from.
func (a *Answers) withoutEdges() bool { return a.features == nil }

// Vertices is how many the graph has.
func (a *Answers) Vertices() int { return a.data.Graph.Nodes() }

// embeddings are what a model of pairs gives vertices, else the input of the last
// stage; in a model of one stage there are none.
func (a *Answers) embeddings() (rows, bool) {
	if a.trained.ofPairs() {
		return a.outputs, true
	}
	return a.inputs[len(a.inputs)-1], len(a.inputs) > 1
}

// Score is how likely each pair is an edge, by a model of pairs.
func (a *Answers) Score(left, right []uint32) []float32 {
	model := <-a.models
	defer func() { a.models <- model }()
	dev := cpu.New(1) // Close frees all its matrices
	defer dev.Close()
	return score(dev, model, a.trained.Rows(), a.outputs, left, right)
}

// Prediction is the model's output for one vertex.
type Prediction struct {
	Values        []float32 // of regression, and nothing else
	Label         int32     // the most likely class, or by the run's threshold,
	Labels        []int32   // or those of probability above ½ or their threshold, if a vertex may have several
	Probabilities []float32 // of every class
}

// Predict is for a vertex of the graph.
func (a *Answers) Predict(v uint32) Prediction {
	return decide(&a.trained.Config, a.outputs.of(v), a.task)
}

// decide is what a model predicts, from probabilities.
func decide(c *Config, outputs []float32, task string) Prediction {
	p := Prediction{Probabilities: outputs, Label: -1}
	switch task {
	case nn.TaskRegression:
		return Prediction{Values: outputs, Label: -1}
	case nn.TaskClassify:
		p.Label = c.class(outputs)
		return p
	}
	p.Labels = []int32{}
	for class, x := range outputs {
		if c.has(x, class) {
			p.Labels = append(p.Labels, int32(class))
		}
	}
	return p
}

// PredictNew is for a vertex that is not in the graph, from its features, as they were before
// the dataset was standardized, and the vertices that send to it (each with a weight, or one).
//
// Layer by layer its row is computed from its own and its neighbours' inputs of that
// layer, which the forward pass computed: the rows of its neighbours do not depend on
// the new vertex, and their degrees stay the same. If the new vertex has no out-edges,
// this is exact.
func (a *Answers) PredictNew(features []float32, neighbours []uint32, weights []float32) Prediction {
	model := <-a.models
	defer func() { a.models <- model }()
	dev := cpu.New(1) // Close frees all its matrices
	defer dev.Close()
	p := &nn.Pass{Dev: dev, Agg: a.around(dev, neighbours, weights), Rows: a.trained.Rows()}
	own := slices.Clone(features)
	a.trained.Config.scale().Apply(own)
	if a.trained.Config.RowNormalize {
		one := graph.Features{Rows: 1, Cols: len(own), F32: own}
		own = one.RowNormalize().F32
	}
	for i := range model.Stages() {
		block := slices.Clone(own)
		if model.Gathers(i) {
			block = a.block(i, own, neighbours)
		}
		x, _ := stored(dev, p.Rows, len(block)/len(own), len(own), block)
		own = download(dev, model.Stage(p, i, nn.Input{Matrix: x})).data
	}
	if a.task != nn.TaskRegression {
		probability(own, a.task)
	}
	return decide(&a.trained.Config, own, a.task)
}

// block is a stage's input: the new vertex first, then its neighbours.
func (a *Answers) block(stage int, own []float32, neighbours []uint32) []float32 {
	w := len(own)
	block := make([]float32, (1+len(neighbours))*w)
	copy(block, own)
	for i, u := range neighbours {
		row := block[(i+1)*w : (i+2)*w]
		if stage == 0 {
			a.features.CopyRow(row, u)
		} else {
			copy(row, a.inputs[stage].of(u))
		}
	}
	return block
}

// star is the aggregator of one vertex and its neighbours, which are rows 1 and on.
type star struct {
	*nn.Local
	src int
}

func (s star) Rows(int) (dst, src int) { return 1, s.src }
func (s star) MessageRows(int) int     { return s.src }

func (a *Answers) around(dev tensor.Device, neighbours []uint32, weights []float32) star {
	k := len(neighbours)
	in := &graph.CSR{Indptr: []int64{0, int64(k)}, Indices: make([]uint32, k)}
	degree := float64(k)
	if a.data.Graph.Weights != nil {
		if in.Weights, degree = weights, 0; weights == nil {
			in.Weights = slices.Repeat([]float32{1}, k)
		}
		for _, w := range in.Weights {
			degree += float64(w)
		}
	}
	all, noLoops := []float64{degree}, []float64{degree}
	for i, u := range neighbours {
		in.Indices[i] = uint32(i + 1)
		all, noLoops = append(all, a.degrees.All[u]), append(noLoops, a.degrees.NoLoops[u])
	}
	of := &nn.Degrees{All: all, NoLoops: noLoops}
	return star{nn.NewLocal(nn.NewPart(dev, in, 1+k, of.Slice(0, 1), of, true), false), 1 + k}
}

// degreesOf sums the weights of in-edges.
func degreesOf(g *graph.CSR) *nn.Degrees {
	d := &nn.Degrees{All: make([]float64, g.Nodes()), NoLoops: make([]float64, g.Nodes())}
	graph.Parallel(int64(g.Nodes()), 1<<14, func(lo, hi int64) {
		for v := lo; v < hi; v++ {
			for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
				w := 1.0
				if g.Weights != nil {
					w = float64(g.Weights[e])
				}
				d.All[v] += w
				if int64(g.Indices[e]) != v {
					d.NoLoops[v] += w
				}
			}
		}
	})
	return d
}

// measure computes the norms of embeddings, for cosines.
func (a *Answers) measure() {
	e, _ := a.embeddings()
	a.norms = make([]float32, a.Vertices())
	graph.Parallel(int64(a.Vertices()), 1<<12, func(lo, hi int64) {
		for v := lo; v < hi; v++ {
			row := e.of(uint32(v))
			a.norms[v] = float32(math.Sqrt(float64(dot(row, row))))
		}
	})
}
