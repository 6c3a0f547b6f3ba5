package serve

import (
	"encoding/json"
	"math"
	"runtime"
	"slices"
	"strings"

	"starling/graph"
	"starling/nn"
	"starling/tensor"
	"starling/tensor/cpu"
)

// Answers is a model and a graph, prepared for queries about single vertices or
// pairs. It keeps the results of one forward pass over the graph: logits, and the
// input of every layer that aggregates (for new vertices) and of the last one
// (embeddings). That is vertices x (classes + width of layers) numbers. Of a model of
// pairs it keeps the embeddings alone.
//
// A vertex is a number in the one id space of the graph, whatever its type.
//
// It is safe for concurrent use.
type Answers struct {
	trained  *Trained
	data     *graph.Dataset
	features *graph.Features // of a graph without types
	apart    bool            // the edges are elsewhere: answers are about the graph's own vertices only
	task     string          // one of nn.Tasks
	kinds    []*ends         // the vertices of each type; a graph without types has one list, of all
	target   int             // which of them the model predicts
	inputs   []rows
	outputs  rows           // logits of the target's vertices; of a model of pairs embeddings of all vertices
	norms    []float32      // of embeddings; none in a model of one layer
	degrees  *nn.Degrees    // of a graph without types
	pairs    []*pairScorer  // of a model of pairs: what it scores
	models   chan *nn.Model // each serves one new vertex, or some pairs, at a time
	dev      tensor.Device  // of the models' weights
}

// NewAnswers runs the forward pass. The dataset must stay open.
func NewAnswers(dev tensor.Device, t *Trained, d *graph.Dataset) (*Answers, error) {
	if err := t.suits(d); err != nil {
		return nil, err
	}
	a := about(dev, t, d)
	keep := func(m *nn.Model, i int) bool { return !t.ofPairs() && (m.Gathers(i) || i == m.Stages()-1) }
	var out *pass
	var err error
	if d.Typed() {
		out, err = t.OfAllTypes().forwardTyped(dev, d, keep)
	} else if a.features, err = t.features(d); err == nil {
		a.degrees = degreesOf(d.Graph)
		out, err = t.forward(dev, d, a.features, keep)
	}
	if err != nil {
		return nil, err
	}
	a.inputs = out.inputs
	return a, a.begin(out.logits)
}

// Rows are a number of numbers for each vertex of a graph, types one after the other.
type Rows struct {
	Width  int
	Values []float32
}

// AnswersFromRows are answers about the vertices of a graph whose edges are elsewhere, and about no
// new ones: from the model's outputs and the input of its last stage, none in a model of one.
func AnswersFromRows(dev tensor.Device, t *Trained, d *graph.Dataset, outputs Rows, embeddings *Rows) (*Answers,
	error) {
	a := about(dev, t, d)
	a.apart, a.inputs = true, make([]rows, 1)
	if embeddings != nil {
		a.inputs = append(a.inputs, rows{embeddings.Width, embeddings.Values})
	}
	return a, a.begin(rows{outputs.Width, outputs.Values})
}

// about knows the vertices of a graph by name.
func about(dev tensor.Device, t *Trained, d *graph.Dataset) *Answers {
	a := &Answers{trained: t, data: d, task: t.task(d), dev: dev}
	if !d.Typed() {
		a.kinds = []*ends{allOf(d)}
		return a
	}
	for k := range d.Meta.Schema.Types {
		a.kinds = append(a.kinds, ofType(d, k))
	}
	a.target = max(0, d.Meta.Schema.Type(t.Config.Target)) // that of a model of pairs is a relation
	return a
}

// begin makes what answers need beside the inputs of stages, from the outputs of all vertices.
func (a *Answers) begin(outputs rows) error {
	a.outputs = outputs
	if of := a.kinds[a.target]; !a.trained.ofPairs() && of.count < a.Vertices() {
		lo := int(of.first) * outputs.width
		a.outputs.data = slices.Clone(outputs.data[lo : lo+of.count*outputs.width])
	}
	if err := a.beginPairs(); err != nil {
		return err
	}
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

// kindOf are the vertices of a vertex's type.
func (a *Answers) kindOf(v uint32) *ends {
	if !a.data.Typed() {
		return a.kinds[0]
	}
	return a.kinds[a.data.Meta.Schema.TypeOf(v)]
}

// kindNames lists the types of the graph.
func (a *Answers) kindNames() string {
	var names []string
	for _, k := range a.kinds {
		names = append(names, k.kind)
	}
	return strings.Join(names, ", ")
}

// name is what a vertex was called before import, as JSON.
func (a *Answers) name(v uint32) json.RawMessage { return a.kindOf(v).json(v) }

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

// Prediction is the model's output for one vertex.
type Prediction struct {
	Values        []float32 // of regression, and nothing else
	Label         int32     // the most likely class, or by the run's threshold,
	Labels        []int32   // or those of probability above ½ or their threshold, if a vertex may have several
	Probabilities []float32 // of every class
}

// Predict is for a vertex of the graph, of the type that the model predicts.
func (a *Answers) Predict(v uint32) Prediction {
	return decide(&a.trained.Config, slices.Clone(a.outputs.of(v-a.kinds[a.target].first)), a.task)
}

// decide is what a model predicts, from logits, which it makes probabilities.
func decide(c *Config, row []float32, task string) Prediction {
	switch task {
	case nn.TaskRegression:
		return Prediction{Values: row, Label: -1}
	case nn.TaskClassify:
		return Prediction{Label: c.decide(row, task), Probabilities: row}
	}
	p := Prediction{Label: -1, Labels: []int32{}, Probabilities: row}
	has := c.marks(task)
	for class, x := range row {
		if has(x, class) {
			p.Labels = append(p.Labels, int32(class))
		}
	}
	probability(row, task)
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
	own := a.trained.Config.prepared(features, a.trained.Config.scale())
	for i := range model.Stages() {
		block := slices.Clone(own)
		if model.Gathers(i) {
			block = a.block(i, own, neighbours)
		}
		x, _ := stored(dev, p.Rows, len(block)/len(own), len(own), block)
		own = download(dev, model.Stage(p, i, nn.Input{Matrix: x})).data
	}
	return decide(&a.trained.Config, own, a.task)
}

// prepared are the features of a new vertex as the model takes them.
func (c *Config) prepared(features []float32, scale *graph.Scale) []float32 {
	own := slices.Clone(features)
	scale.Apply(own)
	if c.RowNormalize {
		one := graph.Features{Rows: 1, Cols: len(own), F32: own}
		own = one.RowNormalize().F32
	}
	return own
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
