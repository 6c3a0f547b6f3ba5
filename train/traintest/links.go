package traintest

import (
	"context"
	"math"
	"slices"
	"testing"

	"starling/graph"
	"starling/nn"
	"starling/sample"
	"starling/tensor"
	"starling/train"
)

// HeldOut are the options of link prediction with a tenth of the edges held out for
// validation and a tenth for the test.
func HeldOut(t testing.TB, g *graph.CSR, seed uint64) train.LinkOptions {
	t.Helper()
	s, err := sample.HoldOut(t.Context(), g, 0.1, 0.1, seed)
	if err != nil {
		t.Fatal(err)
	}
	l := train.LinkOptions{Graph: s.Graph, Pairs: &sample.Edges{Pairs: s.Train, Seed: seed}, PerPair: 2}
	if l.Negatives, err = sample.NewNegatives(s.Graph, 0, true, seed); err != nil {
		t.Fatal(err)
	}
	if l.Val, err = sample.NewRanked(t.Context(), g, s.Val, 20, seed, "val"); err != nil {
		t.Fatal(err)
	}
	if l.Test, err = sample.NewRanked(t.Context(), g, s.Test, 20, seed, "test"); err != nil {
		t.Fatal(err)
	}
	return l
}

// Walks are the options of unsupervised training on pairs that walks meet.
func Walks(t testing.TB, g *graph.CSR) train.LinkOptions {
	t.Helper()
	l := train.LinkOptions{Graph: g, Pairs: &sample.Walks{Graph: g, PerVertex: 5, Length: 3, Seed: 3}, PerPair: 5,
		PerPositive: true}
	var err error
	if l.Negatives, err = sample.NewNegatives(g, 0.75, false, 3); err != nil {
		t.Fatal(err)
	}
	return l
}

// LinkModel are Options of a model that scores pairs.
func LinkModel(model, decoder string) train.Options {
	o := Options(model)
	o.Model.Out, o.Model.Decoder, o.Model.Dropout, o.Model.AttentionDropout = 8, decoder, 0.2, 0
	return o
}

// Link is train.Link, which must succeed.
func Link(t testing.TB, dev tensor.Device, d *graph.Dataset, o train.Options, l train.LinkOptions) *train.Result {
	t.Helper()
	r, err := train.Link(context.Background(), dev, d, o, l, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// OtherHeldOut is a graph of which training knows the same: without half of the edges that
// are held out of g, and with new ones that would be held out too.
func OtherHeldOut(t testing.TB, g *graph.CSR) *graph.CSR {
	t.Helper()
	s, err := sample.HoldOut(t.Context(), g, 0.1, 0.1, 3)
	if err != nil {
		t.Fatal(err)
	}
	var src, dst []uint32
	for v := range uint32(s.Graph.Nodes()) {
		for _, u := range s.Graph.Neighbors(v) {
			src, dst = append(src, u), append(dst, v)
		}
	}
	for _, p := range []sample.Pairs{s.Val, s.Test} {
		for i := range p.U {
			if i%2 == 0 {
				src, dst = append(src, p.U[i], p.V[i]), append(dst, p.V[i], p.U[i])
			}
		}
	}
	all, err := sample.HoldOut(t.Context(), allPairs(g.Nodes()), 0.1, 0.1, 3)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < all.Test.Len(); i += 37 {
		u, v := all.Test.U[i], all.Test.V[i]
		src, dst = append(src, u, v), append(dst, v, u)
	}
	return FromEdges(t, g.Nodes(), src, dst, nil, graph.BuildOptions{DropDuplicates: true})
}

// allPairs is a graph with every edge there can be: it tells which pairs would be held out.
func allPairs(n int) *graph.CSR {
	g := &graph.CSR{Indptr: []int64{0}}
	for range n {
		for u := range uint32(n) {
			g.Indices = append(g.Indices, u)
		}
		g.Indptr = append(g.Indptr, int64(len(g.Indices)))
	}
	return g
}

// BeatsFeatures: under a linear probe, embeddings of a run of LinkModel that saw no label
// tell the classes of a BlockGraph apart better than the features they were made from, by
// ten points.
func BeatsFeatures(t testing.TB, dev tensor.Device, d *graph.Dataset, o train.Options, r *train.Result) {
	t.Helper()
	if r.Loss[len(r.Loss)-1] >= r.Loss[0] {
		t.Errorf("losses %v", r.Loss)
	}
	learnt := &graph.Dataset{Graph: d.Graph, Labels: d.Labels, Splits: d.Splits, Features: embeddings(t, dev, d, o, r)}
	got, raw := probe(t, learnt), probe(t, d)
	t.Logf("a probe of embeddings is right in %.3f, of raw features in %.3f", got, raw)
	if got < raw+0.1 {
		t.Error("embeddings do not beat raw features by ten points")
	}
}

// probe is the test accuracy of logistic regression.
func probe(t testing.TB, d *graph.Dataset) float64 {
	t.Helper()
	o := Options("mlp")
	o.Model.Out = d.Labels.Classes
	o.Model.Layers, o.Model.Dropout, o.Model.In, o.Epochs = 1, 0, d.Features.Cols, 100
	return Full(t, CPU(t, 2), d, o).TestMetric
}

// embeddings are the rows of the best weights.
func embeddings(t testing.TB, dev tensor.Device, d *graph.Dataset, o train.Options, r *train.Result) *graph.Features {
	t.Helper()
	m := nn.New(dev, o.Model, 0)
	if err := m.Load(dev, r.Best); err != nil {
		t.Fatal(err)
	}
	p := &nn.Pass{Dev: dev, Agg: nn.NewLocal(nn.NewTopology(dev, d.Graph), false), Vertices: int64(d.Graph.Nodes())}
	z := m.Forward(p, train.Input(dev, d.Features, o))
	f := &graph.Features{Rows: z.Rows, Cols: z.Cols, F32: make([]float32, z.Rows*z.Cols)}
	dev.Download(f.F32, z)
	return f
}

// FindsEdges: the metric of link prediction is well above chance.
func FindsEdges(t testing.TB, name string, r *train.Result) {
	t.Helper()
	if r.Metric != "auc" || r.TestMetric < 0.7 || math.Abs(r.Measures["auc"]-r.TestMetric) > 1e-9 {
		t.Errorf("%s: %s %.3f, measures %v", name, r.Metric, r.TestMetric, r.Measures)
	}
	if m := r.Measures; m["mrr"] < 0.2 || m["hits@10"] < m["hits@3"] || m["hits@3"] < m["hits@1"] {
		t.Errorf("%s: %v", name, m)
	}
}

// SameButTest: two runs trained alike, to the bit, and were tested on other pairs.
func SameButTest(t testing.TB, a, b *train.Result) {
	t.Helper()
	if !slices.Equal(a.Loss, b.Loss) {
		t.Fatalf("losses %v and %v", a.Loss, b.Loss)
	}
	for i := range a.Final {
		if !slices.Equal(a.Final[i].Data, b.Final[i].Data) {
			t.Fatalf("%s differs", a.Final[i].Name)
		}
	}
	if slices.Equal(a.Test, b.Test) {
		t.Error("the test set is the same: nothing was exchanged")
	}
}

// ResumesLinks: link training in two runs has the bits of one run.
func ResumesLinks(t testing.TB, o train.Options, link func(train.Options) *train.Result) {
	t.Helper()
	o.Epochs = 6
	want := link(o)
	var half *train.State
	o.Epochs, o.Save = 3, func(s *train.State) error { half = s; return nil }
	link(o)
	o.Epochs, o.Save, o.Resume = 6, nil, half
	got := link(o)
	if !slices.Equal(got.Loss, want.Loss) || got.Measures["mrr"] != want.Measures["mrr"] {
		t.Errorf("losses %v, want %v; measures %v, want %v", got.Loss, want.Loss, got.Measures, want.Measures)
	}
}
