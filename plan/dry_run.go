package plan

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"

	"starling/event"
	"starling/graph"
	"starling/setup"
	"starling/spec"
	"starling/tensor"
	"starling/tensor/cpu"
	"starling/train"
	"starling/train/batch"
	"starling/train/batch/pairs"
)

// NewDryDevice is the device of a dry run: it allocates and frees matrices and computes
// nothing.
func NewDryDevice(s *spec.Spec) *cpu.Dry {
	o := cpu.DryOptions{F64: s.Machine.RowType() == tensor.F64, Cores: s.Machine.Cores(), Most: mostAllocated()}
	if strings.HasPrefix(s.Machine.Device, "cuda") {
		o.Chunk = tensor.GPUChunk
	}
	return cpu.NewDry(o)
}

// tooLarge is the error of a dry run that allocates this many bytes at once, and would more.
type tooLarge int64

func (b tooLarge) Error() string { return "it needs more than " + event.Bytes(int64(b)) }

// mostAllocated is where a dry run ends: many times the machine's memory, and far below the
// address space of a process.
func mostAllocated() int64 {
	if total := tensor.MemoryTotal(); total > 0 {
		return min(16*total, 1<<45)
	}
	return 1 << 40
}

// A dry run is the training loop with the strategy and the layers on a device that allocates
// and frees matrices, and computes nothing (dryDevice). It takes two epochs, and finds the
// memory of a run to the byte.

// processBytes is what a process takes whatever it does: the runtime, the stacks of its threads,
// the buffers of the wire.
const processBytes = 10 << 20

// need is the memory that a worker needs, as found by a dry run.
type need struct {
	train.Needs
	matrices, peak int64 // of its device: altogether, and at once
	small          int64 // of the matrices, those on the heap
	heap           int64 // without them
}

// graph is the heap and its garbage. Buffers of batches grow as larger batches come than the few
// that the dry run drew, and so do small matrices: by a quarter, as slices do. Small matrices
// are counted once, among the matrices.
func (n *need) graph(mini bool) int64 {
	if mini {
		live := n.heap + n.small + n.Unfilled
		return setup.WithGarbage(live+live/4) - n.small + n.matrices/16
	}
	return setup.WithGarbage(n.heap + n.Unfilled)
}

// weights are what states of the model take, in float64: the best one and the one that replaces
// it, the last, and for a checkpoint the optimiser's two numbers per weight.
func (n *need) weights() int64 { return 5 * 8 * int64(n.Parameters) }

// dryRunFunc is the loop of a dry run.
type dryRunFunc func(dev *cpu.Dry, opt train.Options, events event.Listener) (*train.Needs, error)

// dryRun makes a dry run and measures after the first epoch, when everything is allocated: on
// the device, and on the heap, which has the graph in all forms that were made of it.
func dryRun(s *spec.Spec, run dryRunFunc, data *graph.Meta) (*need, error) {
	opt, err := dryRunOptions(s, data)
	if err != nil {
		return nil, err
	}
	dev := NewDryDevice(s)
	defer dev.Close()
	before, after := liveHeap(), int64(0)
	r, err := run(dev, opt, afterFirstEpoch(func() { after = liveHeap() }))
	if err := planError(dev, err); err != nil {
		return nil, err
	}
	return newNeed(r, dev, after-before), nil
}

// dryRunOptions are the options of a dry run. Normalizing features takes a while, and its memory
// is known: see normalizedBytes.
func dryRunOptions(s *spec.Spec, data *graph.Meta) (train.Options, error) {
	opt, err := setup.Options(s, data)
	opt.RowNormalize = false
	return opt, err
}

// dryRunAlone is the loop of one worker in the mode and task of s.
func dryRunAlone(s *spec.Spec, data *graph.Dataset) dryRunFunc {
	ctx := context.Background()
	return func(dev *cpu.Dry, opt train.Options, events event.Listener) (*train.Needs, error) {
		switch {
		case s.LearnsPairs():
			return dryRunPairs(ctx, s, dev, data, opt, events)
		case s.Mode == "full":
			return train.DryRunFull(ctx, dev, data, opt, events)
		}
		batches, err := s.BatchSettings(&data.Meta)
		if err != nil {
			return nil, err
		}
		batches.Weighted = batches.Weighted && data.Graph.Weights != nil // else refused later
		return batch.DryRun(ctx, dev, data, opt, batches, events)
	}
}

func dryRunPairs(ctx context.Context, s *spec.Spec, dev *cpu.Dry, data *graph.Dataset, opt train.Options,
	events event.Listener) (*train.Needs, error) {
	if s.LearnsRelations() {
		return dryRunRelations(ctx, s, dev, data, opt, events)
	}
	few := *s
	ends := s.Pairs.RankNegatives
	if few.Pairs.RankNegatives = 1; s.Pairs.Listed() {
		ends = 0
	}
	l, err := setup.Pairs(ctx, &few, data)
	if err != nil {
		return nil, err
	}
	if s.Mode == "mini" {
		return pairs.DryRun(ctx, dev, data, opt, *l, ends, events)
	}
	return train.DryRunLink(ctx, dev, data, opt, l.LinkOptions, ends, events)
}

func dryRunRelations(ctx context.Context, s *spec.Spec, dev *cpu.Dry, data *graph.Dataset, opt train.Options,
	events event.Listener) (*train.Needs, error) {
	if s.Mode == "full" {
		return train.DryRunRelations(ctx, dev, data, opt, events)
	}
	batches, err := s.BatchSettings(&data.Meta)
	if err != nil {
		return nil, err
	}
	return pairs.DryRunRelations(ctx, dev, data, opt, pairs.Options{Batches: batches, Without: true}, events)
}

// normalizedBytes is what --row-normalize takes.
func normalizedBytes(s *spec.Spec, features ...*graph.Features) (n int64) {
	for _, f := range features {
		if s.Training.RowNormalize && f != nil {
			n += 4*int64(len(f.Values)) + 4*int64(len(f.F32)) + 2*int64(len(f.BF16))
		}
	}
	return n
}

// mappedBytes is the size of the arrays that training reads.
func mappedBytes(d *graph.Dataset) (n int64) {
	n = 8*int64(len(d.Graph.Indptr)) + 4*int64(len(d.Graph.Indices)) + 4*int64(len(d.Graph.Weights)) +
		2*int64(len(d.Graph.Relations))
	if l := d.Labels; l != nil {
		n += 4*int64(len(l.Class)) + int64(len(l.Multi)) + 4*int64(len(l.Values))
	}
	for _, f := range featuresOf(d) {
		n += 8*int64(len(f.Indptr)) + 4*int64(len(f.Indices)) + 4*int64(len(f.Values))
	}
	return n + denseBytes(d)
}

// featuresOf are the features of a dataset: one table, or one of each type that has any.
func featuresOf(d *graph.Dataset) []*graph.Features {
	return slices.DeleteFunc(append(slices.Clone(d.TypeFeatures), d.Features),
		func(f *graph.Features) bool { return f == nil })
}

// denseBytes is the size of dense features.
func denseBytes(d *graph.Dataset) (n int64) {
	for _, f := range featuresOf(d) {
		n += 4*int64(len(f.F32)) + 2*int64(len(f.BF16))
	}
	return n
}

// afterFirstEpoch calls f at the end of the first epoch.
func afterFirstEpoch(f func()) event.Listener {
	return event.Func(func(e event.Event) {
		if x, ok := e.(event.Epoch); ok && x.Epoch == 0 {
			f()
		}
	})
}

// planError is why the device of a dry run failed: matrices are too large, or even addresses are refused. Else it is
// err.
func planError(dev *cpu.Dry, err error) error {
	large := cpu.TooMuch(0)
	switch failure := dev.Err(); {
	case errors.As(failure, &large):
		return tooLarge(large)
	case failure != nil:
		return fmt.Errorf("the plan of this run failed: %w", failure)
	}
	return err
}

// newNeed is what a dry run has on its device and on the heap.
func newNeed(r *train.Needs, dev *cpu.Dry, heap int64) *need {
	large, small := dev.Footprint()
	_, peak := dev.Usage()
	return &need{Needs: *r, matrices: large + small, small: small, peak: peak, heap: max(heap-small, 0)}
}

// liveHeap is the bytes of the heap that are in use.
func liveHeap() int64 {
	runtime.GC()
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}
