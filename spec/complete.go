package spec

import (
	"fmt"
	"io"
	"os"
	"slices"

	"starling/graph"
	"starling/partition"
	"starling/tensor"
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
	if s.Workers == 0 {
		s.Workers = book.Parts
	}
	if s.Strategy == "default" {
		s.Strategy = s.defaultStrategy()
	}
	switch {
	case s.Strategy == "none":
		return Mistake("--strategy", "none", s.defaultStrategy()+" for a partition",
			"give the dataset itself to train without workers")
	case s.Workers != book.Parts:
		return Mistake("--workers", fmt.Sprint(s.Workers), fmt.Sprintf("%d, the parts of %s", book.Parts, dir),
			"leave it (and --parts) out, or make another partition")
	case s.Servers == 0 && book.Servers > 1:
		s.Servers = book.Servers
	}
	s.complete(dataset{sparse: isSparse(book.Features), train: book.Train})
	return nil
}

// complete is Complete without reading any file.
func (s *Spec) complete(data dataset) {
	if s.Workers == 0 {
		s.Workers = 1
	}
	if s.Strategy == "default" || s.Undecided() && s.Workers == 1 {
		s.Strategy = "none"
		if s.Workers > 1 {
			s.Strategy = s.defaultStrategy()
		}
	}
	s.completeEmbeddings()
	s.completeModel(data)
	s.completePairs()
}

// defaultStrategy is that of several workers in this mode.
func (s *Spec) defaultStrategy() string {
	if d := train.DefaultOf(train.Mode(s.Mode)); d != nil {
		return d.Name
	}
	return train.Default().Name
}

// CompleteParts takes --parts as the number of workers, since each trains one, and a
// method in --partition as --partitioner; a folder of that name has precedence.
func (s *Spec) CompleteParts() error {
	if _, err := os.Stat(s.Partition); err != nil && slices.Contains(partition.Names(), s.Partition) {
		if s.Partitioner != s.Partition && s.Partitioner != Default().Partitioner {
			return Mistake("--partitioner", s.Partitioner+" beside --partition "+s.Partition, "one method to cut with",
				"leave out one of the two")
		}
		s.Partition, s.Partitioner = "", s.Partition
	}
	switch {
	case s.Parts == 0:
	case s.Parts < 0 || s.Workers != 0 && s.Workers != s.Parts:
		return Mistake("--parts", fmt.Sprintf("%d, and --workers %d", s.Parts, s.Workers), "as many parts as workers",
			"leave out one of the two")
	default:
		s.Workers, s.Parts = s.Parts, 0
	}
	return nil
}

// PartitionFolder is the partition that the user names; "": none.
func (s *Spec) PartitionFolder() string {
	switch {
	case s.Partition != "":
		return s.Partition
	case s.Dataset != "" && partition.IsPartition(s.Dataset):
		return s.Dataset
	}
	return ""
}

// ForData sets what auto means for this dataset on this machine, level being its best
// instruction set. It looks at the machine's total memory, not at what is free now, so
// that the same run gives the same numbers tomorrow.
func (s *Spec) ForData(data *graph.Meta, level string) {
	if s.SIMD == "auto" && s.DType != "f64" { // which uses none
		s.SIMD = level
	}
	if s.CacheFirst != "auto" {
		return
	}
	s.CacheFirst = "off"
	f := data.Features
	if s.LearnEmbeddings > 0 || f == nil { // the first layer's sum changes
		return
	}
	more := data.Nodes * int64(f.Dim) * int64(s.RowType().Size())
	if total := tensor.MemoryTotal(); f.Kind != graph.Sparse && (total == 0 || more < total/4) {
		s.CacheFirst = "on"
	}
}

// ReadHosts reads a file of hosts to start workers on.
func ReadHosts[H any](path string, read func(io.Reader) ([]H, error)) ([]H, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, Mistake("--hosts", notOpened(err), "a file with one host per line", "for example alpha slots=4")
	}
	defer f.Close()
	hosts, err := read(f)
	if err != nil {
		return nil, Mistake("--hosts", graph.Sentence(path+": "+err.Error()), "", "")
	}
	return hosts, nil
}
