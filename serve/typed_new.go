package serve

import (
	"cmp"
	"slices"

	"starling/graph"
	"starling/nn"
	"starling/tensor"
	"starling/tensor/cpu"
)

// Incoming are the vertices that send to a new one by a relation.
type Incoming struct {
	Relation int
	From     []uint32
}

// PredictNewTyped is PredictNew for a vertex of the type that a typed model predicts. Its edges are by relation, each
// once, and a vertex may be named more than once, as a table of edges may have it.
func (a *Answers) PredictNewTyped(features []float32, in []Incoming) Prediction {
	model := <-a.models
	defer func() { a.models <- model }()
	dev := cpu.New(1) // Close frees all its matrices
	defer dev.Close()
	s := newTypedStar(a.data.Meta.Schema, a.target, in)
	p := &nn.Pass{Dev: dev, Agg: s.aggregator(dev), Rows: a.trained.Rows(), Types: s.columns}
	own := a.encoded(p, model, features)
	for i := 1; i < model.Stages(); i++ {
		block := slices.Clone(own)
		if model.Gathers(i) {
			block = a.block(i, own, s.neighbours)
		}
		x, _ := stored(dev, p.Rows, len(block)/len(own), len(own), block)
		own = download(dev, model.Stage(p, i, nn.Input{Matrix: x})).data
	}
	return decide(&a.trained.Config, own, a.task)
}

// encoded is the first stage's output for a new vertex of the target.
func (a *Answers) encoded(p *nn.Pass, model *nn.Model, features []float32) []float32 {
	c := &a.trained.Config
	own := c.prepared(features, c.TypeFeatures[a.target].Scale)
	x := &nn.TypedInput{Runs: []graph.Run{{Type: a.target, Lo: 0, Hi: 1}}, X: make([]tensor.Matrix, len(a.kinds)),
		Learnt: make([]*nn.Param, len(a.kinds))}
	x.X[a.target], _ = stored(p.Dev, p.Rows, 1, len(own), own)
	return download(p.Dev, model.Stage(p, 0, nn.Input{Typed: x})).data
}

// typedStar is a new vertex, row 0, and a row for each edge into it: first those of its own type, then those of the other
// types in order, so that the rows of a type are a run.
type typedStar struct {
	schema     *graph.Schema
	rows       []graph.Run // the new vertex alone
	columns    []graph.Run
	neighbours []uint32 // of rows 1 and on
	edges      *graph.CSR
}

func newTypedStar(schema *graph.Schema, target int, in []Incoming) *typedStar {
	own := graph.Run{Type: target, Lo: 0, Hi: 1}
	s := &typedStar{schema: schema, rows: []graph.Run{own}, columns: []graph.Run{own}}
	source := func(x Incoming) int { return schema.Relations[x.Relation].Source }
	in = slices.SortedFunc(slices.Values(in), func(x, y Incoming) int { return cmp.Compare(x.Relation, y.Relation) })
	at := make([]uint32, len(in)) // the first row of each relation's sources
	for _, t := range append([]int{target}, others(schema, target)...) {
		for i, x := range in {
			if source(x) != t {
				continue
			}
			at[i] = uint32(1 + len(s.neighbours))
			s.neighbours = append(s.neighbours, slices.Sorted(slices.Values(x.From))...) // as rows of a graph are
		}
		s.extend(t)
	}
	s.edges = &graph.CSR{Indptr: []int64{0, int64(len(s.neighbours))}}
	for i, x := range in {
		for k := range x.From {
			s.edges.Indices = append(s.edges.Indices, at[i]+uint32(k))
			s.edges.Relations = append(s.edges.Relations, uint16(x.Relation))
		}
	}
	return s
}

// others are the types but one.
func others(s *graph.Schema, t int) (list []int) {
	for k := range s.Types {
		if k != t {
			list = append(list, k)
		}
	}
	return list
}

// extend makes the rows since the last run one of a type.
func (s *typedStar) extend(t int) {
	last, end := &s.columns[len(s.columns)-1], 1+len(s.neighbours)
	switch {
	case last.Type == t:
		last.Hi = end
	case last.Hi < end:
		s.columns = append(s.columns, graph.Run{Type: t, Lo: last.Hi, Hi: end})
	}
}

func (s *typedStar) aggregator(dev *cpu.Device) star {
	n := 1 + len(s.neighbours)
	degrees := &nn.Degrees{All: make([]float64, n)} // which layers over relations do not use
	t := nn.NewPart(dev, s.edges, n, degrees.Slice(0, 1), degrees, true)
	t.SetTypes(s.schema, s.rows, s.columns)
	return star{nn.NewLocal(t, false), n}
}
