package pairs

import (
	"context"
	"fmt"
	"math"
	"testing"

	"starling/graph"
	"starling/sample"
	"starling/tensor"
	"starling/train"
	"starling/train/traintest"
)

func mustLink(t testing.TB, dev tensor.Device, d *graph.Dataset, o train.Options, l Options) *train.Result {
	t.Helper()
	r, err := Run(context.Background(), dev, d, o, l, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// held are the options of link prediction in batches that leave their own pairs out.
func held(t testing.TB, g *graph.CSR, size, threads int, fanouts ...int) Options {
	t.Helper()
	return Options{LinkOptions: traintest.HeldOut(t, g, 3), Without: true,
		Batches: train.BatchSettings{Sampler: "neighbour", Size: size, Fanouts: fanouts, Threads: threads}}
}

// TestLinkLearns: held-out edges are found well above chance, with both decoders.
func TestLinkLearns(t *testing.T) {
	d := traintest.BlockGraph(t, 400, 2)
	for _, c := range [][2]string{{"sage", "dot"}, {"gat", "mlp"}} {
		r := mustLink(t, traintest.CPU(t, 2), d, traintest.LinkModel(c[0], c[1]), held(t, d.Graph, 256, 2, 8, 5))
		traintest.FindsEdges(t, fmt.Sprint(c), r)
	}
}

// TestHeldOutEdgesChangeNothing: a training run knows nothing of the edges held out.
// Without some of them, and with others in their place, it has the same bits.
func TestHeldOutEdgesChangeNothing(t *testing.T) {
	d := traintest.Communities(t, 200, false)
	other := &graph.Dataset{Graph: traintest.OtherHeldOut(t, d.Graph), Features: d.Features, Meta: d.Meta}
	o := traintest.LinkModel("sage", "mlp")
	o.Epochs = 4
	link := func(d *graph.Dataset) *train.Result {
		return mustLink(t, traintest.CPU(t, 1), d, o, held(t, d.Graph, 100, 1, 5, 5))
	}
	traintest.SameButTest(t, link(d), link(other))
}

// TestLinkBatchOfEverything: one batch of all pairs with all neighbours is a step over
// the whole graph; and without its own pairs, one over a graph that has none of them,
// loops and all, by every model's own way of counting degrees.
func TestLinkBatchOfEverything(t *testing.T) {
	for _, weighted := range []bool{false, true} {
		d := traintest.WithLoops(t, traintest.Communities(t, 80, false), weighted)
		for _, model := range []string{"gcn", "sage", "gat", "gin"} {
			for _, without := range []bool{false, true} {
				o, l := traintest.LinkModel(model, "dot"), held(t, d.Graph, 1<<30, 1, sample.All, sample.All)
				o.Epochs, o.EvalEvery, l.Without = 3, 0, without
				full := l.LinkOptions
				if without {
					none, err := sample.HoldOut(t.Context(), l.Graph, 0, 0, 3)
					if err != nil {
						t.Fatal(err)
					}
					full.Graph = onlyLoops(none.Graph)
				}
				want := traintest.Link(t, traintest.Ref(), d, o, full)
				got := mustLink(t, traintest.Ref(), d, o, l)
				for i := range want.Loss {
					if math.Abs(got.Loss[i]-want.Loss[i]) > 1e-9 {
						t.Fatalf("%s, weighted %v, without own pairs %v: losses %v, want %v", model, weighted, without,
							got.Loss, want.Loss)
					}
				}
			}
		}
	}
}

func onlyLoops(g *graph.CSR) *graph.CSR {
	out := &graph.CSR{Indptr: []int64{0}}
	for v := range uint32(g.Nodes()) {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			if g.Indices[e] != v {
				continue
			}
			out.Indices = append(out.Indices, v)
			if g.Weights != nil {
				out.Weights = append(out.Weights, g.Weights[e])
			}
		}
		out.Indptr = append(out.Indptr, int64(len(out.Indices)))
	}
	return out
}

// TestLinkResumes: a run in two has the bits of a run in one.
func TestLinkResumes(t *testing.T) {
	d := traintest.Communities(t, 150, true)
	l := held(t, d.Graph, 100, 2, 5, 5)
	traintest.ResumesLinks(t, traintest.LinkModel("sage", "mlp"), func(o train.Options) *train.Result {
		return mustLink(t, traintest.CPU(t, 1), d, o, l)
	})
}

func TestLinkRefuses(t *testing.T) {
	d := traintest.Communities(t, 60, false)
	for name, batches := range map[string]train.BatchSettings{
		"other samplers": {Sampler: "ladies", Size: 10},
		"replacement":    {Sampler: "neighbour", Size: 10, Fanouts: []int{3, 3}, Replace: true},
		"fanouts":        {Sampler: "neighbour", Size: 10, Fanouts: []int{3}},
	} {
		l := held(t, d.Graph, 0, 1)
		l.Batches = batches
		if _, err := Run(context.Background(), traintest.Ref(), d, traintest.LinkModel("gcn", "dot"), l,
			nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestUnsupervisedEmbeddings: embeddings learnt without labels beat the raw features, which
// say little of the classes.
func TestUnsupervisedEmbeddings(t *testing.T) {
	d := traintest.BlockGraph(t, 600, 0.7)
	o := traintest.LinkModel("sage", "dot")
	o.Epochs, o.Model.Out, o.Model.Dropout, o.EvalEvery = 10, 16, 0, 10
	dev := traintest.CPU(t, 2)
	l := Options{LinkOptions: traintest.Walks(t, d.Graph),
		Batches: train.BatchSettings{Sampler: "neighbour", Size: 512, Fanouts: []int{10, 10}, Threads: 2}}
	traintest.BeatsFeatures(t, dev, d, o, mustLink(t, dev, d, o, l))
}
