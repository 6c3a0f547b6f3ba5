package dataset

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"starling/graph"
	"starling/rng"
)

// Progress hears how far a long piece of work has come. It may be called from
// several goroutines at once.
type Progress func(stage string, done, total int64)

// Params describes a graph to generate. Start from DefaultParams or Like.
type Params struct {
	Name     string
	Nodes    int64
	Edges    int64 // directed edges to store, about; an undirected edge counts twice
	Directed bool  // otherwise every edge has its reverse
	Features int   // dimension; 0: none
	BFloat16 bool  // store features as bfloat16
	// EdgeFeatures is the numbers of an edge; 0: none.
	EdgeFeatures int
	Classes      int // 0: no labels
	// Task is what the labels are for: classify, multilabel or regression; see GeneratedTasks.
	Task   string
	Signal float64
	Seed   uint64

	// Shares of the vertices in each split; what is left over is in none.
	Train, Val, Test float64

	// The block model only.
	Communities int     // 0: one a class
	Homophily   float64 // share of edges inside a class
	Exponent    float64 // of the power law of degrees; above 2
	MaxDegree   float64 // 0: chosen from the size

	// R-MAT only: the chances of the four quadrants; D is what is left of 1.
	A, B, C float64

	Notes     []string
	Overwrite bool
	Progress  Progress
}

// DefaultParams are parameters every kind accepts: 100,000 vertices of average
// degree 20.
func DefaultParams() Params {
	return Params{
		Nodes: 100_000, Edges: 2_000_000, Features: 128, Classes: 16, Task: classify, Signal: 1.5,
		Train: 0.6, Val: 0.2, Test: 0.2, Seed: 1,
		Homophily: 0.7, Exponent: 2.5,
		A: 0.57, B: 0.19, C: 0.19,
	}
}

// Summary tells what a folder holds.
type Summary struct {
	Dir              string
	Name             string
	Nodes, Edges     int64
	Symmetric        bool
	Features         int
	FeatureKind      graph.FeatureKind
	Task             string // of the labels: graph.SingleLabel, ...
	Classes          int
	Train, Val, Test int
	Notes            []string
}

// model is a random graph: m edges by index, and a class for each vertex.
type model struct {
	edges  int64
	source graph.EdgeSource
	class  func(v uint64) int // nil: drawn at random
}

var generators = map[string]func(Params) (*model, error){
	"sbm":  newBlockModel,
	"rmat": newRMAT,
	"er":   newErdosRenyi,
}

// Kinds lists the generators.
func Kinds() []string { return []string{"sbm", "rmat", "er"} }

// Keys of the separate streams of draws under one seed.
const (
	edgeStream = iota + 1
	communityStream
	degreeStream
	classStream
	centreStream
	noiseStream
	splitStream
	pilotStream
	scrambleStream
	taskStream
	edgeFeatureStream
)

// Generate draws a graph of the given kind (sbm, rmat, er) and writes it to out.
func Generate(kind string, p Params, out string) (Summary, error) {
	make, ok := generators[kind]
	if !ok {
		return Summary{}, badParam("kind", fmt.Sprintf("%q", kind), strings.Join(Kinds(), ", "))
	}
	if err := p.validate(); err != nil {
		return Summary{}, err
	}
	w, err := graph.Create(out, graph.WriterOptions{Overwrite: p.Overwrite})
	if err != nil {
		return Summary{}, err
	}
	defer w.Abort()
	if p.Name != "" {
		w.Meta.Name = p.Name
	}
	w.Meta.Source, w.Meta.Notes = p.describe(kind), p.Notes
	m, err := make(p)
	if err != nil {
		return Summary{}, err
	}
	g, err := m.build(p)
	if err != nil {
		return Summary{}, err
	}
	p.report("write edges", 0, 1)
	if err := w.Graph(g); err != nil {
		return Summary{}, err
	}
	if p.EdgeFeatures > 0 && g.Edges() > 0 {
		p.report("write edge features", 0, 1)
		if err := p.writeEdgeFeatures(w, g, m.class); err != nil {
			return Summary{}, err
		}
	}
	*g = graph.CSR{} // the largest array is not needed beside the features
	m.source = nil
	return p.decorate(w, m)
}

// DiskBytes is about what the dataset will take; 0 where it cannot be drawn.
func (p Params) DiskBytes() int64 {
	if p.validate() != nil {
		return 0
	}
	each := 4 // of a feature
	if p.BFloat16 {
		each = 2
	}
	label := 4
	if p.Task == multilabel {
		label = p.Classes
	}
	return p.Nodes*int64(8+label+each*p.Features) + p.Edges*int64(4+4*p.EdgeFeatures)
}

// build draws and sorts the edges; repeated ones and self-loops are dropped.
func (m *model) build(p Params) (*graph.CSR, error) {
	var done atomic.Int64
	total := 2 * m.edges // every edge is drawn to be counted, and again to be placed
	source := m.source
	if p.Progress != nil {
		source = func(lo int64, src, dst []uint32, w []float32) {
			m.source(lo, src, dst, w)
			if now := done.Add(int64(len(src))); now>>20 != (now-int64(len(src)))>>20 {
				p.report("draw edges", now, total)
			}
		}
	}
	return graph.FromSource(int(p.Nodes), m.edges, false, source,
		graph.BuildOptions{Symmetrise: !p.Directed, DropDuplicates: true, DropSelfLoops: true})
}

func (p Params) report(stage string, done, total int64) {
	if p.Progress != nil {
		p.Progress(stage, done, total)
	}
}

// decorate adds labels, features and splits, and finishes the folder.
func (p Params) decorate(w *graph.Writer, m *model) (Summary, error) {
	var class, labels *graph.Labels
	if p.Classes > 0 {
		class = p.labels(m.class)
		labels = p.targets(class)
		if err := w.Labels(labels); err != nil {
			return Summary{}, err
		}
	}
	if p.Features > 0 {
		if err := p.writeFeatures(w, p.centre(class, labels)); err != nil {
			return Summary{}, err
		}
	}
	var s graph.Splits
	if labels != nil {
		var err error
		if s, err = SplitByFraction(int(p.Nodes), labels, p.Train, p.Val, p.Test, rng.New(p.Seed).Fold(splitStream)); err != nil {
			return Summary{}, err
		}
	}
	return finish(w, s)
}

// finish writes the splits, commits, and tells what was made.
func finish(w *graph.Writer, s graph.Splits) (Summary, error) {
	if err := w.Splits(s); err != nil {
		return Summary{}, err
	}
	if err := w.Commit(); err != nil {
		return Summary{}, err
	}
	m := w.Meta
	sum := Summary{Dir: w.Dir(), Name: m.Name, Nodes: m.Nodes, Edges: m.Edges, Symmetric: m.Symmetric, Task: m.Task, Classes: m.Classes, Notes: m.Notes,
		Train: len(s.Train), Val: len(s.Val), Test: len(s.Test)}
	if m.Features != nil {
		sum.Features, sum.FeatureKind = m.Features.Dim, m.Features.Kind
	}
	return sum, nil
}

func (p Params) labels(class func(v uint64) int) *graph.Labels {
	if class == nil {
		k := rng.New(p.Seed).Fold(classStream)
		class = func(v uint64) int { return k.IntN(v, p.Classes) }
	}
	l := &graph.Labels{Classes: p.Classes, Class: make([]int32, p.Nodes)}
	graph.Parallel(p.Nodes, 1<<14, func(lo, hi int64) {
		for v := lo; v < hi; v++ {
			l.Class[v] = int32(class(uint64(v)))
		}
	})
	return l
}

func badParam(field, found, want string) error {
	return &graph.InputError{Field: "--" + field, Found: found, Want: want}
}

func (p Params) validate() error {
	switch {
	case p.Nodes < 1 || p.Nodes > graph.MaxNodes:
		return badParam("nodes", fmt.Sprint(p.Nodes), "1 to 2^32-1")
	case p.Edges < 0 || p.Edges > graph.MaxEdges:
		return badParam("edges", fmt.Sprint(p.Edges), "0 to 2^32-1")
	case float64(p.Edges) > 0.5*float64(p.Nodes)*float64(p.Nodes-1):
		return badParam("edges", fmt.Sprintf("%d with --nodes %d", p.Edges, p.Nodes), "at most half of all pairs of vertices")
	case p.Features < 0 || p.Features > 1<<20:
		return badParam("features", fmt.Sprint(p.Features), "0 to 2^20")
	case p.EdgeFeatures < 0 || p.EdgeFeatures > 1<<16:
		return badParam("edge-feature-width", fmt.Sprint(p.EdgeFeatures), "0 to 2^16")
	case p.Classes < 0 || p.Classes > 1<<16 || int64(p.Classes) > p.Nodes:
		return badParam("classes", fmt.Sprint(p.Classes), "0 to 65536, and no more than vertices")
	case !slices.Contains(GeneratedTasks(), p.Task):
		return badParam("task", fmt.Sprintf("%q", p.Task), strings.Join(GeneratedTasks(), ", "))
	case p.Task != classify && p.Classes == 0:
		return badParam("task", p.Task+" without classes", "classes above 0, which labels are made of")
	case !(p.Signal >= 0 && p.Signal <= 1e6):
		return badParam("signal", fmt.Sprint(p.Signal), "0 to a million")
	}
	return checkFractions(p.Train, p.Val, p.Test)
}

// describe is what meta.json keeps of the parameters: enough to draw the graph again.
func (p Params) describe(kind string) string {
	s := fmt.Sprintf("generate %s --nodes %d --edges %d --features %d --classes %d --signal %g --seed %d --train %g --val %g --test %g",
		kind, p.Nodes, p.Edges, p.Features, p.Classes, p.Signal, p.Seed, p.Train, p.Val, p.Test)
	switch kind {
	case "sbm":
		s += fmt.Sprintf(" --communities %d --homophily %g --exponent %g --max-degree %g", p.Communities, p.Homophily, p.Exponent, p.MaxDegree)
	case "rmat":
		s += fmt.Sprintf(" --a %g --b %g --c %g", p.A, p.B, p.C)
	}
	if p.Task != classify {
		s += " --task " + p.Task
	}
	if p.EdgeFeatures > 0 {
		s += fmt.Sprintf(" --edge-feature-width %d", p.EdgeFeatures)
	}
	if p.Directed {
		s += " --directed"
	}
	return s
}
