package pairs_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"starling/sample"
	"starling/train"
	"starling/train/batch/pairs"
	"starling/train/traintest"
)

// relationNegatives are the ways to have negatives of relations beside drawing each uniformly for its pair.
var relationNegatives = map[string]func(o *train.PairOptions){
	"in-batch":     func(o *train.PairOptions) { o.Shared = &sample.Shared{InBatch: true, Each: o.PerPair} },
	"joint":        func(o *train.PairOptions) { o.Shared = &sample.Shared{Each: o.PerPair} },
	"joint chunks": func(o *train.PairOptions) { o.Shared = &sample.Shared{Chunk: 5, Each: o.PerPair} },
	"hard":         func(o *train.PairOptions) { o.Hard = 3 },
	"degree":       func(o *train.PairOptions) { o.Power = 0.75 },
}

// sameRelations compares what was learnt and measured with one worker's.
func sameRelations(t *testing.T, label string, got, want *train.Result) {
	t.Helper()
	traintest.SameCurve(t, label, got.Loss, want.Loss, 1e-12)
	traintest.SameCurve(t, label+", validation", got.Val, want.Val, 1e-12)
	for name, w := range want.Measures {
		traintest.SameCurve(t, label+", "+name, []float64{got.Measures[name]}, []float64{w}, 1e-12)
	}
}

// TestRelationNegativesAreOneWorkers: whatever negatives pairs of relations have, several workers follow the curve of
// one.
func TestRelationNegativesAreOneWorkers(t *testing.T) {
	d := traintest.Typed(t, 40)
	link := relationBatches(30, len(d.Meta.Schema.Relations))
	for name, change := range relationNegatives {
		for i, relations := range [][]string{{"has", "lacks"}, {"knows"}} {
			o := traintest.RelationOptions(d, []string{"rgcn", "hsage"}[i], "distmult", relations...)
			o.Epochs, o.EvalEvery, o.Pairs.PerPair, o.Pairs.Avoid = 2, 2, 3, i == 0
			change(o.Pairs)
			want := traintest.Ran(t)(pairs.RunRelations(t.Context(), traintest.Ref(), d, o, link, nil))
			for w := 1; w <= 3; w++ {
				parts := traintest.CutForServers(t, d, "random", w, w)
				label := fmt.Sprintf("%s of %v on %d workers", name, relations, w)
				strategy := []string{"lookahead", "salient", "bytegnn"}[w%3]
				got := traintest.Batches(t, parts, o, link.Batches, true, strategy)
				sameRelations(t, label, got.Results[0], want)
			}
		}
	}
}

// TestRelationNegativesFindEdges: with any of them held-out edges are found well above chance, and a run in two has the
// bits of a run in one.
func TestRelationNegativesFindEdges(t *testing.T) {
	d := traintest.Featured(traintest.Typed(t, 200))
	for name, change := range relationNegatives {
		o := traintest.RelationOptions(d, "hsage", "distmult", "has", "lacks")
		o.EvalEvery, o.Optim.LR, o.Pairs.PerPair = 3, 0.02, map[bool]int{false: 4, true: 16}[name == "joint"]
		change(o.Pairs)
		least := 0.7
		if o.Pairs.Hard > 0 { // any item of a tag's class could be its own: the hardest are hardly negatives
			o.Pairs.Hard, least = 2, 0.6
		}
		link := pairs.Options{Without: true, Batches: train.BatchSettings{Sampler: "neighbour", Size: 60, Threads: 2,
			Fanouts: []int{5, 5}}}
		run := func(o train.Options) *train.Result {
			return traintest.Ran(t)(pairs.RunRelations(t.Context(), traintest.Ref(), d, o, link, nil))
		}
		t.Run(name, func(t *testing.T) { traintest.ResumesLinks(t, o, run) })
		o.Epochs, o.EvalEvery = 15, 15
		if r := run(o); r.Measures["auc of tag has item"] < least || r.Loss[14] >= r.Loss[0] {
			t.Errorf("%s: losses %v, measures %v", name, r.Loss, r.Measures)
		}
	}
}

// TestRelationNegativesResumeOnWorkers: on two workers, too, a run in two has the bits of a run in one, whichever of
// them has a pair.
func TestRelationNegativesResumeOnWorkers(t *testing.T) {
	d := traintest.Typed(t, 40)
	link := relationBatches(30, len(d.Meta.Schema.Relations))
	parts := traintest.Cut(t, d, "random", 2)
	for name, change := range relationNegatives {
		for _, roots := range []string{"owner", "local"} {
			o := traintest.RelationOptions(d, "hsage", "distmult", "has", "knows")
			o.Epochs, o.EvalEvery = 4, 2
			change(o.Pairs)
			o.Strategy, o.Batches = traintest.Strategy(t, "distdgl", "roots="+roots), &link.Batches
			want, got := traintest.Resumed(t, parts, o, 2, true)
			if !slices.Equal(got.Loss, want.Loss) || !maps.Equal(got.Measures, want.Measures) {
				t.Errorf("%s, --roots %s: losses %v, resumed %v; measures %v, resumed %v", name, roots, want.Loss,
					got.Loss, want.Measures, got.Measures)
			}
		}
	}
}

// TestSharedNegativesOfLocalRelationsFindEdges: negatives that pairs share find held-out edges where each of two
// workers has batches of its own pairs.
func TestSharedNegativesOfLocalRelationsFindEdges(t *testing.T) {
	d := traintest.Featured(traintest.Typed(t, 200))
	parts := traintest.Cut(t, d, "random", 2)
	settings := train.BatchSettings{Sampler: "neighbour", Size: 60, Threads: 2, Fanouts: []int{5, 5}}
	for name, each := range map[string]int{"in-batch": 4, "joint": 16, "joint chunks": 4} {
		o := traintest.RelationOptions(d, "hsage", "distmult", "has", "lacks")
		o.Epochs, o.EvalEvery, o.Optim.LR, o.Pairs.PerPair = 30, 15, 0.02, each
		relationNegatives[name](o.Pairs)
		r := traintest.Batches(t, parts, o, settings, true, "distdgl", "roots=local").Results[0]
		if r.Measures["auc of tag has item"] < 0.7 || r.Loss[29] >= r.Loss[0] {
			t.Errorf("%s: losses %v, measures %v", name, r.Loss, r.Measures)
		}
	}
}
