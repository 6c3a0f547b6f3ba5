package run

import (
	"context"
	"fmt"
	"path/filepath"

	"starling/graph"
	"starling/nn"
	"starling/sample"
	"starling/setup"
	"starling/spec"
	"starling/train"
)

// heldOutBeside writes held-out edges if the run was given the dataset, and not only a partition of it.
func heldOutBeside(s *spec.Spec, dir string) error {
	if s.Task != nn.TaskLink || s.Dataset == "" || s.Dataset == s.PartitionFolder() {
		return nil
	}
	data, err := graph.Open(s.Dataset)
	if err != nil {
		return err
	}
	defer data.Close()
	return writeHeldOut(s, data, dir)
}

// heldOut are the edges held out for validation and the test, and their negatives.
func heldOut(s *spec.Spec, data *graph.Dataset) (sets [2][]sample.Pairs, err error) {
	if s.LearnsRelations() {
		opt, err := setup.Options(s, &data.Meta)
		if err != nil {
			return sets, err
		}
		return train.HeldOutOfRelations(data, &opt)
	}
	l, err := setup.EdgePairs(context.Background(), s, data) // also after a Ctrl-C
	if err != nil {
		return sets, err
	}
	for i, set := range []*sample.Ranked{l.Val, l.Test} {
		if set != nil {
			sets[i] = []sample.Pairs{set.Pairs, set.Against}
		}
	}
	return sets, nil
}

// writeHeldOut writes the held-out edges and their negatives, so that other programs can evaluate on the same pairs.
func writeHeldOut(s *spec.Spec, data *graph.Dataset, dir string) error {
	if s.Task != nn.TaskLink {
		return nil
	}
	sets, err := heldOut(s, data)
	if err != nil {
		return err
	}
	w := graph.NewFolderWriter(dir)
	for i, set := range sets {
		if set == nil {
			continue
		}
		for k, pairs := range set {
			list := make([]int64, 0, 2*pairs.Len())
			for j := range pairs.U {
				list = append(list, int64(pairs.U[j]), int64(pairs.V[j]))
			}
			if err := graph.PutArray(w, setup.HeldOutFiles[2*i+k], list, int64(pairs.Len()), 2); err != nil {
				return fmt.Errorf("%s: %w", filepath.Join(dir, setup.HeldOutFiles[2*i+k]), err)
			}
		}
	}
	return nil
}
