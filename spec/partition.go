package spec

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"starling/graph"
	"starling/partition"
)

// Partition is everything a user can say to starling partition.
type Partition struct {
	Parts, Servers, Workers int
	Method, Objective       string
	Balance                 string
	BestEffort              bool
	Seed                    uint64
	Tries                   int
	Threads, Passes, Hops   int
	Out, PartDir            string
	Overwrite, Verify       bool
	HTML                    string
	JSON                    string
	Quiet                   bool

	// The model whose traffic and memory are planned.
	Model                 string
	Layers, Hidden, Heads int
	BatchSize             int
	Fanout                []int
}

// DefaultPartition is the spec of a partition without any flag.
func DefaultPartition() Partition {
	return Partition{Method: "multilevel", Objective: "cut", Seed: 1, Tries: 1, Servers: 1,
		Model: "sage", Layers: 3, Hidden: 256, Heads: 4, BatchSize: 1024, Fanout: []int{15, 10, 5}}
}

// CheckUnused refuses settings that the method does not use. It is for one method: a
// comparison gives all methods the same settings.
func (s *Partition) CheckUnused() error {
	for _, f := range []struct {
		flag    string
		given   bool
		methods []string
	}{
		{"--passes", s.Passes != 0, []string{"ldg", "fennel", "bytegnn"}},
		{"--hops", s.Hops != 0, []string{"bytegnn"}},
		{"--objective", s.Objective == "volume", []string{"multilevel", "g3", "metis"}},
	} {
		if f.given && !slices.Contains(f.methods, s.Method) {
			return Mistake(f.flag, noEffect, "", "only for --method "+strings.Join(f.methods, ", "))
		}
	}
	return nil
}

// CheckOutput makes sure before the graph is cut that the results can be written.
func (s *Partition) CheckOutput() error {
	err := cmp.Or(CheckNotStdout("--out", s.Out), CheckFile("--json", s.JSON), CheckFile("--html", s.HTML))
	if err != nil {
		return err
	}
	if s.Out != "" {
		if err := CheckWritable("--out", filepath.Dir(filepath.Clean(s.Out))); err != nil {
			return err
		}
	}
	parts, err := s.parts()
	if err != nil {
		return err
	}
	for _, dir := range s.partDirs(parts) {
		if err := CheckWritable("--part-dir", filepath.Dir(filepath.Clean(dir))); err != nil {
			return err
		}
	}
	return nil
}

// parts is how many there are to be.
func (s *Partition) parts() (int, error) {
	parts := s.Parts
	if s.Workers > 0 {
		if parts = s.Workers * max(s.Servers, 1); s.Parts != 0 && s.Parts != parts {
			return 0, Mistake("--parts", fmt.Sprint(s.Parts),
				fmt.Sprintf("%d, the servers times the workers of each", parts),
				"leave --parts or --workers out")
		}
	}
	if parts < 1 {
		return 0, Mistake("--parts", fmt.Sprint(parts), "at least 1", "give --parts K, or --servers S --workers W")
	}
	return parts, nil
}

// partDirs are the folders of the parts; nil: they are in Out.
func (s *Partition) partDirs(parts int) (dirs []string) {
	for k := range parts {
		if s.PartDir != "" {
			dirs = append(dirs, strings.ReplaceAll(s.PartDir, "{}", strconv.Itoa(k)))
		}
	}
	return dirs
}

// Options checks the spec and returns it as package partition takes it.
func (s *Partition) Options() (opt partition.Options, err error) {
	parts, err := s.parts()
	if err != nil {
		return opt, err
	}
	objective, err := partition.ParseObjective(s.Objective)
	if err != nil {
		return opt, PartitionMistake(err)
	}
	if err := s.check(parts); err != nil {
		return opt, err
	}
	return partition.Options{Parts: parts, Servers: s.Servers, Method: s.Method, Objective: objective,
		Balance: s.Balance, BestEffort: s.BestEffort, Seed: s.Seed, Tries: s.Tries,
		Threads: s.Threads, Passes: s.Passes, Hops: s.Hops,
		Out: s.Out, PartDirs: s.partDirs(parts), Overwrite: s.Overwrite, Verify: s.Verify, Compare: s.HTML != "",
		Model: partition.Model{Name: s.Model, Layers: s.Layers, Hidden: s.Hidden, Heads: s.Heads,
			BatchSize: s.BatchSize, Fanout: s.Fanout}}, nil
}

func (s *Partition) check(parts int) error {
	names := partition.Names()
	switch {
	case s.Servers < 1 || s.Servers > parts:
		return Mistake("--servers", fmt.Sprint(s.Servers), fmt.Sprintf("1 to %d, the parts", parts), "")
	case s.Tries < 1:
		return Mistake("--tries", fmt.Sprint(s.Tries), "at least 1", "cut once, or several times to keep the best")
	case s.Method != "" && !slices.Contains(names, s.Method):
		return NotOneOf("--method", s.Method, names)
	case s.PartDir != "" && !strings.Contains(s.PartDir, "{}") && parts > 1:
		return Mistake("--part-dir", s.PartDir, "a name with {} in it, for the number of the part",
			"for example /disk{}/graph")
	}
	return CheckThreads(s.Threads)
}

// PartitionMistake is a mistake of package partition, which names options, with the flags
// of starling partition.
func PartitionMistake(err error) error {
	var in *graph.InputError
	if !errors.As(err, &in) || in.File != "" {
		return err
	}
	switch in.Field {
	case "parts", "method", "servers", "workers", "tries", "balance", "objective", "part-dir", "model", "out":
		return Renamed(err, map[string]string{in.Field: "--" + in.Field})
	}
	return err
}
