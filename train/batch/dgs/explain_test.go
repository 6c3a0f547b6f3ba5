package dgs

import (
	"context"
	"math"
	"slices"
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
func planted(t *testing.T, star bool) (*explanation, []nn.Tensor) {
	t.Helper()
	p := &partition.Part{Book: &partition.Book{Offsets: []int64{0, 1, 3}, Parts: 2, Nodes: 3},
		Meta: partition.PartMeta{Core: 1}, In: &graph.CSR{Indptr: []int64{0, 2}, Indices: []uint32{1, 2}},
		Halo: []uint32{1, 2}, IDs: []uint32{0, 1, 2}, Labels: &graph.Labels{Classes: 2, Class: []int32{0}},
		Features: &graph.Features{Rows: 1, Cols: 2, F32: []float32{1, 1}}}
	c := nn.Config{Model: "sage", Layers: 1, Hidden: 2, Norm: "none", Aggregator: "mean", In: 2, Out: 2}
	list := explainedRemote(p, 1<<20, 1)
	x := newExplanation(traintest.Ref(), p, p.Features, &graph.Features{Rows: 2, Cols: 2, F32: []float32{3, 0, 0, 3}},
		list, c, tensor.F64, 1<<20, star, 1)
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
	x, _ := planted(t, true)
	defer x.close()
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-10 {
			t.Errorf("%s is %.15g, want %.15g", what, got, want)
		}
	}
	all := x.sample(&explainOptions{})
	target := x.infer(all)
	h := target[0]
	near("the core's prediction", h[0], 1/(1+math.Exp(-3))) // the mean of 3 and 0, twice apart
	nodes, columns := nn.NewMask(2, true, nodeCost), nn.NewMask(2, true, columnCost)
	loss := x.step(x.starOf(all), target, nodes, columns)
	// The pooled vertex has itself and both remote ones as neighbours: first column (1/2 + 3/4 + 0)/3.
	p := 1 / (1 + math.Exp(-2*1.25/3))
	near("the loss", loss, h[0]*math.Log(h[0]/p)+h[1]*math.Log(h[1]/(1-p)))
	d := 2 * (p - h[0]) / 3 // of the first column of every masked row
	near("the first vertex's gradient", nodes.Gradient[0], d*3*0.5)
	near("the second vertex's gradient", nodes.Gradient[1], 0)
	near("the first column's gradient", columns.Gradient[0], d*(1+3*0.5))
	near("the second column's gradient", columns.Gradient[1], 0)
	near("the penalty of vertices", nodes.Penalty(), 0.005*(0.5+0.5)+math.Ln2)
	near("the penalty of columns", columns.Penalty(), 0.5+0.1*math.Ln2)
	nodes.Gradient[0] = 0.001
	nodes.Update(1) // Adam's first step is the sign of each gradient
	near("the first vertex's mask", nodes.Value[0], 1/(1+math.Exp(0.1)))
	nodes.Gradient = []float64{-1, 1}
	nodes.Update(2)
	if !(nodes.Value[0] > nodes.Value[1]) {
		t.Errorf("masks are %v", nodes.Value)
	}
	part := x.among([]uint32{0}, 1, []int{0, 1}) // the core vertex hears from both
	x.star = false
	nodes, columns = nn.NewMask(2, true, nodeCost), nn.NewMask(2, true, columnCost)
	loss = x.step(part, target, nodes, columns)
	p = 1 / (1 + math.Exp(-2*0.75/2)) // first column (3/4 + 0)/2
	near("the part's loss", loss, h[0]*math.Log(h[0]/p)+h[1]*math.Log(h[1]/(1-p)))
	near("the first vertex's gradient in the part", nodes.Gradient[0], 2*(p-h[0])/2*3*0.5)
	near("the first column's gradient in the part", columns.Gradient[0], 2*(p-h[0])/2*3*0.5)
}

// TestPlantedMasks: the neighbour and the column that the prediction depends on get higher masks, whatever is
// explained, and an explanation ends at its loss.
func TestPlantedMasks(t *testing.T) {
	for _, star := range []bool{false, true} {
		x, weights := planted(t, star)
		for _, o := range []explainOptions{{nodes: true, columns: true}, {nodes: true}, {columns: true}} {
			o.epochs = 50
			got, err := x.explain(context.Background(), weights, learnt{}, o)
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
			more, err := x.explain(context.Background(), weights, got.learnt, explainOptions{nodes: o.nodes, epochs: 1})
			if want := 1 / (1 + math.Exp(-got.learnt.nodes[0]/2)); err != nil || o.nodes &&
				math.Abs(more.nodes[0]-want) > 0.03 {
				t.Errorf("masks %v go on as %v: %v", got.nodes, more.nodes, err)
			}
		}
		short := explainOptions{columns: true, epochs: 50, loss: 10}
		got, err := x.explain(context.Background(), weights, learnt{}, short)
		if err != nil || got.epochs != 1 {
			t.Errorf("at a loss of %g explaining ended after %d epochs: %v", got.loss, got.epochs, err)
		}
		x.close()
	}
}

// TestMasksSpread: of a part's vertices some have high masks and others low ones, where those of a star are alike; and
// the loss that ends an explanation is one that explanations reach.
func TestMasksSpread(t *testing.T) {
	d := traintest.Communities(t, 200, false)
	part := traintest.Cut(t, d, "random", 3)[1]
	list := explainedRemote(part, 1<<30, 1)
	rows := &graph.Features{Rows: len(list), Cols: d.Features.Cols, F32: make([]float32, len(list)*d.Features.Cols)}
	for i, v := range list {
		at, _ := slices.BinarySearch(part.Halo, v)
		d.Features.CopyRow(rows.F32[i*rows.Cols:(i+1)*rows.Cols], part.IDs[part.Core()+at])
	}
	o := traintest.Options("sage")
	o.Model.Norm = "none"
	spread := map[bool]float64{}
	for _, star := range []bool{false, true} {
		x := newExplanation(traintest.Ref(), part, part.Features, rows, list, o.Model, tensor.F64, 1<<30, star, 1)
		weights := x.model.State(x.dev)
		for _, w := range weights { // as after some training: predictions differ
			for k := range w.Data {
				w.Data[k] *= 4
			}
		}
		how := explainOptions{nodes: true, columns: true, epochs: 50}
		got, err := x.explain(context.Background(), weights, learnt{}, how)
		if err != nil {
			t.Fatal(err)
		}
		q := quartiles(got.nodes)
		spread[star] = q[2] - q[0]
		how.epochs, how.loss = 300, Off.DGSLoss
		short, err := x.explain(context.Background(), weights, learnt{}, how)
		if err != nil || short.epochs < 2 || short.epochs == how.epochs {
			t.Errorf("it ends at a loss of %g after %d epochs: %v", short.loss, short.epochs, err)
		}
		x.close()
	}
	if !(spread[false] > 0.1 && spread[true] < 0.1) {
		t.Errorf("quartiles of a part's masks are %g apart, of a star's %g", spread[false], spread[true])
	}
}

// TestSampledExplanation: a sample has no more rows than it may, the vertices explained first, with neighbours that are
// theirs, and only masks of what it has are learnt.
func TestSampledExplanation(t *testing.T) {
	d := traintest.Communities(t, 200, false)
	part := traintest.Cut(t, d, "random", 3)[1]
	list := explainedRemote(part, 1<<30, 1)
	rows := &graph.Features{Rows: len(list), Cols: d.Features.Cols,
		F32: slices.Repeat([]float32{2}, len(list)*d.Features.Cols)}
	o := traintest.Options("sage")
	o.Model.Norm = "none"
	x := newExplanation(traintest.Ref(), part, part.Features, rows, list, o.Model, tensor.F64, 1<<30, false, 1)
	defer x.close()
	how := explainOptions{nodes: true, epochs: 3, rows: 30}
	seen := map[int]bool{}
	for how.number = range 20 {
		core, targets, remote := x.neighbourhoods(&how)
		if n := len(core) + len(remote); n > 30 || n < 25 || targets < 1 || len(remote) < 1 {
			t.Fatalf("%d core vertices, %d of them explained, and %d remote ones", len(core), targets, len(remote))
		}
		sorted := slices.Sorted(slices.Values(core))
		if len(slices.Compact(sorted)) != len(core) {
			t.Fatalf("core vertices %v", core)
		}
		for _, r := range remote {
			seen[r] = true
		}
		got, err := x.explain(context.Background(), x.model.State(x.dev), learnt{}, how)
		if err != nil {
			t.Fatal(err)
		}
		for i, m := range got.nodes {
			if changed := got.learnt.nodes[i] != 0; changed != slices.Contains(remote, i) {
				t.Fatalf("mask %d is %g, in a sample of %v", i, m, remote)
			}
		}
	}
	if len(seen) < 30 {
		t.Errorf("20 samples have %d remote vertices", len(seen))
	}
}

// TestPace: the work of explaining is the share asked for, at any size of batches, and without a share it is all.
func TestPace(t *testing.T) {
	o := Off
	for _, c := range []struct{ batch, all float64 }{{50, 700}, {400, 700}, {20000, 3000}, {20000, 200}, {3, 40}} {
		p := o.pace(c.batch, int(c.all))
		rows := c.all
		if p.rows > 0 {
			rows = float64(p.rows)
		}
		work := rows * float64(p.epochs+1) * explainCost / float64(p.every)
		if most := o.DGSShare * float64(o.DGSEvery) * c.batch; work > most*1.0001 || work < most/4 && p.rows > 0 {
			t.Errorf("%v: %+v is work of %g, may be %g", c, p, work, most)
		}
	}
	o.DGSShare = 0
	if p := o.pace(50, 700); p != (pace{epochs: 50, every: 1}) {
		t.Errorf("without a share %+v", p)
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
		x := newExplanation(traintest.Ref(), part, part.Features, rows, list, o.Model, tensor.F64, 1<<20, i%2 == 0, 1)
		x.labels = []string{graph.SingleLabel, graph.MultiLabel, graph.Regression}[i%3]
		all := x.sample(&explainOptions{})
		target := x.infer(all)
		if x.star {
			target, all = mean(target), x.starOf(all)
		}
		nodes, columns := nn.NewMask(len(list), true, nn.MaskCost{}), nn.NewMask(x.cols, true, nn.MaskCost{})
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
				up := x.step(all, target, nodes, columns)
				m.Value[k] = at - step
				down := x.step(all, target, nodes, columns)
				m.Value[k] = at
				mid := x.step(all, target, nodes, columns)
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
