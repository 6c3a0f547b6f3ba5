package run

import (
	"context"
	"fmt"
	"slices"

	"starling/disk/tasks"
	"starling/event"
	"starling/exchange"
	"starling/graph"
	"starling/nn"
	"starling/partition"
	"starling/plan"
	"starling/report"
	"starling/setup"
	"starling/spec"
	"starling/tensor"
	"starling/tensor/cpu/simd"
)

// PartitionMethods lists the methods, and a line about each.
func PartitionMethods() (names, about []string) {
	for _, name := range partition.Names() {
		names, about = append(names, name), append(about, partition.About(name))
	}
	return names, about
}

// IsPartition reports whether dir is a partition rather than a dataset.
func IsPartition(dir string) bool { return partition.IsPartition(dir) }

// VerifyPartition checks every invariant of the partition in dir.
func VerifyPartition(ctx context.Context, dir string) error {
	_, err := setup.UntilInterrupted(ctx, "", func() (any, error) { return nil, partition.Verify(dir) })
	return err
}

// Partition partitions the dataset in dir as s says.
func Partition(ctx context.Context, dir string, s spec.Partition, events event.Listener) (*report.Partition, error) {
	r, err := setup.Cut(ctx, dir, s, events)
	if err == nil && r == nil && !s.Shared.Role.Helper {
		event.All(events).On(event.Note{Text: s.Out + ": has these parts already, made by the same command; remove it, or give --overwrite, to make them again"})
	}
	if err != nil || r == nil {
		return nil, err
	}
	r.PeakRSSBytes = tensor.PeakRSS()
	if r.Out != "" {
		planned := s.For(dir)
		planTraining(ctx, &planned, r)
	}
	out := &report.Partition{Report: r}
	if s.HTML != "" {
		err = out.WriteHTML(s.HTML)
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// plannedEdgeBytes is what a dry run takes per edge of a part: it splits the part's edges by where they come from, and
// pages of the part are read.
const plannedEdgeBytes = 16

// planTraining replaces the estimated bytes and memory by what a dry run of training on the parts finds, so that they are
// those of starling train --dry-run. If the parts cannot be trained on, or one is too large to be planned in the memory
// that is free, the estimates stay.
func planTraining(ctx context.Context, s *spec.Partition, r *partition.Report) {
	if free := tensor.MemoryFree(); free > 0 && plannedEdgeBytes*slices.Max(r.CoreEdges) > free {
		return
	}
	t := spec.Default()
	t.Dataset, t.Model.Name, t.Model.Layers, t.Model.Hidden = r.Out, s.Model, s.Layers, s.Hidden
	if nn.HasHeads(s.Model) {
		t.Model.Heads = s.Heads
	}
	if t.Complete() != nil || t.Validate() != nil {
		return
	}
	found, err := setup.FindParts(ctx, &t, event.All())
	if err != nil || t.ForLabels(&found.Meta) != nil {
		return
	}
	t.ForData(&found.Meta, simd.Best().String())
	c := &plan.Run{Spec: &t, Parts: found}
	p, err := c.Plan(event.All())
	if err == nil {
		r.Plan.Memory, r.Plan.Trained = p.Each, p.Trained
		r.Plan.EpochBytes, r.Plan.FeatureBytes = p.SentEpoch, p.SentOnce
	}
}

// PartitionShared is Partition by several processes, none of which holds the graph; a helper has no report.
func PartitionShared(ctx context.Context, dir string, s spec.Partition, p Processes, memory string, events event.Listener) (
	out *report.Partition, err error) {
	if s.Shared.Memory, err = exchange.ParseBytes("--memory", memory); err != nil {
		return nil, err
	}
	takes, err := partitionTakes(dir, s)
	if err != nil {
		return nil, err
	}
	err = p.with(s.Shared.Memory, takes, events, func(role tasks.Role, begun func() error) error {
		s.Shared.Role, s.Shared.Begun = role, begun
		out, err = Partition(ctx, dir, s, events)
		return err
	})
	return out, err
}

// partitionTakes says what each process that partitions will take.
func partitionTakes(dir string, s spec.Partition) (string, error) {
	m, err := graph.ReadMeta(dir)
	if err != nil {
		return "", err
	}
	each := partition.SharedMemoryFor(m, s.Parts)
	all := s.Shared.Memory + processBytes + each.Vertices + each.Part
	return fmt.Sprintf("each takes at most %s for edges (--memory), about %s for the program, %s for %s, and %s for an average part: "+
		"%s, %s in all", event.Bytes(s.Shared.Memory), event.Bytes(processBytes), event.Bytes(each.Vertices),
		event.Tally(m.Nodes, "vertex"), event.Bytes(each.Part), event.Bytes(all), event.Bytes(int64(s.Shared.Processes)*all)), nil
}
