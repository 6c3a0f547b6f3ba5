package full

import (
	"fmt"
	"slices"
	"testing"

	"starling/graph"
	"starling/partition"
	"starling/train"
	"starling/train/traintest"
)

// mostTrain gives all but a few vertices to training, so that many edges are seen.
func mostTrain(d *graph.Dataset) *graph.Dataset {
	d.Splits = graph.Splits{}
	for v := range uint32(d.Graph.Nodes()) {
		to := []*[]uint32{&d.Splits.Train, &d.Splits.Train, &d.Splits.Train, &d.Splits.Val, &d.Splits.Test}[v%5]
		*to = append(*to, v)
	}
	return d
}

// inductively is options for training on what is seen.
func inductively(model string) train.Options {
	o := traintest.Small(model)
	o.Epochs, o.EvalEvery, o.Inductive = 4, 2, true
	return o
}

// TestInductiveIsExact: training on the subgraph of training vertices and measuring on
// the whole graph follows one worker, for every model, on graphs with loops, weights
// and one-way edges too.
func TestInductiveIsExact(t *testing.T) {
	graphs := map[string]*graph.Dataset{"plain": mostTrain(traintest.Communities(t, 100, false)),
		"sparse": mostTrain(traintest.Communities(t, 100, true)),
		"few":    traintest.Communities(t, 100, false), "loops": mostTrain(traintest.Oddities(t, 90, false)),
		"weights": mostTrain(traintest.Oddities(t, 90, true))}
	workers := []int{1, 2, 5}
	for name, d := range graphs {
		cuts := map[int][]*partition.Part{}
		for _, w := range workers {
			cuts[w] = traintest.Cut(t, d, []string{"random", "hash", "chunk"}[w%3], w)
		}
		for i, model := range []string{"gcn", "sage", "gat", "gin", "ressage+", "gatv2", "sage-pool", "film", "mlp"} {
			if name == "weights" && i > 1 || name != "plain" && i > 3 {
				continue
			}
			o := inductively(model)
			want := traintest.Full(t, traintest.Ref(), d, o)
			all := o
			all.Inductive = false
			if model != "mlp" && slices.Equal(traintest.Full(t, traintest.Ref(), d, all).Loss, want.Loss) {
				t.Fatalf("%s, %s: the loss does not depend on what is seen", name, model)
			}
			for _, w := range workers {
				parts := cuts[w]
				label := fmt.Sprintf("%s, %s on %d workers", name, model, w)
				for _, r := range traintest.TrainParts(t, parts, traintest.Ref, o) {
					traintest.SameCurve(t, label, r.Loss, want.Loss, 1e-9)
					traintest.SameCurve(t, label+", validation", r.Val, want.Val, 1e-9)
				}
				if w == 2 {
					for _, r := range traintest.TrainParts(t, parts, traintest.Single, o) {
						traintest.SameCurve(t, label+", float32", r.Loss, want.Loss, inSingle(model))
					}
				}
			}
		}
	}
}

// TestInductiveOnEveryStrategy: those that are exact follow one worker here too, and
// the others do what they plan.
func TestInductiveOnEveryStrategy(t *testing.T) {
	d := mostTrain(traintest.Communities(t, 100, false))
	parts := traintest.CutForServers(t, d, "hash", 4, 2)
	follow := func(model, strategy string, tol float64) {
		o := inductively(model)
		want := traintest.Full(t, traintest.Ref(), d, o)
		o.Strategy = traintest.Strategy(t, strategy)
		for _, r := range traintest.TrainParts(t, parts, traintest.Ref, o) {
			traintest.SameCurve(t, model+" with "+strategy, r.Loss, want.Loss, tol)
		}
	}
	for _, strategy := range exactChoices {
		follow("gcn", strategy, 1e-9)
		follow("gat", strategy, 1e-9)
	}
	for _, strategy := range []string{"bns:0.5", "bns:0.5:cached", "pipegcn", "sancus", "skipg", "granndis:eas"} {
		follow("sage", strategy, 1)
	}
}

// TestInductiveOnOddParts: workers without a halo or without a training vertex, and
// uneven ones.
func TestInductiveOnOddParts(t *testing.T) {
	d, odd := traintest.OddParts(t)
	for _, model := range []string{"gcn", "gat"} {
		o := inductively(model)
		want := traintest.Full(t, traintest.Ref(), d, o)
		for name, parts := range odd {
			for _, r := range traintest.TrainParts(t, parts, traintest.Ref, o) {
				traintest.SameCurve(t, name, r.Loss, want.Loss, 1e-9)
				traintest.SameCurve(t, name+", validation", r.Val, want.Val, 1e-9)
			}
		}
	}
}

// TestInductiveSendsOnlyWhatIsSeen: no row of a vertex that is not trained on leaves a
// worker in an epoch.
func TestInductiveSendsOnlyWhatIsSeen(t *testing.T) {
	d := traintest.Communities(t, 200, false) // a quarter of the vertices train
	parts := traintest.Cut(t, d, "random", 4)
	seen := d.Graph.Subgraph(func() []bool {
		mask := make([]bool, d.Graph.Nodes())
		for _, v := range d.Splits.Train {
			mask[v] = true
		}
		return mask
	}())
	owner := map[uint32]int{}
	for q, p := range parts {
		for _, v := range p.IDs[:p.Core()] {
			owner[v] = q
		}
	}
	pairs := map[[2]uint32]bool{} // vertices, and parts that need them
	for v := range uint32(seen.Nodes()) {
		for _, u := range seen.Neighbors(v) {
			if owner[u] != owner[v] {
				pairs[[2]uint32{u, uint32(owner[v])}] = true
			}
		}
	}
	o := inductively("gin") // whose rows travel in both layers
	o.Model.Layers, o.CacheFirst = 2, false
	var got, want int64
	for _, r := range traintest.TrainParts(t, parts, traintest.Ref, o) {
		for s, bytes := range r.Plan.Epoch(0) {
			if s.Kind.String() == "activation" && s.Layer == 1 {
				got += bytes
			}
		}
	}
	if want = int64(len(pairs) * o.Model.Hidden * 8); got != want {
		t.Errorf("an epoch sends %d bytes of rows of layer 1, %d are needed", got, want)
	}
}
