package setup

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"starling/disk"
	"starling/graph"
	"starling/nn"
	"starling/partition"
	"starling/spec"
)

// Parts is a partition that a run trains on.
type Parts struct {
	Dir  string // absolute: workers may be started elsewhere
	Book *partition.Book
	Meta graph.Meta // of the dataset, as far as is known
	// Remove deletes a partition that was made for this run only.
	Remove func()
}

// OpenParts reads the book of a partition, which has the features and labels that a run needs.
func OpenParts(dir string, s *spec.Spec) (*Parts, error) {
	book, err := partition.OpenBook(dir)
	if err != nil {
		return nil, err
	}
	if err := checkBookTypes(dir, book, s); err != nil {
		return nil, err
	}
	switch {
	case book.Features == nil && book.Schema == nil && s.Embeddings.Dim == 0:
		return nil, NoFeatures(dir)
	case book.Task == "" && !s.LearnsPairs():
		return nil, noLabels(dir, "labels")
	case book.Train == 0 && !s.LearnsPairs():
		return nil, noLabels(dir, "training split")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	return PartsOf(abs, book), nil
}

// checkBookTypes refuses a model or a target that the partition is not for.
func checkBookTypes(dir string, book *partition.Book, s *spec.Spec) error {
	if book.Schema != nil && !s.LearnsRelations() && s.Target != "" && s.Target != book.Target && book.Schema.Type(s.Target) >= 0 {
		return &graph.InputError{File: dir, Field: "--target", Found: s.Target,
			Want: fmt.Sprintf("%s, whose labels the partition has", book.Target),
			Fix:  "partition the dataset again with --target " + s.Target}
	}
	return s.CheckTypes(dir, book.Schema, []string{book.Target})
}

// PartsOf is an open partition.
func PartsOf(dir string, book *partition.Book) *Parts {
	return &Parts{Dir: dir, Book: book, Remove: func() {},
		Meta: graph.Meta{Name: book.Dataset, Nodes: book.Nodes, Edges: book.Edges, Symmetric: book.Symmetric,
			EdgeDim: book.EdgeDim, Features: book.Features, Task: book.Task, Classes: book.Classes,
			ClassNames: book.ClassNames, Schema: book.Schema, Preparation: book.Preparation}}
}

// Suits refuses settings that the partition is not for.
func (p *Parts) Suits(s *spec.Spec) error {
	switch {
	case s.Training.Patience > 0 && !s.LearnsPairs() && p.Book.Val == 0:
		return spec.Mistake("--patience", fmt.Sprint(s.Training.Patience), "0 for a dataset without a validation split",
			"")
	case s.Model.EdgeFeatures && p.Book.EdgeDim == 0:
		return &graph.InputError{File: p.Dir, Field: "--edge-features",
			Found: "a partition whose edges have none",
			Want:  "edge_features.npy in its parts",
			Fix:   "add the file to the dataset (see docs/data.md) and partition it again, or leave the flag out"}
	}
	if err := s.ForLabels(&p.Meta); err != nil {
		return err
	}
	return s.CheckData(&p.Meta, p.Book.Weighted)
}

// Judge chooses the metric by the training vertices of each class, which only two classes need: by the book, or in a
// partition of a version whose book does not have them by its parts, which are then on this host.
func (p *Parts) Judge(s *spec.Spec) error {
	counts := slices.Clone(p.Book.TrainClasses)
	if len(counts) == 0 && p.Book.Classes == 2 && p.Book.Task == graph.SingleLabel && s.Objective.Metric == "auto" {
		for k := range p.Book.Parts {
			part, err := partition.OpenPart(p.Dir, k)
			if err != nil {
				return err
			}
			for c, n := range nn.LabelCounts(part.Labels, part.Splits.Train) {
				if k == 0 {
					counts = append(counts, 0)
				}
				counts[c] += n
			}
			part.Close()
		}
	}
	s.ForCounts(counts)
	return nil
}

// TemporaryFolder is a temporary folder of this process: if it is killed, the next process that makes
// one removes it.
func TemporaryFolder() (dir string, remove func(), err error) {
	const name = "starling-parts-*"
	disk.Sweep(filepath.Join(os.TempDir(), name))
	if dir, err = os.MkdirTemp("", name); err != nil {
		return "", nil, err
	}
	release, err := disk.Hold(dir)
	if err != nil {
		os.RemoveAll(dir)
		return "", nil, err
	}
	return dir, sync.OnceFunc(func() {
		os.RemoveAll(dir)
		release()
	}), nil
}
