package train

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"starling/graph"
	"starling/nn"
	"starling/rng"
	"starling/sample"
	"starling/tensor"
)

// TestAreaUnderCurve compares with every positive against every negative, with ties.
func TestAreaUnderCurve(t *testing.T) {
	key := rng.New(4)
	for size := range uint64(30) {
		var pos, neg []float64
		for i := range size {
			pos = append(pos, float64(key.IntN(100*size+2*i, 6))+0.5)
			if i%3 > 0 {
				neg = append(neg, float64(key.IntN(100*size+2*i+1, 6))+0.5*float64(i%2))
			}
		}
		wins := 0.0
		for _, p := range pos {
			for _, n := range neg {
				if p > n {
					wins++
				} else if p == n {
					wins += 0.5
				}
			}
		}
		want := wins / float64(len(pos)*len(neg))
		if got := areaUnderCurve(pos, neg); math.Abs(got-want) > 1e-12 || math.IsNaN(got) != math.IsNaN(want) {
			t.Fatalf("%d positives, %d negatives: %g, want %g", len(pos), len(neg), got, want)
		}
	}
	if a := areaUnderCurve([]float64{math.NaN()}, []float64{1}); !math.IsNaN(a) {
		t.Errorf("a score that is no number gives %g", a)
	}
}

func TestRankMeasures(t *testing.T) {
	// Ranks: 1, 2.5 (one above, one tie), 4, 5.
	pos := []float64{9, 5, 1, 0}
	neg := []float64{1, 2, 3, 4, 6, 5, 1, 0, 2, 3, 4, 0, 1, 2, 3, 4}
	m := rankMeasures(pos, neg, 4)
	for name, want := range map[string]float64{"mrr": (1 + 1/2.5 + 1./4 + 1./5) / 4, "hits@1": 0.25, "hits@3": 0.5, "hits@10": 1} {
		if math.Abs(m[name]-want) > 1e-12 {
			t.Errorf("%s is %g, want %g", name, m[name], want)
		}
	}
	if m := rankMeasures(nil, nil, 4); !math.IsNaN(m["mrr"]) || !math.IsNaN(m["hits@1"]) {
		t.Errorf("nothing to rank: %v", m)
	}
}

// held are the options of a graph's link prediction.
func held(t testing.TB, g *graph.CSR, seed uint64) LinkOptions {
	t.Helper()
	s, err := sample.HoldOut(t.Context(), g, 0.1, 0.1, seed)
	if err != nil {
		t.Fatal(err)
	}
	l := LinkOptions{Graph: s.Graph, Pairs: &sample.Edges{Pairs: s.Train, Seed: seed}, PerPair: 2}
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

func linkOptions(model, decoder string) Options {
	o := options(model)
	o.Model.Out, o.Model.Decoder, o.Model.Dropout, o.Model.AttentionDropout = 8, decoder, 0.2, 0
	return o
}

func mustLink(t testing.TB, dev tensor.Device, d *graph.Dataset, o Options, l LinkOptions) *Result {
	t.Helper()
	r, err := Link(context.Background(), dev, d, o, l, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// blockGraph is a graph of eight communities, most edges inside them, whose features tell
// them apart as well as signal says.
func blockGraph(t testing.TB, n int, signal float64) *graph.Dataset {
	t.Helper()
	const classes, width, degree = 8, 12, 8
	key := rng.New(21)
	d := communities(t, n, false)
	d.Labels.Classes = classes
	var src, dst []uint32
	for v := range n {
		class := v % classes
		d.Labels.Class[v] = int32(class)
		for i := range uint64(degree / 2) {
			at := uint64(v)*degree + i
			u := key.IntN(at, n)
			if key.Fold(1).Float64(at) < 0.9 {
				u = u/classes*classes + class
			}
			if u < n {
				src, dst = append(src, uint32(u)), append(dst, uint32(v))
			}
		}
		for c := range width {
			d.Features.F32[v*width+c] = float32(key.Fold(2).Normal(uint64(v*width + c)))
		}
		d.Features.F32[v*width+class] += float32(signal)
	}
	for _, split := range []*[]uint32{&d.Splits.Train, &d.Splits.Val, &d.Splits.Test} {
		*split = (*split)[:0]
	}
	for v := range uint32(n) {
		split := [3]*[]uint32{&d.Splits.Train, &d.Splits.Val, &d.Splits.Test}[(v/classes)%3]
		*split = append(*split, v)
	}
	var err error
	if d.Graph, err = graph.FromEdges(n, src, dst, nil, graph.BuildOptions{Symmetrise: true, DropDuplicates: true}); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestLinkLearns: held-out edges are found well above chance, on the whole graph and
// in batches, with both decoders and halves.
func TestLinkLearns(t *testing.T) {
	d := blockGraph(t, 400, 2)
	for _, c := range []struct {
		model, decoder string
		mini           *MiniOptions
		rows           tensor.DType
	}{
		{"gcn", "dot", nil, tensor.F32},
		{"sage", "mlp", nil, tensor.BF16},
		{"sage", "dot", &MiniOptions{Sampler: "neighbour", Size: 256, Fanouts: []int{8, 5}, Threads: 2}, tensor.F32},
		{"gat", "mlp", &MiniOptions{Sampler: "neighbour", Size: 256, Fanouts: []int{8, 5}, Threads: 2}, tensor.F32},
	} {
		o, l := linkOptions(c.model, c.decoder), held(t, d.Graph, 3)
		o.Epochs, o.Rows, l.Mini, l.Without = 60, c.rows, c.mini, true
		if c.mini != nil {
			o.Epochs = 20
		}
		dev := cpu(t, 2)
		r := mustLink(t, dev, d, o, l)
		name := fmt.Sprintf("%s, %s, mini %v", c.model, c.decoder, c.mini != nil)
		if r.Metric != "auc" || r.TestMetric < 0.7 || math.Abs(r.Measures["auc"]-r.TestMetric) > 1e-9 {
			t.Errorf("%s: %s %.3f, measures %v", name, r.Metric, r.TestMetric, r.Measures)
		}
		if m := r.Measures; m["mrr"] < 0.2 || m["hits@10"] < m["hits@3"] || m["hits@3"] < m["hits@1"] {
			t.Errorf("%s: %v", name, m)
		}
	}
}

// TestHeldOutEdgesChangeNothing: a training run knows nothing of the edges held out.
// Without some of them, and with others in their place, it has the same bits.
func TestHeldOutEdgesChangeNothing(t *testing.T) {
	d := communities(t, 200, false)
	s, err := sample.HoldOut(t.Context(), d.Graph, 0.1, 0.1, 3)
	if err != nil {
		t.Fatal(err)
	}
	other := &graph.Dataset{Graph: otherHeldOut(t, d.Graph, s), Features: d.Features, Meta: d.Meta}
	for _, mini := range []*MiniOptions{nil, {Sampler: "neighbour", Size: 100, Fanouts: []int{5, 5}, Threads: 1}} {
		o := linkOptions("sage", "mlp")
		o.Epochs = 4
		train := func(d *graph.Dataset) *Result {
			l := held(t, d.Graph, 3)
			l.Mini, l.Without = mini, true
			return mustLink(t, cpu(t, 1), d, o, l)
		}
		a, b := train(d), train(other)
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
}

// otherHeldOut is a graph without half of the edges held out, and with new ones that
// would be held out too.
func otherHeldOut(t *testing.T, g *graph.CSR, s *sample.EdgeSplit) *graph.CSR {
	t.Helper()
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
	// Which pairs would be held out is told by a graph of all pairs.
	n := uint32(g.Nodes())
	full := &graph.CSR{Indptr: []int64{0}}
	for range n {
		for u := range n {
			full.Indices = append(full.Indices, u)
		}
		full.Indptr = append(full.Indptr, int64(len(full.Indices)))
	}
	all, err := sample.HoldOut(t.Context(), full, 0.1, 0.1, 3)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < all.Test.Len(); i += 37 {
		u, v := all.Test.U[i], all.Test.V[i]
		src, dst = append(src, u, v), append(dst, v, u)
	}
	out, err := graph.FromEdges(int(n), src, dst, nil, graph.BuildOptions{DropDuplicates: true})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestLinkBatchOfEverything: one batch of all pairs with all neighbours is a step over
// the whole graph; and without its own pairs, one over a graph that has none of them,
// loops and all, by every model's own way of counting degrees.
func TestLinkBatchOfEverything(t *testing.T) {
	for _, weighted := range []bool{false, true} {
		d := withLoops(t, communities(t, 80, false), weighted)
		for _, model := range []string{"gcn", "sage", "gat", "gin"} {
			for _, without := range []bool{false, true} {
				o, l := linkOptions(model, "dot"), held(t, d.Graph, 3)
				o.Epochs, o.EvalEvery = 3, 0
				full := l
				if without {
					none, err := sample.HoldOut(t.Context(), l.Graph, 0, 0, 3)
					if err != nil {
						t.Fatal(err)
					}
					full.Graph = onlyLoops(none.Graph)
				}
				want := mustLink(t, tensor.NewRef(), d, o, full)
				l.Mini, l.Without = &MiniOptions{Sampler: "neighbour", Size: 1 << 30, Fanouts: []int{sample.All, sample.All}, Threads: 1}, without
				got := mustLink(t, tensor.NewRef(), d, o, l)
				for i := range want.Loss {
					if math.Abs(got.Loss[i]-want.Loss[i]) > 1e-9 {
						t.Fatalf("%s, weighted %v, without own pairs %v: losses %v, want %v", model, weighted, without, got.Loss, want.Loss)
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
	d := communities(t, 150, true)
	for _, mini := range []*MiniOptions{nil, {Sampler: "neighbour", Size: 100, Fanouts: []int{5, 5}, Threads: 2}} {
		o, l := linkOptions("sage", "mlp"), held(t, d.Graph, 3)
		o.Epochs, l.Mini, l.Without = 6, mini, true
		want := mustLink(t, cpu(t, 1), d, o, l)
		var half *State
		o.Epochs, o.Save = 3, func(s *State) error { half = s; return nil }
		mustLink(t, cpu(t, 1), d, o, l)
		o.Epochs, o.Save, o.Resume = 6, nil, half
		got := mustLink(t, cpu(t, 1), d, o, l)
		if !slices.Equal(got.Loss, want.Loss) || got.Measures["mrr"] != want.Measures["mrr"] {
			t.Errorf("losses %v, want %v; measures %v, want %v", got.Loss, want.Loss, got.Measures, want.Measures)
		}
	}
}

func TestLinkRefuses(t *testing.T) {
	d := communities(t, 60, false)
	good := held(t, d.Graph, 3)
	for name, change := range map[string]func(*Options, *LinkOptions){
		"no decoder":     func(o *Options, _ *LinkOptions) { o.Model.Decoder = "" },
		"inductive":      func(o *Options, _ *LinkOptions) { o.Inductive = true },
		"other samplers": func(_ *Options, l *LinkOptions) { l.Mini = &MiniOptions{Sampler: "ladies", Size: 10} },
		"fanouts": func(_ *Options, l *LinkOptions) {
			l.Mini = &MiniOptions{Sampler: "neighbour", Size: 10, Fanouts: []int{3}}
		},
	} {
		o, l := linkOptions("gcn", "dot"), good
		change(&o, &l)
		if _, err := Link(context.Background(), tensor.NewRef(), d, o, l, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestUnsupervisedEmbeddings: under a linear probe embeddings learnt without labels
// beat the raw features, which say little of the classes.
func TestUnsupervisedEmbeddings(t *testing.T) {
	d := blockGraph(t, 600, 0.7)
	raw := probe(t, d)
	for _, mini := range []*MiniOptions{nil, {Sampler: "neighbour", Size: 512, Fanouts: []int{10, 10}, Threads: 2}} {
		o := linkOptions("sage", "dot")
		o.Epochs, o.Model.Out, o.Model.Dropout, o.EvalEvery = 40, 16, 0, 10
		if mini != nil {
			o.Epochs = 10
		}
		l := LinkOptions{Graph: d.Graph, Pairs: &sample.Walks{Graph: d.Graph, PerVertex: 5, Length: 3, Seed: 3}, PerPair: 5, PerPositive: true, Mini: mini}
		var err error
		if l.Negatives, err = sample.NewNegatives(d.Graph, 0.75, false, 3); err != nil {
			t.Fatal(err)
		}
		dev := cpu(t, 2)
		r := mustLink(t, dev, d, o, l)
		if r.Loss[len(r.Loss)-1] >= r.Loss[0] {
			t.Errorf("losses %v", r.Loss)
		}
		learnt := &graph.Dataset{Graph: d.Graph, Labels: d.Labels, Splits: d.Splits, Features: embeddings(t, dev, d, o, r)}
		got := probe(t, learnt)
		t.Logf("mini %v: a probe of embeddings is right in %.3f, of raw features in %.3f", mini != nil, got, raw)
		if got < raw+0.1 {
			t.Error("embeddings do not beat raw features by ten points")
		}
	}
}

// probe is the test accuracy of logistic regression.
func probe(t *testing.T, d *graph.Dataset) float64 {
	t.Helper()
	o := options("mlp")
	o.Model.Out = d.Labels.Classes
	o.Model.Layers, o.Model.Dropout, o.Model.In, o.Epochs = 1, 0, d.Features.Cols, 100
	return mustTrain(t, cpu(t, 2), d, o).TestMetric
}

// embeddings are the rows of the best weights.
func embeddings(t *testing.T, dev tensor.Device, d *graph.Dataset, o Options, r *Result) *graph.Features {
	t.Helper()
	m := nn.New(dev, o.Model, 0)
	if err := m.Load(dev, r.Best); err != nil {
		t.Fatal(err)
	}
	p := &nn.Pass{Dev: dev, Agg: nn.NewLocal(nn.NewTopology(dev, d.Graph), false), Vertices: int64(d.Graph.Nodes())}
	z := m.Forward(p, input(dev, d.Features, o))
	f := &graph.Features{Rows: z.Rows, Cols: z.Cols, F32: make([]float32, z.Rows*z.Cols)}
	dev.Download32(f.F32, z)
	return f
}
