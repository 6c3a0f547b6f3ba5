package dataset

import "starling/graph"

// Progress is called with the state of a long task, perhaps from
// several goroutines at once.
type Progress func(stage string, done, total int64)

// Summary describes a dataset folder.
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
	Schema           *graph.Schema // of a typed graph; features, classes and splits are by type
	Notes            []string
}

// Commit writes the splits, commits the folder, and summarises it.
func Commit(w *graph.Writer, s graph.Splits) (Summary, error) {
	if err := w.Splits(s); err != nil {
		return Summary{}, err
	}
	if err := w.Commit(); err != nil {
		return Summary{}, err
	}
	m := w.Meta
	sum := Summary{Dir: w.Dir(), Name: m.Name, Nodes: m.Nodes, Edges: m.Edges, Symmetric: m.Symmetric, Task: m.Task,
		Classes: m.Classes, Notes: m.Notes, Schema: m.Schema,
		Train: len(s.Train), Val: len(s.Val), Test: len(s.Test)}
	if m.Features != nil {
		sum.Features, sum.FeatureKind = m.Features.Dim, m.Features.Kind
	}
	return sum, nil
}
