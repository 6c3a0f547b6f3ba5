package generate

import (
	"fmt"
	"strings"
	"sync/atomic"

	"starling/dataset"
	"starling/graph"
	"starling/rng"
)

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

// Kinds lists the generators of graphs of one type.
func Kinds() []string { return []string{"sbm", "rmat", "er"} }

// Keys of the separate streams of draws under one seed; dataset.SplitStream is another.
const (
	edgeStream        = 1
	communityStream   = 2
	degreeStream      = 3
	classStream       = 4
	centreStream      = 5
	noiseStream       = 6
	pilotStream       = 8
	scrambleStream    = 9
	taskStream        = 10
	edgeFeatureStream = 11
	relationStream    = 12
	fraudStream       = 13
)

// Dataset draws a graph of the given kind (sbm, rmat, er, typed) and writes it to the folder out.
func Dataset(kind string, p Params, out string) (dataset.Summary, error) {
	newModel, ok := generators[kind]
	if kind == TypedKind && p.typed != nil {
		return p.typedDataset(out)
	}
	if !ok {
		return dataset.Summary{}, badParam("kind", fmt.Sprintf("%q", kind), strings.Join(Kinds(), ", "))
	}
	if err := p.validate(); err != nil {
		return dataset.Summary{}, err
	}
	w, err := graph.Create(out, graph.WriterOptions{Overwrite: p.Overwrite})
	if err != nil {
		return dataset.Summary{}, err
	}
	defer w.Abort()
	if p.Name != "" {
		w.Meta.Name = p.Name
	}
	w.Meta.Source, w.Meta.Notes = p.describe(kind), p.Notes
	m, err := newModel(p)
	if err != nil {
		return dataset.Summary{}, err
	}
	if err := m.write(w, p); err != nil {
		return dataset.Summary{}, err
	}
	m.source = nil
	return p.decorate(w, m)
}

// write draws, sorts and writes the edges; repeated ones and self-loops are dropped. What memory could not hold is
// made in windows of rows.
func (m *model) write(w *graph.Writer, p Params) error {
	opt := graph.BuildOptions{Symmetrize: !p.Directed, DropDuplicates: true, DropSelfLoops: true}
	stored := m.edges
	if opt.Symmetrize {
		stored *= 2
	}
	if stored > graph.MaxLocalEdges {
		return m.writeWindows(w, p, opt, stored)
	}
	// Every edge is drawn twice: to be counted and to be placed.
	g, err := graph.FromSource(int(p.Nodes), m.edges, false, m.reported(p, 2), opt)
	if err != nil {
		return err
	}
	p.report("write edges", 0, 1)
	if err := w.Graph(g); err != nil || p.EdgeFeatures == 0 || g.Edges() == 0 {
		return err
	}
	p.report("write edge features", 0, 1)
	return p.writeEdgeFeatures(w, g, m.class)
}

func (m *model) writeWindows(w *graph.Writer, p Params, opt graph.BuildOptions, stored int64) error {
	if p.EdgeFeatures > 0 {
		return badParam("edge-features", fmt.Sprintf("%d for %d stored edges", p.EdgeFeatures, stored),
			"0 of a graph of 2^32 edges or more")
	}
	return w.Source(int(p.Nodes), m.edges, m.reported(p, 1+graph.Windows(stored)), opt)
}

// reported is the source of edges, with progress; each edge is drawn this number of times.
func (m *model) reported(p Params, times int64) graph.EdgeSource {
	if p.Progress == nil {
		return m.source
	}
	var done atomic.Int64
	return func(lo int64, src, dst []uint32, w []float32) {
		m.source(lo, src, dst, w)
		if now := done.Add(int64(len(src))); now>>20 != (now-int64(len(src)))>>20 {
			p.report("draw edges", now, times*m.edges)
		}
	}
}

func (p Params) report(stage string, done, total int64) {
	if p.Progress != nil {
		p.Progress(stage, done, total)
	}
}

// decorate adds labels, features and splits, and finishes the folder.
func (p Params) decorate(w *graph.Writer, m *model) (dataset.Summary, error) {
	var class, labels *graph.Labels
	if p.Classes > 0 {
		class = p.labels(m.class)
		labels = p.targets(class)
		if err := w.Labels(labels); err != nil {
			return dataset.Summary{}, err
		}
	}
	if p.Features > 0 {
		if err := p.writeFeatures(w, p.centre(class, labels)); err != nil {
			return dataset.Summary{}, err
		}
	}
	var s graph.Splits
	if labels != nil {
		var err error
		if s, err = dataset.SplitByFraction(int(p.Nodes), labels, p.Train, p.Val, p.Test,
			rng.New(p.Seed).Fold(dataset.SplitStream)); err != nil {
			return dataset.Summary{}, err
		}
	}
	return dataset.Commit(w, s)
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
