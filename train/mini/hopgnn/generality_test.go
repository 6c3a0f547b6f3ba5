package hopgnn

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"starling/graph"
	"starling/sample"
	"starling/train"
	"starling/train/batch/pairs"
	"starling/train/traintest"
	"starling/wire"
)

// TestModelsOfThePaper: the five models of section 7.1, three shallow ones of three layers, DeepGCN of seven and
// GNN-FiLM of ten, on four servers of one worker, follow one worker's loss curve.
func TestModelsOfThePaper(t *testing.T) {
	d := traintest.Communities(t, 120, false)
	parts := traintest.CutForServers(t, d, "multilevel", 4, 4)
	for model, layers := range map[string]int{"gcn": 3, "sage": 3, "gat": 3, "resgcn+": 7, "film": 10} {
		for _, merge := range []string{"0", "auto"} {
			t.Run(fmt.Sprint(model, merge), func(t *testing.T) {
				t.Parallel()
				o := traintest.Options(model)
				o.Epochs, o.Model.Layers, o.Model.Norm = 2, layers, "none"
				if model == "resgcn+" {
					o.Model.Norm = "layer"
				}
				m := train.BatchSettings{Sampler: "neighbour", Size: 30, Fanouts: slices.Repeat([]int{2}, layers),
					Threads: 1}
				traintest.SameRun(t, traintest.Batches(t, parts, o, m, true, "hopgnn", "merge="+merge).Results[0],
					mustMini(t, traintest.Ref(), d, o, m))
			})
		}
	}
}

// TestEverySampler: batches that are drawn layer by layer or as subgraphs are one worker's too, whatever is merged.
func TestEverySampler(t *testing.T) {
	for i, sampler := range []string{"fastgcn", "ladies", "saint-node", "saint-edge", "saint-walk"} {
		for j, model := range []string{"gcn", "sage", "gat"} {
			options := [][]string{{"merge=0"}, {"merge=1", "pre_gather=false"}, nil, {"merge=2", "merge_order=random"}}
			d := traintest.Communities(t, 120, (i+j)%5 == 0)
			if j == 1 {
				d = traintest.WithLoops(t, d, i%2 == 0)
			}
			o := traintest.Options(model)
			o.Epochs, o.Model.Layers, o.Model.Norm = 3, 2, "none"
			m := train.BatchSettings{Sampler: sampler, Size: 30, Threads: 2}
			if sampler == "fastgcn" || sampler == "ladies" {
				m.Fanouts = []int{20, 30}
			}
			one := mustMini(t, traintest.Ref(), d, o, m)
			parts := traintest.Cut(t, d, "fennel", 2+(i+j)%3)
			t.Run(fmt.Sprint(sampler, model), func(t *testing.T) {
				t.Parallel()
				traintest.SameRun(t, traintest.Batches(t, parts, o, m, true, "hopgnn", options[(i+j)%4]...).Results[0],
					one)
			})
		}
	}
}

// TestBatchesWithoutSeedsAreSkipped: a subgraph without a training vertex makes no step, and no model migrates for it,
// so that models and gradients are in the same proportion as where every batch has a step.
func TestBatchesWithoutSeedsAreSkipped(t *testing.T) {
	d := traintest.Communities(t, 200, false)
	d.Splits.Train = d.Splits.Train[:6]
	o := traintest.Options("sage")
	o.Epochs, o.Model.Layers, o.Model.Norm = 3, 2, "none"
	parts := traintest.CutForServers(t, d, "fennel", 3, 3)
	models := func(r *traintest.Trained) float64 {
		return float64(r.Sum(func(c wire.Class) bool { return c.Kind == wire.Parameter }))
	}
	var ratios []float64
	for _, m := range []train.BatchSettings{{Sampler: "cluster", Size: 20, Threads: 1, Clusters: 30},
		{Sampler: "neighbour", Size: 3, Fanouts: []int{3, 3}, Threads: 1}} {
		want := traintest.Batches(t, parts, o, m, true, "distdgl")
		got := traintest.Batches(t, parts, o, m, true, "hopgnn", "merge=0")
		traintest.SameRun(t, got.Results[0], want.Results[0])
		ratios = append(ratios, models(got)/models(want))
	}
	if ratios[0] != ratios[1] {
		t.Errorf("models to gradients %v where batches are empty, else %v", ratios[0], ratios[1])
	}
}

// TestClustersOfParts are refused.
func TestClustersOfParts(t *testing.T) {
	o := traintest.Options("gcn")
	o.Model.Layers, o.Model.Norm = 2, "none"
	o.Strategy = traintest.Strategy(t, "hopgnn")
	o.Batches = &train.BatchSettings{Sampler: "cluster-local", Size: 20}
	if err := train.Check(&o, train.Facts{Workers: 2}); err == nil || !strings.Contains(err.Error(),
		"use --sampler cluster,") {
		t.Error(err)
	}
}

// TestPairsMigrate: models learn from pairs of vertices where these are owned, from edges and from walks, as one worker
// does.
func TestPairsMigrate(t *testing.T) {
	d := traintest.Communities(t, 90, false)
	shared := train.NegativeOptions{Shared: &sample.Shared{Each: 3}}
	for i, negatives := range []train.NegativeOptions{{}, shared} {
		l := pairs.Options{LinkOptions: traintest.HeldOut(t, d.Graph, 3), Batches: train.BatchSettings{
			Sampler: "neighbour", Size: 60, Fanouts: []int{3, sample.All}, Threads: 2}, Without: true}
		l.NegativeOptions = negatives
		if negatives.Shared != nil {
			l.PerPair = 3
		}
		o := traintest.LinkModel([]string{"sage", "gcn"}[i], []string{"mlp", "dot"}[i])
		o.Epochs, o.Seed, o.Model.Norm = 3, 3, "none"
		one := traintest.Ran(t)(pairs.Run(context.Background(), traintest.Ref(), d, o, l, nil))
		o.Pairs = &train.PairOptions{ValEdges: 0.1, TestEdges: 0.1, PerPair: l.PerPair, Avoid: true, RankNegatives: 20,
			NegativeOptions: negatives}
		samePairs(t, d, o, l.Batches, one)
	}
	l := pairs.Options{LinkOptions: traintest.Walks(t, d.Graph), Batches: train.BatchSettings{Sampler: "neighbour",
		Size: 100, Fanouts: []int{4, 3}, Threads: 2}}
	o := traintest.LinkModel("sage", "dot")
	o.Epochs, o.Seed, o.Model.Norm, o.EvalEvery = 2, 3, "none", 0
	one := traintest.Ran(t)(pairs.Run(context.Background(), traintest.Ref(), d, o, l, nil))
	walks := l.Pairs.(*sample.Walks)
	o.Pairs = &train.PairOptions{Walks: walks.PerVertex, WalkLength: walks.Length, PerPair: l.PerPair, Power: 0.75,
		RankNegatives: 20}
	samePairs(t, d, o, l.Batches, one)
}

// samePairs compares losses, validation and ranks on two and three workers with one worker's.
func samePairs(t *testing.T, d *graph.Dataset, o train.Options, m train.BatchSettings, one *train.Result) {
	t.Helper()
	for w, options := range [][]string{{"merge=0"}, {"merge=1", "pre_gather=false"}} {
		got := traintest.Batches(t, traintest.Cut(t, d, "fennel", 2+w), o, m, true, "hopgnn", options...).Results[0]
		label := fmt.Sprintf("%s on %d workers", o.Model.Decoder, 2+w)
		traintest.SameCurve(t, label, got.Loss, one.Loss, 1e-12)
		if !slices.ContainsFunc(one.Val, math.IsNaN) {
			traintest.SameCurve(t, label+", validation", got.Val, one.Val, 1e-12)
		}
		for name, want := range one.Measures {
			traintest.SameCurve(t, label+", "+name, []float64{got.Measures[name]}, []float64{want}, 1e-12)
		}
	}
}

// TestLearntEmbeddingsMigrate: rows of vertices are pulled where a model is, and their gradients of all time steps are
// pushed together: the losses and the table are distdgl's.
func TestLearntEmbeddingsMigrate(t *testing.T) {
	d := traintest.Communities(t, 90, false)
	o := traintest.WithEmbeddings("sage", d, 4)
	m := train.BatchSettings{Sampler: "neighbour", Size: 25, Fanouts: []int{3, 4}, Threads: 2}
	for w, options := range [][]string{{"merge=0"}, {"merge=1", "pre_gather=false"}, nil} {
		parts := traintest.Cut(t, d, "fennel", 2+w)
		want := traintest.Batches(t, parts, o, m, true, "distdgl").Results
		got := traintest.Batches(t, parts, o, m, true, "hopgnn", options...).Results
		traintest.SameRun(t, got[0], want[0])
		traintest.SameCurve(t, "the table", traintest.Table(t, got).Data, traintest.Table(t, want).Data, 1e-12)
	}
}

// TestHopsResume: a run in two has the bits of a run in one, with pairs and with learnt rows.
func TestHopsResume(t *testing.T) {
	d := traintest.Communities(t, 90, false)
	parts := traintest.Cut(t, d, "fennel", 3)
	of := map[string]train.Options{"embeddings": traintest.WithEmbeddings("sage", d, 4),
		"pairs": traintest.LinkModel("sage", "dot"), "layer-wise": traintest.Options("gcn")}
	for name, o := range of {
		o.Epochs, o.Seed, o.Model.Layers, o.Model.Norm = 4, 3, 2, "none"
		o.Batches = &train.BatchSettings{Sampler: "neighbour", Size: 60, Fanouts: []int{3, 4}, Threads: 2}
		switch name {
		case "pairs":
			o.Pairs = &train.PairOptions{ValEdges: 0.1, TestEdges: 0.1, PerPair: 2, Avoid: true, RankNegatives: 20}
		case "layer-wise":
			o.Batches.Sampler, o.Batches.Fanouts = "ladies", []int{20, 30}
		}
		o.Strategy = traintest.Strategy(t, "hopgnn", "merge=1")
		want, got := traintest.Resumed(t, parts, o, 2, true)
		if !slices.Equal(got.Loss, want.Loss) || fmt.Sprint(got.Final) != fmt.Sprint(want.Final) {
			t.Errorf("%s: losses %v, resumed %v", name, want.Loss, got.Loss)
		}
	}
}
