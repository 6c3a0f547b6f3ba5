package pairs

import (
	"fmt"
	"slices"
	"testing"

	"starling/graph"
	"starling/sample"
	"starling/train"
	"starling/train/traintest"
)

// negativeKinds are the ways to have negatives beside drawing each uniformly for its pair.
func negativeKinds(each int) map[string]train.NegativeOptions {
	return map[string]train.NegativeOptions{
		"in-batch":     {Shared: &sample.Shared{InBatch: true, Each: each}},
		"joint":        {Shared: &sample.Shared{Each: each}},
		"joint chunks": {Shared: &sample.Shared{Chunk: 7, Each: each}},
		"hard":         {Hard: 3},
	}
}

// exactly compares what was learnt and measured with one worker's.
func exactly(t *testing.T, label string, got, want *train.Result) {
	t.Helper()
	traintest.SameCurve(t, label, got.Loss, want.Loss, 1e-12)
	traintest.SameCurve(t, label+", validation", got.Val, want.Val, 1e-12)
	for name, w := range want.Measures {
		traintest.SameCurve(t, label+", "+name, []float64{got.Measures[name]}, []float64{w}, 1e-12)
	}
}

// TestNegativesAreOneWorkers: whatever negatives pairs have, several workers follow the curve of one and measure what
// it does, and send what they planned.
func TestNegativesAreOneWorkers(t *testing.T) {
	d := directed(t, traintest.Communities(t, 90, false))
	strategies := []string{"lookahead", "salient", "bytegnn"}
	for name, kind := range negativeKinds(3) {
		for i, avoid := range []bool{true, false} {
			o, l := traintest.LinkModel("sage", []string{"dot", "mlp"}[i]), held(t, d.Graph, 40, 2, 3, 4)
			o.Epochs, o.Seed, o.Model.Norm, l.PerPair, l.NegativeOptions = 2, 3, "none", 3, kind
			if l.Hard > 0 {
				l.PerPair = 2
			}
			var err error
			if l.Negatives, err = sample.NewNegatives(l.Graph, 0, avoid, 3); err != nil {
				t.Fatal(err)
			}
			one := mustLink(t, traintest.Ref(), d, o, l)
			o.Pairs = pairsAs(&l.LinkOptions)
			o.Pairs.Avoid, o.Pairs.NegativeOptions = avoid, kind
			for w := 1; w <= 3; w++ {
				strategy := strategies[(w+i)%3]
				label := fmt.Sprintf("%s, avoiding %v, %s on %d workers", name, avoid, strategy, w)
				got := traintest.Batches(t, traintest.Cut(t, d, "random", w), o, l.Batches, i == 0, strategy,
					"roots="+[]string{"owner", "random"}[w%2])
				exactly(t, label, got.Results[0], one)
			}
		}
	}
}

// TestNegativesOfWalksAreOneWorkers: likewise where pairs are of walks.
func TestNegativesOfWalksAreOneWorkers(t *testing.T) {
	d := directed(t, traintest.Communities(t, 80, true))
	for name, kind := range negativeKinds(4) {
		o := traintest.LinkModel("sage", "dot")
		o.Epochs, o.Seed, o.Model.Norm, o.EvalEvery = 2, 3, "none", 0
		l := Options{LinkOptions: traintest.Walks(t, d.Graph),
			Batches: train.BatchSettings{Sampler: "neighbour", Size: 100, Fanouts: []int{4, 3}, Threads: 2}}
		l.PerPair, l.NegativeOptions = 4, kind
		walks := l.Pairs.(*sample.Walks)
		one := mustLink(t, traintest.Ref(), d, o, l)
		o.Pairs = &train.PairOptions{Walks: walks.PerVertex, WalkLength: walks.Length, PerPair: 4, Power: 0.75,
			RankNegatives: 20, NegativeOptions: kind}
		o.Batches = &l.Batches
		for w := 1; w <= 3; w++ {
			o.Strategy = traintest.Strategy(t, "distdgl", "roots=random")
			label := fmt.Sprintf("%s on %d workers", name, w)
			traintest.SameCurve(t, label, curve(t, traintest.Cut(t, d, "random", w), o), one.Loss, 1e-12)
		}
	}
}

// TestNegativesResume: a run in two has the bits of a run in one.
func TestNegativesResume(t *testing.T) {
	d := traintest.Communities(t, 120, true)
	for name, kind := range negativeKinds(3) {
		l := held(t, d.Graph, 100, 2, 5, 5)
		l.NegativeOptions = kind
		t.Run(name, func(t *testing.T) {
			traintest.ResumesLinks(t, traintest.LinkModel("sage", "mlp"), func(o train.Options) *train.Result {
				return mustLink(t, traintest.CPU(t, 1), d, o, l)
			})
		})
	}
}

// TestNegativesResumeOnWorkers: so does one on two workers, whichever of them has a pair.
func TestNegativesResumeOnWorkers(t *testing.T) {
	d := traintest.Communities(t, 120, true)
	parts := traintest.Cut(t, d, "random", 2)
	kinds := negativeKinds(3)
	kinds["degree"] = train.NegativeOptions{}
	for name, kind := range kinds {
		for _, roots := range []string{"owner", "local"} {
			o, l := traintest.LinkModel("sage", "dot"), held(t, d.Graph, 60, 3, 5, 4)
			o.Epochs, o.Seed, o.Model.Norm, o.Pairs = 4, 3, "none", pairsAs(&l.LinkOptions)
			if o.Pairs.NegativeOptions = kind; name == "degree" {
				o.Pairs.Power = 0.75
			}
			o.Strategy, o.Batches = traintest.Strategy(t, "distdgl", "roots="+roots), &l.Batches
			want, got := traintest.Resumed(t, parts, o, 2, true)
			if !slices.Equal(got.Loss, want.Loss) || got.Measures["mrr"] != want.Measures["mrr"] {
				t.Errorf("%s, --roots %s: losses %v, resumed %v; measures %v, resumed %v", name, roots, want.Loss,
					got.Loss, want.Measures, got.Measures)
			}
		}
	}
}

// TestNegativesKnowNothingOfHeldOutEdges: training has the same bits without some of the edges held out.
func TestNegativesKnowNothingOfHeldOutEdges(t *testing.T) {
	d := traintest.Communities(t, 200, false)
	other := &graph.Dataset{Graph: traintest.OtherHeldOut(t, d.Graph), Features: d.Features, Meta: d.Meta}
	for _, kind := range negativeKinds(3) {
		o := traintest.LinkModel("sage", "dot")
		o.Epochs = 3
		link := func(d *graph.Dataset) *train.Result {
			l := held(t, d.Graph, 100, 1, 5, 5)
			l.NegativeOptions = kind
			return mustLink(t, traintest.CPU(t, 1), d, o, l)
		}
		traintest.SameButTest(t, link(d), link(other))
	}
}

// TestNegativesFindEdges: with any of them held-out edges are found well above chance.
func TestNegativesFindEdges(t *testing.T) {
	d := traintest.BlockGraph(t, 400, 2)
	for name, kind := range negativeKinds(8) {
		l := held(t, d.Graph, 256, 2, 8, 5)
		l.NegativeOptions = kind
		if kind.Shared != nil {
			l.PerPair = kind.Shared.Each
		}
		traintest.FindsEdges(t, name, mustLink(t, traintest.CPU(t, 2), d, traintest.LinkModel("sage", "dot"), l))
	}
}

// TestSharedNegativesOfLocalPairsFindEdges: so they are where each of two workers has batches of its own pairs.
func TestSharedNegativesOfLocalPairsFindEdges(t *testing.T) {
	d := traintest.BlockGraph(t, 400, 2)
	d.Meta.Classes = d.Labels.Classes
	parts := traintest.Cut(t, d, "fennel", 2)
	for name, kind := range negativeKinds(8) {
		if kind.Shared == nil {
			continue
		}
		o, l := traintest.LinkModel("sage", "dot"), held(t, d.Graph, 256, 2, 8, 5)
		l.PerPair = kind.Shared.Each
		o.Seed, o.Model.Norm, o.Pairs = 3, "none", pairsAs(&l.LinkOptions)
		o.Pairs.NegativeOptions = kind
		r := traintest.Batches(t, parts, o, l.Batches, true, "distdgl", "roots=local")
		traintest.FindsEdges(t, name, r.Results[0])
	}
}

// TestSharedNegativesNeedFewRows: the seed vertices of a batch are the ends of its pairs, and those of joint negatives.
func TestSharedNegativesNeedFewRows(t *testing.T) {
	d := traintest.Communities(t, 400, false)
	seeds := func(shared *sample.Shared) int {
		l := held(t, d.Graph, 30, 1, 1)
		m, err := (&sample.PairBatches{Graph: l.Graph, Source: l.Pairs, Size: 30, Fanouts: []int{1},
			Negatives: l.Negatives, PerPair: 10, Shared: shared, Seed: 3}).Prepare()
		if err != nil {
			t.Fatal(err)
		}
		var b sample.Batch
		m.Sampler().Sample(&b, 0, 0)
		if pairs := len(b.Left) - b.Positives; pairs < 250 || pairs > 300 {
			t.Errorf("%+v: %d negatives of %d pairs", shared, pairs, b.Positives)
		}
		return len(slices.Compact(slices.Sorted(slices.Values(slices.Concat(b.Left, b.Right)))))
	}
	own, inBatch := seeds(nil), seeds(&sample.Shared{InBatch: true, Each: 10})
	joint := seeds(&sample.Shared{Each: 10})
	if inBatch > 60 || joint > 70 || own < 150 {
		t.Errorf("seed vertices: %d, in-batch %d, joint %d", own, inBatch, joint)
	}
}
