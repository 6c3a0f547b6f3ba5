package setup

import (
	"starling/graph"
	"starling/partition"
	"starling/spec"
)

// CheckEdges refuses settings that need something of the edges that they do not have.
func CheckEdges(s *spec.Spec, data *graph.Dataset) error {
	switch {
	case s.Model.EdgeFeatures && data.Graph.EdgeDim == 0:
		return &graph.InputError{File: s.Dataset, Field: "--edge-features", Found: "a dataset whose edges have none",
			Want: "edge_features.npy, one row per edge", Fix: "leave it out, or add the file: see docs/data.md"}
	case s.LearnsPairs() && !hasPairs(data.Graph):
		return &graph.InputError{File: s.Dataset, Field: "--task",
			Found: s.Task + " with a graph that has no edge between two vertices", Want: "edges to learn from",
			Fix: "import the dataset with its edges"}
	case s.Batches.Weighted && data.Graph.Weights == nil:
		return &graph.InputError{File: s.Dataset, Field: "--weighted", Found: "a graph without edge weights",
			Want: "a dataset with weights.npy", Fix: "leave it out, or import the graph with weights"}
	}
	return nil
}

// OpenForTraining maps a dataset and checks what training relies on. A pass over all of it
// costs less than an epoch, which reads it too. Tasks of pairs need no labels.
func OpenForTraining(s *spec.Spec) (*graph.Dataset, error) {
	dir := s.Dataset
	if dir == "" {
		return nil, spec.Mistake("DIR", "no dataset", "a dataset folder",
			"make one with starling generate or starling import")
	}
	d, err := graph.OpenWith(dir, graph.OpenOptions{CheckFeatures: true})
	if err != nil {
		return nil, err
	}
	if 4*d.Graph.Edges() > graph.SmallArray {
		err = graph.InFile(dir, d.Graph.Validate())
	}
	if err == nil {
		err = setTarget(s, d)
	}
	switch {
	case err != nil:
	case d.Features == nil && !d.Typed() && s.Embeddings.Dim == 0:
		err = NoFeatures(dir)
	case s.LearnsPairs():
	case d.Labels == nil:
		err = noLabels(dir, "labels")
	case len(d.Splits.Train) == 0:
		err = noLabels(dir, "training split")
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// setTarget makes the labels of a typed graph those of its target.
func setTarget(s *spec.Spec, d *graph.Dataset) error {
	var targets []string
	for _, k := range d.Targets() {
		targets = append(targets, d.Meta.Schema.Types[k].Name)
	}
	if err := s.CheckTypes(d.Dir, d.Meta.Schema, targets); err != nil || !d.Typed() {
		return err
	}
	if !s.LearnsRelations() {
		d.SetTarget(d.Meta.Schema.Type(s.Target))
	}
	return nil
}

// hasPairs reports whether any edge leads to another vertex.
func hasPairs(g *graph.CSR) bool {
	for v := range uint32(g.Nodes()) {
		for _, u := range g.Neighbors(v) {
			if u != v {
				return true
			}
		}
	}
	return false
}

// NoPartition refuses a partition where only the whole dataset will do.
func NoPartition(dir string) error {
	if !partition.IsPartition(dir) {
		return nil
	}
	return &graph.InputError{File: dir, Found: "a partition", Want: "a dataset folder", Fix: "give the dataset that it was cut from"}
}

// OrShrunk is a result and its error. Where a mapped file was shortened meanwhile, that is the error: others follow
// from it, and a run that came to its end all the same may have got zeros of the file's last page.
func OrShrunk[T any](result *T, err error) (*T, error) {
	if lost := graph.Shrunk(); lost != nil {
		return nil, lost
	}
	return result, err
}
