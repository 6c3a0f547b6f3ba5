package serve

import (
	"math"
	"runtime"
	"slices"

	"starling/graph"
	"starling/nn"
	"starling/tensor"
)

// Answers is a model and a graph, made ready to be asked about single vertices or
// pairs. It keeps what one forward pass over the graph computed: probabilities, and the
// input of every layer that looks at neighbours (for new vertices) and of the last
// (embeddings). That is vertices x (classes + width of layers) numbers. Of a model of
// pairs it keeps the embeddings alone.
//
// It may be asked by many at once.
type Answers struct {
	trained  *Trained
	data     *graph.Dataset
	features *graph.Features
	task     string // one of nn.Tasks
	names    *names
	inputs   []rows
	chances  rows      // or, of regression, numbers; of a model of pairs, embeddings
	lengths  []float32 // of embeddings, or none in a model of one layer
	degrees  *nn.Degrees
	models   chan *nn.Model // each for one new vertex at a time
	dev      tensor.Device  // of the models' weights
}

// NewAnswers runs the forward pass. The dataset must stay open.
func NewAnswers(dev tensor.Device, t *Trained, d *graph.Dataset) (*Answers, error) {
	if err := t.suits(d); err != nil {
		return nil, err
	}
	a := &Answers{trained: t, data: d, features: t.features(d), task: t.task(d), names: namesOf(d), dev: dev}
	out, err := t.forward(dev, d, a.features, func(m *nn.Model, i int) bool { return !t.ofPairs() && (m.Gathers(i) || i == m.Stages()-1) })
	if err != nil {
		return nil, err
	}
	if a.task != nn.TaskRegression && !t.ofPairs() {
		probabilities(out.logits, a.task)
	}
	a.inputs, a.chances, a.degrees = out.inputs, out.logits, degreesOf(d.Graph)
	if _, ok := a.embeddings(); ok {
		a.measure()
	}
	a.models = make(chan *nn.Model, runtime.GOMAXPROCS(0))
	for range cap(a.models) {
		m, err := t.Model(dev)
		if err != nil {
			return nil, err
		}
		a.models <- m
	}
	return a, nil
}

// Vertices is how many the graph has.
func (a *Answers) Vertices() int { return a.data.Graph.Nodes() }

// embeddings are what a model of pairs gives vertices, else the input of the last
// stage; in a model of one stage there are none.
func (a *Answers) embeddings() (rows, bool) {
	if a.trained.ofPairs() {
		return a.chances, true
	}
	return a.inputs[len(a.inputs)-1], len(a.inputs) > 1
}

// Score is how likely each pair is an edge, by a model of pairs.
func (a *Answers) Score(left, right []uint32) []float32 {
	model := <-a.models
	defer func() { a.models <- model }()
	dev := tensor.NewCPU(1) // all it hands out is gone with it
	defer dev.Close()
	return score(dev, model, a.chances, left, right)
}

// Prediction is what the model says of one vertex.
type Prediction struct {
	Values        []float32 // of regression the numbers, and nothing else
	Label         int32     // the likeliest class,
	Labels        []int32   // or those more likely than not, where there may be several
	Probabilities []float32 // of every class
}

// Predict is for a vertex of the graph.
func (a *Answers) Predict(v uint32) Prediction { return decide(a.chances.of(v), a.task) }

func decide(chances []float32, task string) Prediction {
	p := Prediction{Probabilities: chances, Label: -1}
	switch task {
	case nn.TaskRegression:
		return Prediction{Values: chances, Label: -1}
	case nn.TaskClassify:
		p.Label = largest(chances)
		return p
	}
	p.Labels = []int32{}
	for c, x := range chances {
		if x > 0.5 {
			p.Labels = append(p.Labels, int32(c))
		}
	}
	return p
}

// PredictNew is for a vertex that is not in the graph, from its features and the
// vertices that send to it (each with a weight, or one).
//
// Layer by layer its row is computed from its own and its neighbours' inputs of that
// layer, which are those of the forward pass: a neighbour does not hear of the new
// vertex, and its degree stays what it is. For a graph in which the new vertex only
// receives this is exact.
func (a *Answers) PredictNew(features []float32, neighbours []uint32, weights []float32) Prediction {
	model := <-a.models
	defer func() { a.models <- model }()
	dev := tensor.NewCPU(1) // all it hands out is gone with it
	defer dev.Close()
	p := &nn.Pass{Dev: dev, Agg: a.around(dev, neighbours, weights)}
	own := features
	if a.trained.Config.RowNormalize {
		one := graph.Features{Rows: 1, Cols: len(features), F32: features}
		own = one.RowNormalise().F32
	}
	for i := range model.Stages() {
		block := slices.Clone(own)
		if model.Gathers(i) {
			block = a.block(i, own, neighbours)
		}
		x := dev.FromHost(len(block)/len(own), len(own), block)
		own = download(dev, model.Stage(p, i, nn.Input{Matrix: x})).data
	}
	if a.task != nn.TaskRegression {
		probability(own, a.task)
	}
	return decide(own, a.task)
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
func (s star) Room(int) int            { return s.src }

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

// degreesOf adds up the weights of in-edges.
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

// measure notes the lengths of embeddings, for cosines.
func (a *Answers) measure() {
	e, _ := a.embeddings()
	a.lengths = make([]float32, a.Vertices())
	graph.Parallel(int64(a.Vertices()), 1<<12, func(lo, hi int64) {
		for v := lo; v < hi; v++ {
			row := e.of(uint32(v))
			a.lengths[v] = float32(math.Sqrt(float64(dot(row, row))))
		}
	})
}
