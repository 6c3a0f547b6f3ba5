package spec

import (
	"cmp"
	"fmt"
	"slices"

	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/train"
)

// Validate names the first setting that makes no sense, or contradicts another. What is still
// auto makes sense.
func (s *Spec) Validate() error {
	completed := *s
	completed.completeModel(dataset{})
	completed.completePairs()
	return completed.validate()
}

// CheckValues refuses settings that make no sense by themselves, whatever the others are: of what has many runs, which
// differ in some.
func (s *Spec) CheckValues() error {
	completed := *s
	completed.completeModel(dataset{})
	completed.completePairs()
	return completed.checkValues()
}

func (s *Spec) checkValues() error {
	if err := checkFields(s); err != nil {
		return err
	}
	for _, g := range s.groups() {
		if err := g.Validate(); err != nil {
			return err
		}
	}
	return train.CheckSettings(s.Settings)
}

// validate checks every group by itself, and then all of them together.
func (s *Spec) validate() error {
	if err := s.checkValues(); err != nil {
		return err
	}
	for _, check := range []func() error{s.checkStrategy, s.checkTask, s.checkFanouts, s.checkTemporal,
		s.checkPairs, s.checkEmbeddings, s.checkUnused, s.checkTogether, s.checkComposition, s.checkFiles} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkUnused refuses settings without effect, and options that the strategy does not have.
func (s *Spec) checkUnused() error {
	all := slices.Concat(s.modelEffects(), s.Optimizer.effects(), s.Training.effects(), s.objectiveEffects(),
		s.Checkpoints.effects(),
		s.machineEffects(), s.clusterEffects(), s.launchEffects(), s.batchEffects(), s.pairEffects(),
		s.Embeddings.effects())
	return cmp.Or(checkEffects(all), s.checkOptions())
}

// checkTogether refuses settings of workers that contradict each other.
func (s *Spec) checkTogether() error {
	c := &s.Cluster
	switch {
	case s.Launch.TLS != "" && c.Transport == "mpi":
		return graph.Apart("--tls", "--transport mpi", "workers join with it, but MPI carries rows as they are",
			"use --transport tcp, or leave out --tls where the network of MPI is trusted")
	case c.Transport == "mpi" && !s.Launch.NoLaunch:
		return Mistake("--transport", "mpi in a process that was not started by MPI", "an MPI launcher",
			"start the run as mpirun -n 4 starling train ...; see docs/mpi.md")
	case c.Servers > 0 && c.Workers%c.Servers != 0:
		return Mistake("--servers", fmt.Sprintf("%d for %s", c.Servers, event.Tally(c.Workers, "worker")),
			"a divisor of the workers",
			"")
	}
	return nil
}

// Facts are what is known of a run's workers before its data are open.
func (s *Spec) Facts() train.Facts {
	return train.Facts{Workers: s.Cluster.Workers, Servers: max(s.Cluster.Servers, 1)}
}

// unknown is a dataset that fits any setting, to check a run by whose data are not open yet.
func (s *Spec) unknown() *graph.Meta {
	m := &graph.Meta{Classes: 2, EdgeDim: 1, Features: &graph.FeatureMeta{Dim: 1}}
	if nn.IsTyped(s.Model.Name) {
		m.Classes = max(s.Model.Blocks, 2) // blocks divide the classes, which are not known
		m.Schema = &unknownSchema
	}
	return m
}

// unknownSchema is of one type and one relation.
var unknownSchema = graph.Schema{Types: []graph.VertexType{{Name: "vertex"}},
	Relations: []graph.Relation{{Name: "edge"}}}

// checkComposition refuses what the strategy does not go together with, as its descriptor says.
func (s *Spec) checkComposition() error {
	if !s.Distributed() || s.Strategy == "auto" {
		return nil
	}
	opt, err := s.Options(s.unknown())
	if err != nil {
		return err
	}
	return train.Check(&opt, s.Facts())
}

// CheckData is Validate again, with what is known once the data are open.
func (s *Spec) CheckData(data *graph.Meta, weighted bool) error {
	opt, err := s.Options(data)
	if err != nil {
		return err
	}
	f := s.Facts()
	if f.Weighted = weighted; data.Features != nil {
		f.Features = data.Features.Kind
	}
	return train.Check(&opt, f)
}
