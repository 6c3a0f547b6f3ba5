package pairs

import (
	"fmt"
	"math"
	"testing"

	"starling/graph"
	"starling/partition"
	"starling/sample"
	"starling/train"
	"starling/train/traintest"
)

// pairsAs are the options of several workers for pairs that traintest.HeldOut has.
func pairsAs(l *train.LinkOptions) *train.PairOptions {
	return &train.PairOptions{ValEdges: 0.1, TestEdges: 0.1, PerPair: l.PerPair, Avoid: true, RankNegatives: 20}
}

// samePairs compares what was learnt and measured with one worker's.
func samePairs(t *testing.T, got, want *train.Result) {
	t.Helper()
	traintest.SameRun(t, got, want)
	for i := range want.Val {
		if math.Abs(got.Val[i]-want.Val[i]) > 1e-9 {
			t.Errorf("validation %v, of one worker %v", got.Val, want.Val)
			return
		}
	}
	for name, w := range want.Measures {
		if math.Abs(got.Measures[name]-w) > 1e-9 {
			t.Errorf("%s is %g, of one worker %g", name, got.Measures[name], w)
		}
	}
}

// directed is a graph of which some edges have no reverse, and some are there twice.
func directed(t *testing.T, d *graph.Dataset) *graph.Dataset {
	t.Helper()
	var src, dst []uint32
	for v := range uint32(d.Graph.Nodes()) {
		for i, u := range d.Graph.Neighbors(v) {
			if (u+v)%3 == 0 && u > v {
				continue
			}
			src, dst = append(src, u), append(dst, v)
			if i == 0 {
				src, dst = append(src, u), append(dst, v)
			}
		}
	}
	d.Graph = traintest.FromEdges(t, d.Graph.Nodes(), src, dst, nil, graph.BuildOptions{})
	return d
}

// TestDistributedPairsAreOneWorkers: link prediction with negatives of all vertices follows the
// curve of one worker and measures what it does, for every kind of graph, number of workers,
// strategy and way to divide a batch.
func TestDistributedPairsAreOneWorkers(t *testing.T) {
	shapes := []string{"dense", "loops", "weighted", "directed"}
	for i, model := range []string{"gcn", "sage", "gat", "gin"} {
		for j, shape := range shapes {
			if model == "gat" && shape == "weighted" {
				continue // attention does not look at weights
			}
			workers := []int{2, 3, 1, 5}[(i+j)%4]
			strategy := []string{"lookahead", "salient", "bytegnn"}[(i+2*j)%3]
			roots := []string{"owner", "random"}[(i+j/2)%2]
			t.Run(fmt.Sprintf("%s %s %d %s %s", model, shape, workers, strategy, roots), func(t *testing.T) {
				d := traintest.Communities(t, 100, false)
				switch shape {
				case "directed":
					d = directed(t, d)
				case "loops", "weighted":
					d = traintest.WithLoops(t, d, shape == "weighted")
				}
				decoder := []string{"dot", "mlp"}[j%2]
				o, l := traintest.LinkModel(model, decoder), held(t, d.Graph, 60, 2, 3, sample.All)
				o.Epochs, o.Seed, o.Model.Norm = 3, 3, "none"
				one := mustLink(t, traintest.Ref(), d, o, l)
				o.Pairs = pairsAs(&l.LinkOptions)
				parts := traintest.Cut(t, d, []string{"random", "fennel"}[i%2], workers)
				got := traintest.Batches(t, parts, o, l.Batches, j%2 == 0, strategy, "roots="+roots)
				samePairs(t, got.Results[0], one)
			})
		}
	}
}

// TestDistributedWalksAreOneWorkers: unsupervised training likewise, whose negatives are by degree.
func TestDistributedWalksAreOneWorkers(t *testing.T) {
	d := directed(t, traintest.Communities(t, 90, true))
	o := traintest.LinkModel("sage", "dot")
	o.Epochs, o.Seed, o.Model.Norm = 2, 3, "none"
	l := Options{LinkOptions: traintest.Walks(t, d.Graph),
		Batches: train.BatchSettings{Sampler: "neighbour", Size: 100, Fanouts: []int{4, 3}, Threads: 2}}
	walks := l.Pairs.(*sample.Walks)
	var evaluated sample.Pairs
	for v := range d.Graph.Nodes() {
		if u, w, ok := walks.Pair(-1, v*walks.PerVertex); ok {
			evaluated.U, evaluated.V = append(evaluated.U, u), append(evaluated.V, w)
		}
	}
	var err error
	if l.Val, err = sample.NewRanked(t.Context(), d.Graph, evaluated, 20, 3, "val"); err != nil {
		t.Fatal(err)
	}
	one := mustLink(t, traintest.Ref(), d, o, l)
	o.Pairs = &train.PairOptions{Walks: walks.PerVertex, WalkLength: walks.Length, PerPair: l.PerPair, Power: 0.75,
		RankNegatives: 20}
	for i, strategy := range []string{"distdgl", "bytegnn"} {
		parts := traintest.Cut(t, d, "random", 2+i)
		got := traintest.Batches(t, parts, o, l.Batches, i == 0, strategy, "roots=random").Results[0]
		got.BestEpoch, one.TestMetric, got.TestMetric = one.BestEpoch, 0, 0 // there is no test set
		samePairs(t, got, one)
	}
}

// TestBatchesWithoutWalksAreSkipped: where vertices are isolated, some batches have no walk that meets another vertex.
// No worker makes a step for them, as one worker does not; a worker without one makes those of the others.
func TestBatchesWithoutWalksAreSkipped(t *testing.T) {
	d := traintest.Communities(t, 90, false)
	var src, dst []uint32
	for v := range uint32(90) {
		for _, u := range d.Graph.Neighbors(v) {
			if u < 25 && v < 25 {
				src, dst = append(src, u), append(dst, v)
			}
		}
	}
	d.Graph = traintest.FromEdges(t, 90, src, dst, nil, graph.BuildOptions{})
	o := traintest.LinkModel("sage", "dot")
	o.Epochs, o.Seed, o.Model.Norm = 3, 3, "none"
	l := Options{LinkOptions: traintest.Walks(t, d.Graph),
		Batches: train.BatchSettings{Sampler: "neighbour", Size: 6, Fanouts: []int{4, 3}, Threads: 2}}
	one := mustLink(t, traintest.Ref(), d, o, l)
	walks := l.Pairs.(*sample.Walks)
	o.Pairs = &train.PairOptions{Walks: walks.PerVertex, WalkLength: walks.Length, PerPair: l.PerPair, Power: 0.75,
		RankNegatives: 20}
	for i, strategy := range []string{"distdgl", "bytegnn"} {
		o.Strategy, o.Batches = traintest.Strategy(t, strategy, "roots=random"), &l.Batches
		traintest.SameCurve(t, strategy, curve(t, traintest.Cut(t, d, "random", 2+i), o), one.Loss, 1e-9)
	}
	o.Strategy = traintest.Strategy(t, "distdgl", "roots=local")
	curve(t, traintest.Cut(t, d, "random", 3), o) // all decide alike: none waits
}

// curve is the losses of several workers.
func curve(t *testing.T, parts []*partition.Part, o train.Options) []float64 {
	t.Helper()
	ends, losses := traintest.Ends(len(parts)), make([][]float64, len(parts))
	defer traintest.Close(ends)
	traintest.Each(len(parts), func(k int) {
		r, err := traintest.Work(parts[k], ends[k], traintest.Ref, o, nil)
		if err != nil {
			t.Error(err)
			return
		}
		losses[k] = r.Loss
	})
	return losses[0]
}

// TestLocalNegativesLearn: negatives of a worker's own vertices, and its own pairs per batch, find
// held-out edges too, and pull fewer rows.
func TestLocalNegativesLearn(t *testing.T) {
	d := traintest.BlockGraph(t, 400, 2)
	d.Meta.Classes = d.Labels.Classes
	parts := traintest.Cut(t, d, "fennel", 2)
	o, l := traintest.LinkModel("sage", "dot"), held(t, d.Graph, 256, 2, 8, 5)
	o.Seed, o.Model.Norm, o.Pairs = 3, "none", pairsAs(&l.LinkOptions)
	o.Pairs.Local = true
	r := traintest.Batches(t, parts, o, l.Batches, true, "distdgl", "roots=local")
	traintest.FindsEdges(t, "local", r.Results[0])
}
