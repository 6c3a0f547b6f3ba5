package setup

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"starling/dataset/candidates"
	"starling/graph"
	"starling/sample"
	"starling/spec"
	"starling/train"
)

// Options completes the options of a run by the pairs that files give to be measured on.
func Options(s *spec.Spec, meta *graph.Meta) (train.Options, error) {
	opt, err := s.Options(meta)
	if err == nil && opt.Pairs != nil {
		opt.Pairs.Lists, err = lists(s, opt.Pairs.Relations)
	}
	return opt, err
}

// lists are the pairs of --val-candidates and --test-candidates, of a relation where the graph has types; nil: none are
// given. Every worker reads the files, and names from the dataset.
func lists(s *spec.Spec, relations []int) (*sample.Lists, error) {
	if !s.Pairs.Listed() {
		return nil, nil
	}
	flag, path := s.Pairs.Candidates()
	if s.Dataset == "" || s.Dataset == s.PartitionFolder() {
		return nil, spec.Mistake(flag, path+" with a partition alone", "the dataset too, which knows vertices by name",
			"give the dataset, and the partition with --partition")
	}
	data, err := graph.Open(s.Dataset)
	if err != nil {
		return nil, err
	}
	defer data.Close()
	ends, err := endsOf(data, relations, flag, path)
	if err != nil {
		return nil, err
	}
	out := &sample.Lists{}
	out.Val, err = list(s, "--val-candidates", s.Pairs.ValCandidates, ends)
	if err == nil {
		out.Test, err = list(s, "--test-candidates", s.Pairs.TestCandidates, ends)
	}
	return out, err
}

// endsOf finds the vertices that pairs may have.
func endsOf(d *graph.Dataset, relations []int, flag, path string) (candidates.Ends, error) {
	if !d.Typed() {
		find := graph.NewNames(d).Find
		return candidates.Ends{Source: find, Target: find}, nil
	}
	if len(relations) != 1 {
		return candidates.Ends{}, spec.Mistake(flag, fmt.Sprintf("%s for %d relations", path, len(relations)),
			"one relation, whose edges its pairs are", "name it with --target")
	}
	r := &d.Meta.Schema.Relations[relations[0]]
	return candidates.Ends{Source: ofType(d, r.Source), Target: ofType(d, r.Target)}, nil
}

// ofType finds vertices of a type.
func ofType(d *graph.Dataset, k int) func(name string) (uint32, bool) {
	names, first := graph.NewNames(d.OfType(k)), uint32(d.Meta.Schema.Types[k].First)
	return func(name string) (uint32, bool) {
		v, ok := names.Find(name)
		return first + v, ok
	}
}

// list reads a file; nil: none is given.
func list(s *spec.Spec, flag, path string, ends candidates.Ends) (*sample.Listed, error) {
	if path == "" {
		return nil, nil
	}
	c, err := candidates.Read(path, ends)
	if err != nil {
		return nil, err
	}
	metric := cmp.Or(s.Objective.Metric, "mrr")
	if names := train.RankNames(c.K); train.OfRanks(metric) && !slices.Contains(names, metric) {
		among := fmt.Sprintf("%d candidates of each pair", c.K)
		if c.K == 0 {
			among = "candidates that all pairs share"
		}
		return nil, spec.Mistake("--metric", fmt.Sprintf("%s with %s %s, which has %s", metric, flag, path, among),
			"one of "+strings.Join(names, ", "), "")
	}
	return &sample.Listed{Pairs: sample.Pairs{U: c.Left, V: c.Right}, Ends: c.Against, K: c.K,
		Shared: sample.Pairs{U: c.SharedLeft, V: c.SharedRight}}, nil
}

// WholePaths has workers find the files that they read, wherever they are started.
func WholePaths(s *spec.Spec) (err error) {
	for _, path := range []*string{&s.Pairs.ValCandidates, &s.Pairs.TestCandidates} {
		if *path != "" && err == nil {
			*path, err = filepath.Abs(*path)
		}
	}
	if s.Pairs.Listed() && s.Dataset != "" && err == nil {
		s.Dataset, err = filepath.Abs(s.Dataset)
	}
	return err
}
