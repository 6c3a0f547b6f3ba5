package setup

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/partition"
	"starling/report"
	"starling/spec"
)

// cutDataset partitions the dataset into a temporary folder.
func cutDataset(ctx context.Context, s *spec.Spec, events event.Listener) (p *Parts, err error) {
	if RemoteWorkers(s) {
		return nil, NeedsPartition(s)
	}
	d, err := OpenForTraining(s)
	if err != nil {
		return nil, err
	}
	meta := d.Meta
	err = CheckWeights(s, d.Graph)
	d.Close()
	if err != nil {
		return nil, err
	}
	tmp, remove, err := TemporaryFolder()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			remove()
		}
	}()
	opt := spec.DefaultPartition()
	opt.Parts, opt.Servers, opt.Method, opt.Seed = s.Cluster.Workers, max(s.Cluster.Servers, 1), s.Cluster.Partitioner,
		s.Seed
	if opt.Target = s.Target; s.LearnsRelations() {
		opt.Target = anyTarget(&meta)
	}
	if nn.IsTyped(s.Model.Name) {
		opt.Model = s.Model.Name
	}
	opt.Out = filepath.Join(tmp, "parts")
	start := time.Now()
	r, err := Cut(ctx, s.Dataset, opt, events)
	if err != nil {
		return nil, workersMistake(err)
	}
	if !s.Output.Quiet {
		noteCut(r, s.Dataset, opt, time.Since(start), events)
	}
	if p, err = OpenParts(opt.Out, s); err != nil {
		return nil, err
	}
	p.Meta.CRC32C = meta.CRC32C
	p.Remove = remove
	return p, nil
}

// anyTarget is a type whose labels parts can have, for runs that learn from none; "": none has to be named.
func anyTarget(m *graph.Meta) string {
	if targets := spec.TargetsOf(m); len(targets) > 1 {
		return targets[0]
	}
	return ""
}

// Cut partitions the dataset in dir as s says.
func Cut(ctx context.Context, dir string, s spec.Partition, events event.Listener) (*partition.Report, error) {
	s = s.For(dir)
	opt, err := s.Options()
	if err != nil {
		return nil, err
	}
	if err := s.CheckOutput(); err != nil {
		return nil, err
	}
	opt.Progress = progress(events)
	r, err := partition.Run(ctx, dir, opt)
	if errors.Is(err, context.Canceled) {
		return nil, report.ErrInterrupted
	}
	if err != nil {
		return nil, spec.PartitionMistake(err)
	}
	return r, nil
}

// noteCut says how the dataset was partitioned, the command that gives the same parts, and what is doubtful about them.
func noteCut(r *partition.Report, dataset string, opt spec.Partition, took time.Duration, events event.Listener) {
	if r.Parts > 1 { // one part is the graph
		events.On(event.Note{Minor: true, Text: fmt.Sprintf("cut into %d parts by %s in %s, %s of edges between parts; to "+
			"keep them: %s", r.Parts, r.Method, event.Duration(took), report.Percent(r.EdgeCutShare),
			partitionCommand(dataset, opt))})
	}
	for _, text := range r.Notes {
		events.On(event.Note{Text: text})
	}
}

// partitionCommand is the command that partitions the dataset as opt says.
func partitionCommand(dataset string, opt spec.Partition) string {
	usual := spec.DefaultPartition()
	words := fmt.Sprintf("starling partition %s --parts %d", dataset, opt.Parts)
	if opt.Servers != usual.Servers {
		words += fmt.Sprintf(" --servers %d", opt.Servers)
	}
	if opt.Method != usual.Method {
		words += " --method " + opt.Method
	}
	if opt.Target != "" {
		words += fmt.Sprintf(" --target %q", opt.Target)
	}
	if opt.Seed != usual.Seed {
		words += fmt.Sprintf(" --seed %d", opt.Seed)
	}
	return words + " --out PARTS"
}

// NeedsPartition is the mistake of giving a dataset to workers on other hosts.
func NeedsPartition(s *spec.Spec) error {
	return spec.Mistake("DIR", s.Dataset+", a dataset", "a partition folder, which all workers can open",
		fmt.Sprintf("starling partition %s --parts %d --out PARTS", s.Dataset, s.Cluster.Workers))
}

// workersMistake is a mistake of partitioning with the flags of starling train.
func workersMistake(err error) error {
	return spec.Renamed(err, map[string]string{"--parts": "--workers", "--method": "--partitioner"})
}

// CutForCases cuts the dataset once per partitioner, or opens the partition that was given. remove
// deletes what was cut.
func CutForCases(ctx context.Context, cases []spec.Case, events event.Listener) (remove func(), err error) {
	found := map[string]*Parts{}
	remove = func() {
		for _, p := range found {
			p.Remove()
		}
	}
	for i := range cases {
		s := &cases[i].Spec
		if !s.Distributed() {
			continue
		}
		by := s.Cluster.Partitioner
		if found[by] == nil {
			if found[by], err = FindParts(ctx, s, events); err != nil {
				delete(found, by)
				return remove, err
			}
		}
		// it is partitioned now
		s.Cluster.Partition, s.Cluster.Partitioner = found[by].Dir, spec.Default().Cluster.Partitioner
		if s.Dataset != "" && partition.IsPartition(s.Dataset) {
			s.Dataset = ""
		}
	}
	return remove, nil
}

// FindParts opens the partition that the user names, or makes one.
func FindParts(ctx context.Context, s *spec.Spec, events event.Listener) (*Parts, error) {
	dir := s.PartitionFolder()
	if dir == "" {
		return cutsOf(ctx).find(s, func() (*Parts, error) { return cutDataset(ctx, s, events) })
	}
	p, err := OpenParts(dir, s)
	if err != nil {
		return nil, err
	}
	if s.Dataset == "" || s.Dataset == dir {
		return p, nil
	}
	d, err := graph.Open(s.Dataset)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	if d.Meta.Nodes != p.Book.Nodes || d.Meta.Edges != p.Book.Edges {
		return nil, spec.Mistake("--partition", fmt.Sprintf("%s, of a graph with %s and %s", dir,
			event.Counted(p.Book.Nodes, "vertex"), event.Counted(p.Book.Edges, "edge")),
			fmt.Sprintf("a partition of %s, with %d and %d", s.Dataset, d.Meta.Nodes, d.Meta.Edges),
			"partition the dataset again")
	}
	if differ := p.Book.Contents.Differences(d.Contents()); p.Book.Contents != (graph.Contents{}) && len(differ) > 0 {
		return nil, spec.Mistake("--partition", fmt.Sprintf("%s, of a dataset with other %s", dir,
			strings.Join(differ, ", ")), "a partition of "+s.Dataset, "partition the dataset again")
	}
	p.Meta.CRC32C = d.Meta.CRC32C
	return p, nil
}
