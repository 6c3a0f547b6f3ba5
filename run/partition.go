package run

import (
	"context"
	"errors"

	"starling/event"
	"starling/partition"
	"starling/report"
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
	_, err := untilInterrupted(ctx, "", func() (any, error) { return nil, partition.Verify(dir) })
	return err
}

// Partition partitions the dataset in dir as s says.
func Partition(ctx context.Context, dir string, s spec.Partition, events event.Listener) (*report.Partition, error) {
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
	r.PeakRSSBytes = tensor.PeakRSS()
	if r.Out != "" {
		planWorkerMemory(ctx, &s, r)
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

// planWorkerMemory replaces the estimated memory of workers by that of a dry run of training on
// the parts. If they cannot be trained on, the estimate stays.
func planWorkerMemory(ctx context.Context, s *spec.Partition, r *partition.Report) {
	t := spec.Default()
	t.Dataset, t.Model.Name, t.Model.Layers, t.Model.Hidden, t.Model.Heads = r.Out, s.Model, s.Layers, s.Hidden, s.Heads
	if t.Complete() != nil || t.Validate() != nil {
		return
	}
	found, err := findParts(ctx, &t, event.All())
	if err != nil || t.ForLabels(&found.meta) != nil {
		return
	}
	t.ForData(&found.meta, simd.Best().String())
	c := &clusterRun{spec: t, parts: found}
	p, err := c.plan(event.All())
	if err == nil {
		r.Plan.Memory = p.Each
	}
}
