package mini

import (
	"slices"
	"testing"

	"starling/train"
	"starling/train/traintest"
)

// ofPairs is the option of a case that learns from pairs, which the strategy does not have.
const ofPairs = "pairs"

// TestEveryOptionStopsAndResumes: with each strategy and its options, all workers end when one breaks, whether while
// it joins, draws or trains, and know why; and a run in two has the losses of a run in one, to the bit.
func TestEveryOptionStopsAndResumes(t *testing.T) {
	d := traintest.Communities(t, 90, false)
	parts := traintest.CutForServers(t, d, "random", 4, 2)
	for _, c := range []struct {
		strategy, sampler string
		fanouts           []int
		options           []string
	}{
		{"distdgl", "neighbour", []int{3, 4}, []string{"roots=local"}},
		{"salient", "neighbour", []int{3, 4}, []string{"cache=probability", "cache_budget=10%"}},
		{"bytegnn", "neighbour", []int{3, 4}, nil},
		{"bytegnn", "saint-walk", nil, nil},
		{"bytegnn", "pinsage", []int{3, 4}, nil},
		{"bytegnn", "neighbour", []int{3, 4}, []string{ofPairs}},
		{"hopgnn", "neighbour", []int{3, 4}, []string{"merge=0"}},
		{"hopgnn", "neighbour", []int{3, 4}, []string{"merge=1", "merge_order=random"}},
		{"hopgnn", "neighbour", []int{3, 4}, []string{"merge=0", "pre_gather=false"}},
		{"hopgnn", "neighbour", []int{3, 4}, []string{"merge=auto"}},
		{"naive-hop", "neighbour", []int{3, 4}, nil},
		{"p3", "neighbour", []int{3, 4}, nil},
		{"p3", "neighbour", []int{3, 4}, []string{"pipeline=2"}},
		{"cobatch", "neighbour", []int{3, 4}, []string{"together=all"}},
		{"cobatch", "neighbour", []int{3, 4}, []string{"eas=1,3"}},
	} {
		o := traintest.Options("sage")
		name := c.strategy + " " + c.sampler
		for _, option := range c.options {
			name += " " + option
		}
		if slices.Equal(c.options, []string{ofPairs}) {
			o, c.options = traintest.LinkModel("sage", "dot"), nil
			o.Pairs = &train.PairOptions{ValEdges: 0.1, TestEdges: 0.1, PerPair: 2, Avoid: true, RankNegatives: 20}
		}
		o.Epochs, o.Model.Layers, o.Model.Norm, o.EvalEvery = 4, 2, "none", 2
		o.Batches = &train.BatchSettings{Sampler: c.sampler, Size: 20, Fanouts: c.fanouts, Threads: 2}
		o.Strategy = traintest.Strategy(t, c.strategy, c.options...)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want, got := traintest.Resumed(t, parts, o, 2, true)
			if !slices.Equal(got.Loss, want.Loss) {
				t.Errorf("losses %v, resumed %v", want.Loss, got.Loss)
			}
			for _, at := range []int{2, 40} {
				traintest.StopsTogether(t, parts, o, at)
			}
		})
	}
}
