package spec

import (
	"fmt"
	"strings"

	"starling/graph"
	"starling/train"
)

// Facts are what is known of a run's workers before its data are open.
func (s *Spec) Facts() train.Facts {
	return train.Facts{Workers: s.Workers, Servers: max(s.Servers, 1), OnCard: s.OnCard()}
}

// unknown is a dataset that fits any setting, to check a run by whose data are not open yet.
var unknown = graph.Meta{Classes: 2, EdgeDim: 1, Features: &graph.FeatureMeta{Dim: 1}}

// checkComposition refuses what the strategy does not go together with: it says what itself.
func (s *Spec) checkComposition() error {
	if !s.Distributed() || s.Strategy == "auto" {
		return nil
	}
	opt, err := s.Options(&unknown)
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

// checkTransport refuses transports that other settings of the run do not go over.
func (s *Spec) checkTransport() error {
	transport := "--transport " + s.Transport
	switch {
	case s.InProcess && s.Transport != "auto" && s.Transport != "inprocess":
		return graph.Apart(transport, "--in-process", "workers in one process share its memory",
			"leave out one of the two")
	case s.Paths != "" && s.Goroutines():
		return graph.Apart("--paths", "workers in one process", "no bytes of this run leave by TCP",
			"leave out --in-process, or --paths")
	case s.Paths != "" && s.Transport == "mpi":
		return graph.Apart("--paths", transport, "MPI carries a whole run by itself, over the links it chooses",
			"use --transport tcp or auto, or leave out --paths")
	case s.Paths != "" && s.Transport == "shm":
		return graph.Apart("--paths", transport, "no bytes of this run leave by TCP",
			"use --transport auto, which takes "+
				"shared memory for one of the paths, or tcp")
	case s.TLS != "" && s.Transport == "mpi":
		return graph.Apart("--tls", transport, "workers join with it, but MPI carries rows as they are",
			"use --transport tcp, or leave out --tls where the network of MPI is trusted")
	}
	return nil
}

// apart is the refusal of a strategy that a setting is not for.
func apart(strategy, other, why string, use []string) error {
	return graph.Apart("--strategy "+strategy, other, why, fmt.Sprintf("use one of the strategies %s",
		strings.Join(use, ", ")))
}
