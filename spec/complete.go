package spec

import (
	"cmp"
	"fmt"

	"starling/partition"
	"starling/train"
)

// Complete sets what follows from other settings, and from the partition that they name: the number
// of workers, the strategy, what is auto for a model.
func (s *Spec) Complete() error {
	s.canonical()
	if err := s.CompleteParts(); err != nil {
		return err
	}
	dir := s.PartitionFolder()
	if dir != "" {
		return s.completeFromBook(dir)
	}
	s.complete(describe(s.Dataset))
	return nil
}

// completeFromBook takes the workers and servers from the book of a partition.
func (s *Spec) completeFromBook(dir string) error {
	book, err := partition.OpenBook(dir)
	if err != nil {
		return err
	}
	if s.Cluster.Workers == 0 {
		s.Cluster.Workers = book.Parts
	}
	if s.Strategy == "default" {
		s.Strategy = s.DefaultStrategy()
	}
	switch {
	case s.Strategy == "none":
		return Mistake("--strategy", "none", s.DefaultStrategy()+" for a partition",
			"give the dataset itself to train without workers")
	case s.Cluster.Workers != book.Parts:
		return Mistake("--workers", fmt.Sprint(s.Cluster.Workers), fmt.Sprintf("%d, the parts of %s", book.Parts, dir),
			"leave it (and --parts) out, or make another partition")
	case s.Cluster.Servers == 0 && book.Servers > 1:
		s.Cluster.Servers = book.Servers
	}
	data := dataset{sparse: isSparse(book.Features), train: book.Train, schema: book.Schema}
	if book.Schema != nil {
		data.targets = []string{book.Target}
	}
	s.complete(data)
	return nil
}

// complete is Complete without reading any file.
func (s *Spec) complete(data dataset) {
	if s.Cluster.Workers == 0 {
		s.Cluster.Workers = 1
	}
	if s.Strategy == "default" || s.Undecided() && s.Cluster.Workers == 1 {
		s.Strategy = "none"
		if s.Cluster.Workers > 1 {
			s.Strategy = s.DefaultStrategy()
		}
	}
	s.completeTarget(data)
	s.completeEmbeddings()
	s.completeModel(data)
	s.completePairs()
}

// strategyDefaults are the strategies of several workers where none is chosen, in words.
func strategyDefaults() string {
	full, mini := Spec{Mode: string(train.FullGraph)}, Spec{Mode: string(train.MiniBatch)}
	return full.DefaultStrategy() + " or, in mini-batches, " + mini.DefaultStrategy()
}

// DefaultStrategy is the strategy of several workers in this mode, with the options that were given.
func (s *Spec) DefaultStrategy() string {
	d, _ := train.DefaultFor(train.Mode(s.Mode), s.Settings)
	if d = cmp.Or(d, train.Default()); d != nil {
		return d.Name
	}
	return "none" // no strategy is registered
}

// Lacking is why the strategy of several workers in this mode, where none is chosen, is not the usual one: which of
// the options given that one does not go with. "": it is the usual one.
func (s *Spec) Lacking() string {
	d, lacks := train.DefaultFor(train.Mode(s.Mode), s.Settings)
	if lacks == "" {
		return ""
	}
	return fmt.Sprintf("strategy %s, since %s does not go with %s", d.Name, train.DefaultOf(d.Mode).Name, lacks)
}
