package traintest

import (
	"fmt"
	"slices"
	"testing"

	"starling/graph"
	"starling/train"
)

// method is a partitioner for a number of workers.
func method(workers int) string { return []string{"random", "hash", "chunk", "fennel"}[workers%4] }

// ExactEverywhere: a strategy without approximation follows one worker's loss, for every
// kind of layer, on several workers and partitions, in float64 and float32.
func ExactEverywhere(t testing.TB, choice train.Choice) {
	t.Helper()
	for _, model := range FamilyModels {
		d := Communities(t, 120, model == "sage")
		o := Options(model)
		o.Epochs, o.EvalEvery = 5, 2
		o.Model.Layers = min(o.Model.Layers, 4)
		if model == "gcn" {
			o.Model.Norm, o.Epochs = "batch", 20
		}
		want := Full(t, Ref(), d, o)
		o.Strategy = choice
		for _, w := range []int{1, 2, 3, 5} {
			parts := Cut(t, d, method(w), w)
			label := fmt.Sprintf("%s, %s on %d workers cut by %s", choice.Name(), model, w, method(w))
			for _, r := range TrainParts(t, parts, Ref, o) {
				SameCurve(t, label, r.Loss, want.Loss, 1e-9)
				SameCurve(t, label+", validation", r.Val, want.Val, 1e-9)
			}
			if w == 3 {
				for _, r := range TrainParts(t, parts, Single, o) {
					SameCurve(t, label+", float32", r.Loss, want.Loss, 1e-4)
				}
			}
		}
	}
}

// ExactOnOddParts: a strategy without approximation is exact on odd partitions too, with some models (none: gcn and
// gat).
func ExactOnOddParts(t testing.TB, choice train.Choice, models ...string) {
	t.Helper()
	d, odd := OddParts(t)
	if models == nil {
		models = []string{"gcn", "gat"}
	}
	for _, model := range models {
		o := Options(model)
		o.Epochs, o.EvalEvery = 4, 2
		want := Full(t, Ref(), d, o)
		o.Strategy = choice
		for what, parts := range odd {
			for _, r := range TrainParts(t, parts, Ref, o) {
				SameCurve(t, fmt.Sprintf("%s, %s, %s", choice.Name(), model, what), r.Loss, want.Loss, 1e-9)
			}
		}
	}
}

// IsHalo: with its approximation off a strategy follows one worker, and the default
// strategy to the last bit.
func IsHalo(t testing.TB, choice train.Choice) {
	t.Helper()
	ExactEverywhere(t, choice)
	for _, model := range FamilyModels {
		o := Small(model)
		parts := Cut(t, Communities(t, 120, false), "random", 3)
		halo := TrainParts(t, parts, Single, o)[0]
		o.Strategy = choice
		for _, r := range TrainParts(t, parts, Single, o) {
			if !slices.Equal(r.Loss, halo.Loss) || !slices.Equal(r.Val, halo.Val) {
				t.Fatalf("%s: losses %v, halo's %v", model, r.Loss, halo.Loss)
			}
		}
	}
}

// Copes trains on odd partitions, with planned and counted bytes compared.
func Copes(t testing.TB, choice train.Choice) {
	t.Helper()
	_, odd := OddParts(t)
	for name, parts := range odd {
		for _, model := range []string{"gcn", "gat"} {
			o := Small(model)
			o.Strategy = choice
			for _, r := range TrainParts(t, parts, Single, o) {
				if x := r.Loss[len(r.Loss)-1]; !(x > 0 && x < 10) {
					t.Errorf("%s, %s: loss %g", name, model, x)
				}
			}
		}
	}
}

// AllStop: when one worker breaks in mid-epoch all end, and all know why.
func AllStop(t testing.TB, choice train.Choice) {
	t.Helper()
	workers, servers := 3, 1
	if relays(choice) {
		workers, servers = 4, 2
	}
	parts := CutForServers(t, Communities(t, 120, false), "hash", workers, servers)
	for _, model := range []string{"gcn", "gat"} {
		o := Options(model)
		o.Strategy = choice
		StopsTogether(t, parts, o, 60)
	}
}

// relays reports whether a choice relays rows inside servers.
func relays(c train.Choice) bool { return c.Setting("relay") == "true" }

// Learns compares the accuracy of a strategy, chosen for each model, with one worker's,
// which it may fall short of by so much.
func Learns(t testing.TB, short float64, choose func(i int) train.Choice) {
	t.Helper()
	d := Communities(t, 600, false)
	parts := Cut(t, d, "fennel", 4)
	for i, model := range []string{"gcn", "sage", "gat"} {
		o := Options(model)
		o.Epochs = 60
		want := Full(t, CPU(t, 1), d, o).TestMetric
		o.Strategy = choose(i)
		if got := TrainParts(t, parts, Single, o)[0].TestMetric; got < want-short {
			t.Errorf("%s: accuracy %.3f with %s, %.3f on one worker", model, got, o.Strategy.Name(), want)
		}
	}
}

// ExactSums: a strategy that only makes sums over neighbours follows one worker to 1e-12, in float64, for all
// reductions, with norms, dropout of the input, sparse features, loops, weights and edges of one direction, on several
// workers, some of them with more than there are columns; and to single precision in float32. Planned bytes are the
// counted ones.
func ExactSums(t testing.TB, choice train.Choice, workers ...int) {
	t.Helper()
	for i, c := range sumCases(t) {
		want := Full(t, Ref(), c.data, c.opt)
		o := c.opt
		o.Strategy = choice
		for j, n := range workers {
			label := fmt.Sprintf("%s, case %d, %s on %d workers", choice.Name(), i, o.Model.Model, n)
			parts := Cut(t, c.data, method(n), n)
			r := TrainParts(t, parts, Ref, o)[n-1]
			SameCurve(t, label, r.Loss, want.Loss, 1e-12)
			SameCurve(t, label+", validation", r.Val, want.Val, 1e-12)
			if j == i%len(workers) {
				SameCurve(t, label+", float32", TrainParts(t, parts, Single, o)[0].Loss, want.Loss, 1e-4)
			}
		}
	}
}

// sumCase is a graph and the options of a run.
type sumCase struct {
	data *graph.Dataset
	opt  train.Options
}

// sumCases are of models that only make sums.
func sumCases(t testing.TB) (list []sumCase) {
	plain, sparse := Communities(t, 120, false), Communities(t, 120, true)
	add := func(d *graph.Dataset, model string, change func(o *train.Options)) {
		o := Options(model)
		o.Epochs, o.EvalEvery, o.Model.Layers = 4, 2, 3
		if change != nil {
			change(&o)
		}
		list = append(list, sumCase{d, o})
	}
	add(plain, "gcn", func(o *train.Options) { o.Model.Norm = "batch" })
	add(plain, "gcn", func(o *train.Options) { o.Model.InputDropout, o.Model.Hidden = true, 10 })
	add(sparse, "sage", nil)
	add(plain, "sage", func(o *train.Options) { o.CacheFirst, o.Model.Norm = false, "layer" })
	add(Oddities(t, 90, true), "sage", func(o *train.Options) { o.Model.Aggregator = "gcn" })
	add(Oddities(t, 90, false), "gcn", nil)
	add(WithLoops(t, Communities(t, 90, false), true), "gcn", func(o *train.Options) { o.CacheFirst = false })
	add(plain, "resgcn+", func(o *train.Options) { o.Model.Layers = 4 })
	return list
}
