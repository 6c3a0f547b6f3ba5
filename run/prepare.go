package run

import (
	"cmp"
	"context"
	"fmt"

	"starling/event"
	"starling/graph"
	"starling/spec"
	"starling/tensor"
	"starling/tensor/cpu/simd"
	"starling/train"
)

// prepared is a run of one worker that can start: its spec complete, its data open, its plan
// made.
type prepared struct {
	spec spec.Spec
	data *graph.Dataset
	plan *Plan
	from *train.State // nil: from the beginning
}

// DryRun is the spec completed with defaults, and what the run would need.
func DryRun(s spec.Spec, events event.Listener) (spec.Spec, *Plan, error) {
	if err := complete(&s); err != nil {
		return s, nil, err
	}
	s, _, err := decide(context.Background(), s, event.All(events))
	if err != nil {
		return s, nil, err
	}
	if s.Distributed() {
		return dryRunCluster(s, event.All(events))
	}
	p, err := prepare(s, event.All(events))
	if err != nil {
		return s, nil, err
	}
	defer p.data.Close()
	return p.spec, p.plan, nil
}

// complete completes a spec as its files say.
func complete(s *spec.Spec) error {
	if err := countSlots(s); err != nil {
		return err
	}
	return s.Complete()
}

// checkSpec is all that can be checked before the data is open.
func checkSpec(s *spec.Spec) error {
	if err := cmp.Or(s.Validate(), s.Machine.CheckSIMD(simd.Supported().String())); err != nil {
		return err
	}
	for _, f := range []struct{ flag, path string }{
		{"--json", s.Output.JSON}, {"--events", s.Output.Events}, {"--trace", s.Output.Trace},
	} {
		if err := spec.CheckFile(f.flag, f.path); err != nil {
			return err
		}
	}
	return checkModelFolder(s)
}

// prepare checks all that can be checked before the first epoch.
func prepare(s spec.Spec, events event.Listener) (*prepared, error) {
	if err := checkSpec(&s); err != nil {
		return nil, err
	}
	data, err := openForTraining(&s)
	if err != nil {
		return nil, err
	}
	p := &prepared{spec: s, data: data}
	if err = checkEdges(&s, data); err == nil {
		err = checkWeights(&s, data.Graph)
	}
	if err == nil {
		noteWeights(&s, data.Graph.Weights != nil, event.All(events))
		err = p.complete(events)
	}
	if err != nil {
		data.Close()
		return nil, err
	}
	return p, nil
}

// checkEdges refuses settings that need something of the edges that they do not have.
func checkEdges(s *spec.Spec, data *graph.Dataset) error {
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

// complete completes the spec from the data, the checkpoints and the machine, and makes the
// plan.
func (p *prepared) complete(events event.Listener) (err error) {
	s := &p.spec
	if s.Training.Patience > 0 && !s.LearnsPairs() && len(p.data.Splits.Val) == 0 {
		return spec.Mistake("--patience", fmt.Sprint(s.Training.Patience), "0 for a dataset without a validation split",
			"")
	}
	if err := s.ForLabels(&p.data.Meta); err != nil {
		return err
	}
	from, err := startOf(s, func() savedData { return identity(p.data) }, &p.data.Meta, events)
	if err != nil {
		return err
	}
	if from != nil {
		p.from = from.State
	}
	s.ForData(&p.data.Meta, simd.Best().String())
	if p.plan, err = plan(s, p.data); err != nil {
		return err
	}
	if err := checkDiskRoom(s, p.plan.Parameters); err != nil {
		return err
	}
	again := func(other *spec.Spec) (*Plan, error) { return plan(other, p.data) }
	if err := chooseDevice(s, p.plan, again, events); err != nil || s.Machine.OnGPU() {
		return err
	}
	return fitsMemory(s, p.plan, p.data, tensor.MemoryFree())
}

// openForTraining maps a dataset and checks what training relies on. A pass over all of it
// costs less than an epoch, which reads it too. Tasks of pairs need no labels.
func openForTraining(s *spec.Spec) (*graph.Dataset, error) {
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
	switch {
	case err != nil:
	case d.Features == nil && s.Embeddings.Dim == 0:
		err = noFeatures(dir)
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
