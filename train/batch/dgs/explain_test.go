package dgs

import (
	"context"
	"math"
	"testing"

	"starling/graph"
	"starling/internal/testseed"
	"starling/nn"
	"starling/partition"
	"starling/rng"
	"starling/tensor"
	"starling/train/traintest"
)

// planted is the explanation of a part of one core vertex, with features (1, 1), and two remote
// neighbours, with (3, 0) and (0, 3), by a layer of GraphSAGE that adds up the mean of neighbours
// only: logits ±mean of the first column.
func planted(t *testing.T) (*explanation, []nn.Tensor) {
	t.Helper()
	p := &partition.Part{Book: &partition.Book{Offsets: []int64{0, 1, 3}, Parts: 2, Nodes: 3},
		Meta: partition.PartMeta{Core: 1}, In: &graph.CSR{Indptr: []int64{0, 2}, Indices: []uint32{1, 2}},
		Halo: []uint32{1, 2}, IDs: []uint32{0, 1, 2}, Labels: &graph.Labels{Classes: 2, Class: []int32{0}},
		Features: &graph.Features{Rows: 1, Cols: 2, F32: []float32{1, 1}}}
	c := nn.Config{Model: "sage", Layers: 1, Hidden: 2, Norm: "none", Aggregator: "mean", In: 2, Out: 2}
	list := explainedRemote(p, 1<<20, 1)
	x := newExplanation(traintest.Ref(), p, p.Features, &graph.Features{Rows: 2, Cols: 2, F32: []float32{3, 0, 0, 3}},
		list, c, tensor.F64, 1<<20, 1)
	weights := x.model.State(x.dev)
	for i, w := range weights {
		for k := range w.Data {
			weights[i].Data[k] = 0
		}
		if w.Name == "convs.0.lin_l.weight" { // [out, in]
			copy(weights[i].Data, []float64{1, 0, -1, 0})
		}
	}
	if err := x.model.Load(x.dev, weights); err != nil {
		t.Fatal(err)
	}
	return x, weights
}

// TestMasksByHand: the target, the loss and the gradients of masks at their beginning, where all are
// one half, are those computed by hand.
func TestMasksByHand(t *testing.T) {
	x, _ := planted(t)
	defer x.close()
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-12 {
			t.Errorf("%s is %.15g, want %.15g", what, got, want)
		}
	}
	h := x.infer()
	near("the core's prediction", h[0], 1/(1+math.Exp(-3))) // the mean of 3 and 0, twice apart
	nodes, columns := nn.NewMask(2, true, 0.5, 1), nn.NewMask(2, true, 1, 0.1)
	loss := x.step(h, nodes, columns)
	// The pooled vertex has itself and both remote ones as neighbours: first column (1/2 + 3/4 + 0)/3.
	p := 1 / (1 + math.Exp(-2*1.25/3))
	near("the loss", loss, h[0]*math.Log(h[0]/p)+h[1]*math.Log(h[1]/(1-p)))
	d := 2 * (p - h[0]) / 3 // of the first column of every masked row
	near("the first vertex's gradient", nodes.Gradient[0], d*3*0.5)
	near("the second vertex's gradient", nodes.Gradient[1], 0)
	near("the first column's gradient", columns.Gradient[0], d*(1+3*0.5))
	near("the second column's gradient", columns.Gradient[1], 0)
	near("the penalty of vertices", nodes.Penalty(), 0.25+math.Ln2)
	near("the penalty of columns", columns.Penalty(), 0.5+0.1*math.Ln2)
	columns.Update(1) // Adam's first step is the gradient over the root of its mean square
	g := []float64{columns.Gradient[0]*0.25 + 0.125, 0.125}
	rms := math.Sqrt((g[0]*g[0] + g[1]*g[1]) / 2)
	near("the first column's mask", columns.Value[0], 1/(1+math.Exp(0.1*g[0]/rms)))
	near("the second column's mask", columns.Value[1], 1/(1+math.Exp(0.1*g[1]/rms)))
}

// TestPlantedMasks: the neighbour and the column that the prediction depends on get higher masks.
func TestPlantedMasks(t *testing.T) {
	x, weights := planted(t)
	defer x.close()
	for _, o := range []explainOptions{{nodes: true, columns: true}, {nodes: true}, {columns: true}} {
		o.epochs, o.loss = 50, 0.01
		got, err := x.explain(context.Background(), weights, o)
		if err != nil {
			t.Fatal(err)
		}
		if higher := got.nodes[0] > got.nodes[1]; higher != o.nodes {
			t.Errorf("%+v: masks of vertices %v", o, got.nodes)
		}
		if higher := got.columns[0] > got.columns[1]; higher != o.columns {
			t.Errorf("%+v: masks of columns %v", o, got.columns)
		}
		if got.epochs != 50 {
			t.Errorf("%+v: %d epochs", o, got.epochs)
		}
	}
	got, err := x.explain(context.Background(), weights, explainOptions{columns: true, epochs: 50, loss: 10})
	if err != nil || got.epochs != 1 {
		t.Errorf("at a loss of %g explaining ended after %d epochs: %v", got.loss, got.epochs, err)
	}
}

// TestMaskGradients compares gradients of masks with differences, for every kind of layer and of
// labels.
func TestMaskGradients(t *testing.T) {
	key := rng.New(testseed.New(t))
	for i, model := range traintest.FamilyModels {
		d := traintest.Communities(t, 60, i == 1)
		part := traintest.Cut(t, d, "random", 3)[1]
		o := traintest.Options(model)
		o.Model.Norm = "none"
		if model == "ressage+" {
			o.Model.Norm = "layer"
		}
		list := explainedRemote(part, 1<<20, 1<<12)
		rows := &graph.Features{Rows: len(list), Cols: d.Features.Cols}
		for k := range rows.Rows * rows.Cols {
			rows.F32 = append(rows.F32, float32(key.Normal(uint64(k))))
		}
		x := newExplanation(traintest.Ref(), part, part.Features, rows, list, o.Model, tensor.F64, 1<<20, 1)
		x.labels = []string{graph.SingleLabel, graph.MultiLabel, graph.Regression}[i%3]
		target := x.infer()
		nodes, columns := nn.NewMask(len(list), true, 0, 0), nn.NewMask(x.cols, true, 0, 0)
		for k := range nodes.Value {
			nodes.Value[k] = key.Fold(1).Float64(uint64(k))
		}
		for k := range columns.Value {
			columns.Value[k] = key.Fold(2).Float64(uint64(k))
		}
		for _, m := range []*nn.Mask{nodes, columns} {
			for _, k := range []int{0, len(m.Value) - 1} {
				const step = 1e-5
				at := m.Value[k]
				m.Value[k] = at + step
				up := x.step(target, nodes, columns)
				m.Value[k] = at - step
				down := x.step(target, nodes, columns)
				m.Value[k] = at
				mid := x.step(target, nodes, columns)
				if lo, hi := (mid-down)/step, (up-mid)/step; !between(m.Gradient[k], lo, hi) {
					t.Errorf("%s: gradient %g of mask %d, by differences %g and %g", model, m.Gradient[k], k, lo, hi)
				}
			}
		}
		x.close()
	}
}

// between reports whether a gradient lies between the differences to both sides. These are equal up to the curvature,
// except where a step crosses a kink (a ReLU's, a maximum's): then the mean of the two is not the gradient.
func between(gradient, a, b float64) bool {
	slack := 1e-5 * (1e-2 + math.Abs(a+b)/2)
	return gradient > min(a, b)-slack && gradient < max(a, b)+slack
}

// TestExplainerMemory: what does not fit has no masks, and the busiest neighbours do.
func TestExplainerMemory(t *testing.T) {
	d := traintest.Communities(t, 200, false)
	part := traintest.Cut(t, d, "random", 4)[0]
	all, some := explainedRemote(part, 1<<40, 1000), explainedRemote(part, 20*1000, 1000)
	if len(all) != len(part.Halo) || len(some) != 10 {
		t.Fatalf("%d and %d remote vertices of %d", len(all), len(some), len(part.Halo))
	}
	edges := map[uint32]int{}
	for _, u := range part.In.Indices {
		if int(u) >= part.Core() {
			edges[part.Halo[int(u)-part.Core()]]++
		}
	}
	least := math.MaxInt
	for _, v := range some {
		least = min(least, edges[v])
		delete(edges, v)
	}
	for v, n := range edges {
		if n > least {
			t.Errorf("vertex %d with %d edges has no mask, one with %d has", v, n, least)
		}
	}
}
