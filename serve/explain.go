package serve

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"starling/graph"
	"starling/nn"
	"starling/tensor"
	"starling/tensor/cpu"
)

// Methods of explaining: masks that are learnt (GNNExplainer, Ying et al., NeurIPS 2019) and integrated gradients
// (Sundararajan et al., ICML 2017).
const (
	Masks     = "masks"
	Gradients = "gradients"
)

// ExplainMethods are both.
var ExplainMethods = []string{Masks, Gradients}

// ExplainOptions say how predictions are explained.
type ExplainOptions struct {
	Method string
	Epochs int // of masks; steps of gradients
	Keep   int // edges of an explanation
	Most   int // edges that are dropped one by one
}

// Explanation is what mattered for the prediction of a vertex, each list with the most important first.
type Explanation struct {
	Vertex   string    `json:"vertex"`
	Type     string    `json:"type,omitempty"`
	Method   string    `json:"method"`
	Task     string    `json:"task"`
	Class    string    `json:"class,omitempty"` // that is predicted
	Values   []float64 `json:"values"`          // probabilities, or of regression the numbers
	Vertices int       `json:"neighbourhood_vertices"`
	AllEdges int       `json:"neighbourhood_edges"`
	Scored   int       `json:"scored_edges"`
	// Edges have how far the prediction moves without the edge, others the value of their mask, or their attribution.
	Edges   []ExplainedEdge   `json:"edges"`
	Near    []ExplainedVertex `json:"vertices"`
	Columns []ExplainedColumn `json:"columns"`
	// FidelityPlus is how far the prediction moves when the first Kept edges are dropped, FidelityMinus when all others
	// are.
	Kept          int     `json:"kept_edges"`
	FidelityPlus  float64 `json:"fidelity_plus"`
	FidelityMinus float64 `json:"fidelity_minus"`
}

// ExplainedEdge, ExplainedVertex and ExplainedColumn are what mattered, and how much.
type (
	ExplainedEdge struct {
		Source     string  `json:"source"`
		SourceType string  `json:"source_type,omitempty"`
		Relation   string  `json:"relation,omitempty"`
		Target     string  `json:"target"`
		TargetType string  `json:"target_type,omitempty"`
		Score      float64 `json:"score"`
		at         int
	}
	ExplainedVertex struct {
		Vertex string  `json:"vertex"`
		Type   string  `json:"type,omitempty"`
		Hops   int     `json:"hops"`
		Score  float64 `json:"score"`
	}
	ExplainedColumn struct {
		Column string  `json:"column"`
		Type   string  `json:"type,omitempty"`
		Score  float64 `json:"score"`
	}
)

// Explain explains the prediction for a vertex of the dataset, by its number. What the prediction depends on is the
// neighbourhood of the vertex, of as many hops as the model has layers: everything is computed on that alone.
func (t *Trained) Explain(d *graph.Dataset, v uint32, o ExplainOptions) (*Explanation, error) {
	if err := t.explainable(d); err != nil {
		return nil, err
	}
	dev := cpu.New(0)
	defer dev.Close()
	s, err := t.subject(dev, d, v)
	if err != nil {
		return nil, err
	}
	full := s.predict(s.values, s.whole)
	s.class = slices.Index(full, slices.Max(full))
	rowScore, columns := s.explain(full, o)
	x := &Explanation{Vertex: d.ID(v), Method: o.Method, Task: s.task, Values: full, Vertices: len(s.ids),
		AllEdges: len(s.source)}
	if d.Typed() {
		x.Type = d.Meta.Schema.Types[d.Meta.Schema.TypeOf(v)].Name
	}
	if s.task == nn.TaskClassify {
		x.Class = graph.ClassName(t.Config.ClassNames, s.class)
	}
	x.Columns = columns
	for i, id := range s.ids {
		if i != s.at {
			x.Near = append(x.Near, ExplainedVertex{d.ID(id), s.typeName(i), s.hops[i], rowScore[i]})
		}
	}
	byScore(x.Near, func(n ExplainedVertex) float64 { return n.Score })
	byScore(x.Columns, func(c ExplainedColumn) float64 { return c.Score })
	s.dropEdges(x, full, rowScore, o)
	return x, dev.Err()
}

// byScore sorts by size, whatever the sign.
func byScore[T any](list []T, of func(T) float64) {
	slices.SortStableFunc(list, func(a, b T) int { return cmp.Compare(math.Abs(of(b)), math.Abs(of(a))) })
}

// explainable refuses models whose predictions are not of a vertex and what is around it alone.
func (t *Trained) explainable(d *graph.Dataset) error {
	bad := func(found, want string) error {
		return &graph.InputError{File: t.Dir, Field: "model", Found: found, Want: want, Fix: "explain another model"}
	}
	switch c := &t.Config.Model; {
	case t.ofPairs():
		return bad("a model of pairs", "one that predicts vertices")
	case c.Norm == "batch":
		return bad("batch norm", "layer norm or none, of which gradients are of one vertex's neighbourhood")
	case c.EdgeDim > 0:
		return bad("a model that looks at features of edges", "one that does not")
	}
	return t.suits(d)
}

// dropEdges scores edges by dropping each, and measures fidelity by dropping the best, and all but the best.
func (s *subject) dropEdges(x *Explanation, full, rowScore []float64, o ExplainOptions) {
	order := make([]int, len(s.source))
	for e := range order {
		order[e] = e
	}
	// Those near the vertex first, then those of important sources.
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(s.hops[s.target[a]], s.hops[s.target[b]]),
			cmp.Compare(math.Abs(rowScore[s.source[b]]), math.Abs(rowScore[s.source[a]])))
	})
	order = order[:min(len(order), o.Most)]
	x.Scored = len(order)
	keep := s.allEdges()
	for _, e := range order {
		keep[e] = false
		x.Edges = append(x.Edges, s.edge(e, s.moved(full, s.predict(s.values, s.part(keep)))))
		keep[e] = true
	}
	byScore(x.Edges, func(e ExplainedEdge) float64 { return e.Score })
	if x.Kept = min(o.Keep, len(x.Edges)); x.Kept == 0 {
		return
	}
	only := make([]bool, len(s.source))
	for _, e := range x.Edges[:x.Kept] {
		keep[e.at], only[e.at] = false, true
	}
	x.FidelityPlus = s.moved(full, s.predict(s.values, s.part(keep)))
	x.FidelityMinus = s.moved(full, s.predict(s.values, s.part(only)))
}

func (s *subject) edge(e int, score float64) ExplainedEdge {
	u, v := s.source[e], s.target[e]
	out := ExplainedEdge{Source: s.d.ID(s.ids[u]), SourceType: s.typeName(u), Target: s.d.ID(s.ids[v]),
		TargetType: s.typeName(v), Score: score, at: e}
	if s.relation != nil {
		out.Relation = s.d.Meta.Schema.Relations[s.relation[e]].Name
	}
	return out
}

// moved is how far a prediction has moved: the probability of the class lost, or the mean distance of values.
func (s *subject) moved(from, to []float64) float64 {
	if s.task == nn.TaskClassify {
		return from[s.class] - to[s.class]
	}
	sum := 0.0
	for i := range from {
		sum += math.Abs(from[i] - to[i])
	}
	return sum / float64(len(from))
}

// subject is the neighbourhood of a vertex, and the model on it. Rows are local: the vertices of ids.
type subject struct {
	t     *Trained
	d     *graph.Dataset
	dev   tensor.Device
	model *nn.Model
	// targets is what numbers that the model learnt were standardized by; nil: nothing.
	targets *graph.Scale
	task    string
	class   int // that is predicted

	ids            []uint32 // ascending
	hops           []int
	at             int // the row of the vertex
	source, target []int
	relation       []uint16  // nil: the graph has no types
	weight         []float32 // nil: none
	values         [][]float64
	types          []int // of each row
	encoders       []*encoder
	runs           []graph.Run
	degrees        *nn.Degrees // in the whole graph
	whole          *nn.Topology
}

// encoder is the linear map of a type.
type encoder struct{ weight, bias []float64 } // weight is [wide, in]

func (t *Trained) subject(dev tensor.Device, d *graph.Dataset, v uint32) (*subject, error) {
	s := &subject{t: t, d: d, dev: dev, task: t.task(d)}
	if err := s.load(); err != nil {
		return nil, err
	}
	depth := 0
	for i := range s.model.Stages() {
		if s.model.Gathers(i) {
			depth++
		}
	}
	s.around(v, depth)
	s.whole = s.part(s.allEdges())
	return s, s.rows()
}

// load makes the model. A typed one gets rows that are encoded: its types are all learnt.
func (s *subject) load() error {
	c, weights := s.t.Config.Model, s.t.Weights
	if c.Typed == nil {
		model, err := s.t.Model(s.dev)
		if err != nil {
			return err
		}
		s.model, s.targets = model, model.TargetScale(s.dev)
		return nil
	}
	typed := *c.Typed
	typed.Types, c.Typed = slices.Clone(typed.Types), &typed
	s.encoders = make([]*encoder, len(typed.Types))
	weights = slices.Clone(weights)
	for k := range typed.Types {
		if typed.Types[k].In == 0 {
			continue
		}
		e := &encoder{}
		for name, into := range map[string]*[]float64{"weight": &e.weight, "bias": &e.bias} {
			name = fmt.Sprintf("node_encoder.lins.%s.%s", typed.Types[k].Name, name)
			at := slices.IndexFunc(weights, func(w nn.Tensor) bool { return w.Name == name })
			*into, weights = weights[at].Numbers(), slices.Delete(weights, at, at+1)
		}
		s.encoders[k], typed.Types[k].In = e, 0
	}
	s.model = nn.New(s.dev, c, 0)
	err := s.model.Load(s.dev, weights)
	s.targets = s.model.TargetScale(s.dev)
	return err
}

// around finds the vertices that the prediction depends on, and the edges.
func (s *subject) around(v uint32, depth int) {
	g, hops := s.d.Graph, map[uint32]int{v: 0}
	layer := []uint32{v}
	for h := 1; h <= depth; h++ {
		var next []uint32
		for _, u := range layer {
			for _, w := range g.Indices[g.Indptr[u]:g.Indptr[u+1]] {
				if _, seen := hops[w]; !seen {
					hops[w] = h
					next = append(next, w)
				}
			}
		}
		layer = next
	}
	for u := range hops {
		s.ids = append(s.ids, u)
	}
	slices.Sort(s.ids)
	row := map[uint32]int{}
	for i, u := range s.ids {
		row[u], s.hops = i, append(s.hops, hops[u])
	}
	s.at = row[v]
	s.degrees = &nn.Degrees{All: make([]float64, len(s.ids)), NoLoops: make([]float64, len(s.ids))}
	for i, u := range s.ids {
		for e := g.Indptr[u]; e < g.Indptr[u+1]; e++ {
			s.count(s.degrees, i, g.Indices[e] == u, s.weightOf(e))
			if s.hops[i] < depth {
				s.add(e, row[g.Indices[e]], i)
			}
		}
	}
}

func (s *subject) weightOf(e int64) float64 {
	if w := s.d.Graph.Weights; w != nil {
		return float64(w[e])
	}
	return 1
}

func (s *subject) count(d *nn.Degrees, row int, loop bool, weight float64) {
	d.All[row] += weight
	if !loop {
		d.NoLoops[row] += weight
	}
}

func (s *subject) add(e int64, source, target int) {
	s.source, s.target = append(s.source, source), append(s.target, target)
	if g := s.d.Graph; g.Weights != nil {
		s.weight = append(s.weight, g.Weights[e])
	}
	if g := s.d.Graph; g.Relations != nil {
		s.relation = append(s.relation, g.Relations[e])
	}
}

func (s *subject) allEdges() []bool { return slices.Repeat([]bool{true}, len(s.source)) }

// part is the neighbourhood with some of its edges, as if the others were not in the graph: they count in no degree.
func (s *subject) part(keep []bool) *nn.Topology {
	n := len(s.ids)
	g := &graph.CSR{Indptr: make([]int64, 1, n+1)}
	d := &nn.Degrees{All: slices.Clone(s.degrees.All), NoLoops: slices.Clone(s.degrees.NoLoops)}
	e := 0
	for i := range n {
		for ; e < len(s.target) && s.target[e] == i; e++ {
			weight := float32(1)
			if s.weight != nil {
				weight = s.weight[e]
			}
			if !keep[e] {
				s.count(d, i, s.source[e] == i, -float64(weight))
				continue
			}
			g.Indices = append(g.Indices, uint32(s.source[e]))
			if s.weight != nil {
				g.Weights = append(g.Weights, weight)
			}
			if s.relation != nil {
				g.Relations = append(g.Relations, s.relation[e])
			}
		}
		g.Indptr = append(g.Indptr, int64(len(g.Indices)))
	}
	if s.encoders == nil {
		return nn.NewPart(s.dev, g, n, d, d, true)
	}
	s.runs = s.d.Meta.Schema.Runs(s.ids)
	top := nn.NewTopology(s.dev, g)
	top.SetTypes(s.d.Meta.Schema, s.runs, s.runs)
	return top
}

// rows are the features of the vertices, as the model takes them, and learnt rows.
func (s *subject) rows() error {
	s.values, s.types = make([][]float64, len(s.ids)), make([]int, len(s.ids))
	if s.encoders == nil {
		f, err := s.t.features(s.d)
		for i, v := range s.ids {
			s.values[i] = rowOf(f, v)
		}
		return err
	}
	schema := s.d.Meta.Schema
	for _, run := range s.runs {
		typ := &schema.Types[run.Type]
		f := s.d.TypeFeatures[run.Type]
		if f != nil {
			var err error
			if f, err = f.Rescaled(typ.Features.Scale, s.t.Config.TypeFeatures[run.Type].Scale); err != nil {
				return graph.InFile(s.d.Dir, err)
			}
			if s.t.Config.RowNormalize {
				f = f.RowNormalize()
			}
		}
		for i := run.Lo; i < run.Hi; i++ {
			at := s.ids[i] - uint32(typ.First)
			if s.types[i] = run.Type; f != nil {
				s.values[i] = rowOf(f, at)
				continue
			}
			learnt := s.t.Learnt[typ.Name]
			wide := learnt.Shape[1]
			s.values[i] = learnt.Numbers()[int(at)*wide : (int(at)+1)*wide]
		}
	}
	return nil
}

func rowOf(f *graph.Features, v uint32) []float64 {
	row := make([]float32, f.Cols)
	f.CopyRow(row, v)
	out := make([]float64, f.Cols)
	for c, x := range row {
		out[c] = float64(x)
	}
	return out
}

func (s *subject) typeName(row int) string {
	if s.encoders == nil {
		return ""
	}
	return s.d.Meta.Schema.Types[s.types[row]].Name
}

// kind is the kind of labels.
func (s *subject) kind() string {
	switch s.task {
	case nn.TaskRegression:
		return graph.Regression
	case nn.TaskMultiLabel:
		return graph.MultiLabel
	}
	return graph.SingleLabel
}

// Numbers are the probabilities, or the numbers of a regression.
func (x *Explanation) Numbers() []float64 { return x.Values }

// Finder finds vertices of what the model predicts by their names before import.
func (t *Trained) Finder(d *graph.Dataset) func(name string) (v uint32, ok bool) {
	var first uint32
	if d.Typed() {
		k := d.Meta.Schema.Type(t.Config.Target)
		first, d = uint32(d.Meta.Schema.Types[k].First), d.OfType(k)
		d.Graph = &graph.CSR{Indptr: make([]int64, d.Meta.Nodes+1)}
	}
	n := namesOf(d)
	return func(name string) (uint32, bool) {
		v, ok := n.find(vertexName(name))
		return first + v, ok
	}
}
