package train

import (
	"slices"

	"starling/graph"
	"starling/nn"
)

// Known are the labels and splits of a worker's rows, on the host; without labels: it learns from pairs.
type Known struct {
	Labels *graph.Labels
	Splits graph.Splits
	Rank   int
	Ranks  int // 0: this worker is the only one
}

// splits are the lists in the order of a loop's.
func (k *Known) splits() [3][]uint32 { return [3][]uint32{k.Splits.Train, k.Splits.Val, k.Splits.Test} }

// knownOfAll is what all workers know together.
type knownOfAll struct {
	counts []float64 // training vertices by class; nil: labels are no classes
	// sizes are how many vertices of each split the workers have together, first how many the workers before
	// this one have.
	sizes, first [3]int
}

// objectiveSums is how many numbers workers tell each other before they train: how many training vertices there are of
// each class, how many vertices each worker has of each split, and sums of targets that are standardized.
func objectiveSums(classes, workers, targets int) int {
	return classes + 3*workers + targets*targetDigits
}

// setObjective sets what is learnt and measured, by what all workers know.
func (f *Loop) setObjective() (err error) {
	if f.metric = (nn.Metric{Name: f.Task.Name()}); f.Opt.Metric != "" {
		f.metric, err = nn.FindMetric(f.Opt.Metric)
	}
	if err != nil || f.Known.Labels == nil {
		return err
	}
	if f.metric.Name != f.Task.Name() { // whose counts are taken on the device
		f.Measure = f.measureBy
	}
	if err := f.tellKnown(); err != nil {
		return err
	}
	f.Weighting = f.weighting()
	f.Task = f.weigh(f.Task)
	return nil
}

// Better reports whether a value of a metric is better than another; of an unknown metric the larger is.
func Better(metric string, value, than float64) bool {
	m, _ := nn.FindMetric(metric)
	return m.Better(value, than)
}

// MetricName is what epochs are compared by.
func (f *Loop) MetricName() string { return f.metric.Name }

// tellKnown adds up what the workers know.
func (f *Loop) tellKnown() error {
	counts, targets := nn.LabelCounts(f.Known.Labels, f.Known.Splits.Train), 0
	if f.Opt.Model.StandardizeTargets {
		targets = f.Known.Labels.Classes
	}
	rank, ranks := f.Known.Rank, max(f.Known.Ranks, 1)
	all := make([]float64, objectiveSums(len(counts), ranks, targets))
	copy(all, counts)
	sizes, digits := all[len(counts):], all[len(counts)+3*ranks:]
	if targets > 0 {
		copy(digits, targetSums(f.Known.Labels, f.Known.Splits.Train))
	}
	for k, list := range f.Known.splits() {
		sizes[3*rank+k] = float64(len(list))
	}
	if err := f.Peers.AllReduce(0, 0, all); err != nil {
		return err
	}
	if counts != nil {
		f.known.counts = slices.Clip(all[:len(counts)])
	}
	for r := range ranks {
		for k := range f.known.sizes {
			n := int(sizes[3*r+k])
			f.known.sizes[k] += n
			if r < rank {
				f.known.first[k] += n
			}
		}
	}
	if targets > 0 {
		f.Targets = scaleOf(digits, f.known.sizes[0])
	}
	return nil
}

// weighting is what labels count in the loss.
func (f *Loop) weighting() nn.Weighting {
	w := nn.Weighting{Gamma: f.Opt.Focus}
	kind, counts := f.Known.Labels.Kind(), f.known.counts
	switch {
	case counts == nil: // numbers have no classes
		return nn.Weighting{}
	case f.Opt.Balanced:
		w.Class = nn.BalancedWeights(kind, counts, float64(f.Training))
	case f.Opt.Weights != nil && kind == graph.SingleLabel:
		w.Class = nn.Normalized(f.Opt.Weights, counts)
	case f.Opt.Weights != nil:
		w.Class = f.Opt.Weights
	}
	return w
}

// weigh is the task with the losses of the training rows weighted.
func (f *Loop) weigh(task nn.Task) nn.Task {
	l := f.Known.Labels
	return f.Weighting.Of(task, f.Known.Splits.Train, func(row uint32) uint32 { return uint32(l.Class[row]) },
		func(row uint32, class int) bool { return l.Row(int(row))[class] == 1 })
}
