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
	"starling/nn"
	"starling/partition"
)

// Partition is everything a user can say to starling partition.
type Partition struct {
	Parts, Servers, Workers int
	Method, Objective       string
	Balance                 string
	BestEffort              bool
	Target                  string // of a typed graph
	Seed                    uint64
	Tries                   int
	Threads, Passes, Hops   int
	Refine                  int // or Auto
	Out, PartDir            string
	Overwrite, Verify       bool
	HTML                    string
	JSON                    string
	Quiet                   bool
	Shared                  partition.Shared // by several processes

	// The model whose traffic and memory are planned: what is auto is as in a training run.
	Model                 string // or auto: gcn, and of a typed graph rgcn
	Layers, Hidden, Heads int
	BatchSize             int
	Fanout                []int // none: auto
}

// DefaultPartition is the spec of a partition without any flag.
func DefaultPartition() Partition {
	run := Default()
	return Partition{Method: run.Cluster.Partitioner, Objective: "cut", Seed: 1, Tries: 1, Servers: 1, Refine: Auto,
		Model: "auto", Layers: Auto, Hidden: Auto, Heads: Auto, BatchSize: run.Batches.Size}
}

// For is s with the model that a training run on the dataset in dir has by default, where s does not say.
func (s Partition) For(dir string) Partition { return s.forData(describe(dir)) }

func (s Partition) forData(data dataset) Partition {
	run := Default()
	m := &run.Model
	s.Model = s.modelFor(data)
	m.Name, m.Layers, m.Hidden, m.Heads = s.Model, s.Layers, s.Hidden, s.Heads
	if m.Layers == Auto && s.Fanout != nil {
		m.Layers = len(s.Fanout)
	}
	run.completeModel(data)
	s.Layers, s.Hidden, s.Heads = m.Layers, m.Hidden, m.Heads
	if s.Fanout == nil {
		s.Fanout = run.Batches.autoFanouts(m.Layers)
	}
	return s
}

// modelFor is the model that is planned for.
func (s *Partition) modelFor(data dataset) string {
	switch {
	case s.Model != "auto":
		return Canonical(s.Model, listOf("model"))
	case data.schema != nil:
		return nn.TypedModels[0]
	}
	return Default().Model.Name
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
		{"--refine", s.Refine != Auto, []string{"ldg", "fennel"}},
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
	planned := s.forData(dataset{})
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
		Balance: s.Balance, Target: s.Target, BestEffort: s.BestEffort, Seed: s.Seed, Tries: s.Tries,
		Threads: s.Threads, Passes: s.Passes, Refine: s.refine(), Hops: s.Hops, Shared: s.Shared,
		Out: s.Out, PartDirs: s.partDirs(parts), Overwrite: s.Overwrite, Verify: s.Verify, Compare: s.HTML != "",
		Model: partition.Model{Name: planned.Model, Layers: planned.Layers, Hidden: planned.Hidden,
			Heads: planned.Heads, BatchSize: s.BatchSize, Fanout: planned.Fanout}}, nil
}

// refine is how often the method's assignment is refined.
func (s *Partition) refine() int {
	switch {
	case !partition.Streams(s.Method):
		return 0
	case s.Refine == Auto:
		return partition.DefaultRefine
	}
	return s.Refine
}

func (s *Partition) check(parts int) error {
	names := partition.Names()
	if err := checkModelName("--model", s.modelFor(dataset{})); err != nil {
		return err
	}
	switch {
	case s.Servers < 1 || s.Servers > parts:
		return Mistake("--servers", fmt.Sprint(s.Servers), fmt.Sprintf("1 to %d, the parts", parts), "")
	case s.Workers < 0:
		return Mistake("--workers", fmt.Sprint(s.Workers), "1 or more, of each server", "leave it out for --parts")
	case s.BatchSize < 1:
		return Mistake("--batch-size", fmt.Sprint(s.BatchSize), "1 or more", "")
	case s.Shared.Processes < 0:
		return Mistake("--processes", fmt.Sprint(s.Shared.Processes), "1 or more",
			"leave it out to partition in this process, in memory")
	case s.Shared.Processes > 0 && (s.PartDir != "" || s.Out == "" || s.HTML != ""):
		return Mistake("--processes", "it without --out, or with --part-dir or --html",
			"--out, which all parts are written to", "name the folder to write")
	case s.Tries < 1:
		return Mistake("--tries", fmt.Sprint(s.Tries), "at least 1", "cut once, or several times to keep the best")
	case s.Method != "" && !slices.Contains(names, partition.WithoutPreset(s.Method)):
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
	case "parts", "method", "servers", "workers", "tries", "balance", "objective", "part-dir", "model", "out",
		"processes":
		return Renamed(err, map[string]string{in.Field: "--" + in.Field})
	}
	return err
}
