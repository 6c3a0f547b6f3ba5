package dgs

import (
	"context"
	"testing"

	"starling/event"
	"starling/graph"
	"starling/partition"
	"starling/sample"
	"starling/store"
	"starling/train"
	"starling/train/batch"
	"starling/train/traintest"
)

// guidedAlone is DGS on one machine that has the whole graph: the batches of all workers one after
// the other, their gradients added up, and the explanations of all parts when they are due. It is
// the obvious twin of what workers do together.
type guidedAlone struct {
	*train.Loop
	steps   *batch.Steps
	d       *graph.Dataset
	parts   []*partition.Part
	sampler sample.SeedSampler
	every   int
	kept    float64
	epsilon float64
	number  []uint32 // of the dataset's vertices, in the partition
	masks   []map[int]*version
	theta   []learnt
	star    bool
	remote  [][]uint32
}

func newGuidedAlone(t *testing.T, d *graph.Dataset, parts []*partition.Part, o train.Options,
	mo train.BatchSettings) *guidedAlone {
	t.Helper()
	s, err := train.WholeGraph(traintest.Ref(), d, o)
	if err != nil {
		t.Fatal(err)
	}
	f, err := train.NewLoop(traintest.Ref(), s, train.Alone{}, o, event.All())
	if err != nil {
		t.Fatal(err)
	}
	n := &sample.Neighbour{Graph: d.Graph, SeedVertices: d.Splits.Train, Size: mo.Size, Fanouts: mo.Fanouts,
		Seed: o.Seed}
	method, err := n.Prepare()
	if err != nil {
		t.Fatal(err)
	}
	g := &guidedAlone{d: d, parts: parts, sampler: method.Sampler().(sample.SeedSampler), every: 3, kept: 0.5,
		epsilon: 0.05, number: make([]uint32, d.Graph.Nodes()), masks: make([]map[int]*version, len(parts)),
		remote: make([][]uint32, len(parts)), theta: make([]learnt, len(parts))}
	for k, p := range parts {
		g.masks[k] = map[int]*version{}
		for v := range p.Core() {
			g.number[p.IDs[v]] = uint32(p.Book.Offsets[k]) + uint32(v)
		}
	}
	g.Loop = f
	g.steps = &batch.Steps{Loop: f, Count: method.Batches(), Over: batch.NewBlocks(f.Dev, true, f.X.Matrix)}
	f.TrainEpoch = g.epoch
	return g
}

func (g *guidedAlone) epoch(epoch int, lr float64) (float64, error) {
	sum, seeds := 0.0, 0.0
	order := sample.NewOrder(g.d.Splits.Train, dgsBatches.Size, g.Opt.Seed)
	for number := range g.steps.Count {
		g.Model.ZeroGrad(g.Dev)
		all := order.Batch(epoch, number)
		owner := func(v uint32) int { return g.parts[0].Book.Owner(g.number[v]) }
		for i, k := range batch.Balanced(all, owner, len(g.parts), max(1, g.parts[0].Book.Servers)) {
			all[i] |= uint32(k) << 24 // small graphs
		}
		for k := range g.parts {
			var mine []uint32
			for _, v := range all {
				if int(v>>24) == k {
					mine = append(mine, v&(1<<24-1))
				}
			}
			b := g.batch(k, mine, epoch, number)
			b.Scale = 1 / float64(order.Size())
			loss, err := g.steps.Accumulate(b, g.steps.Labels())
			if err != nil {
				return 0, err
			}
			sum += loss
			seeds += float64(len(mine))
		}
		g.Optim.Step(lr)
		if done := epoch*g.steps.Count + number + 1; done%g.every == 0 {
			for k := range g.parts {
				g.explain(k, done/g.every)
			}
		}
	}
	return sum / seeds, nil
}

// explain learns the masks of a part.
func (g *guidedAlone) explain(k, number int) {
	p, o := g.parts[k], Off
	each := vertexBytes(&g.Opt.Model, 8)
	g.remote[k] = explainedRemote(p, o.bytes(), each)
	rows := &graph.Features{Rows: len(g.remote[k]), Cols: g.d.Features.Cols}
	for _, v := range g.remote[k] {
		row := make([]float32, rows.Cols)
		g.d.Features.CopyRow(row, g.id(v))
		rows.F32 = append(rows.F32, row...)
	}
	x := newExplanation(traintest.Ref(), p, p.Features, rows, g.remote[k], g.Opt.Model, g.Opt.Rows, o.bytes(),
		g.star, g.Opt.Seed)
	how := explainOptions{nodes: true, columns: true, epochs: 5, loss: o.DGSLoss}
	out, err := x.explain(context.Background(), g.Model.State(g.Dev), g.theta[k], how)
	if err != nil {
		panic(err)
	}
	g.theta[k] = out.learnt
	v := &version{}
	v.nodes, v.missing = quantized(out.nodes)
	v.keep = highest(out.columns, keptColumns(x.cols, g.kept))
	g.masks[k][number] = v
}

func (g *guidedAlone) id(number uint32) uint32 {
	k := g.parts[0].Book.Owner(number)
	return g.parts[k].IDs[number-uint32(g.parts[k].Book.Offsets[k])]
}

// batch is what worker k draws and fetches.
func (g *guidedAlone) batch(k int, seeds []uint32, epoch, number int) *batch.Batch {
	v := g.masks[k][(epoch*g.steps.Count+number)/g.every-1]
	if v == nil {
		g.sampler.Guide(nil)
	} else {
		masks := map[uint32]byte{}
		for i, u := range g.remote[k] {
			masks[u] = v.nodes[i]
		}
		g.sampler.Guide(&sample.Guide{Deviation: g.epsilon, Mask: func(source uint32) (float64, bool) {
			n := g.number[source]
			if g.parts[0].Book.Owner(n) == k {
				return 1, false
			}
			if m, ok := masks[n]; ok {
				return float64(m) / 255, true
			}
			return float64(v.missing) / 255, true
		}})
	}
	b := batch.NewBatch(batch.NewHost(g.Loop, g.d.Graph, g.d.Features, g.d.Labels, true))
	g.sampler.SampleSeeds(&b.Batch, seeds, epoch, number)
	g.fetch(k, b, v)
	b.Prepare()
	return b
}

// fetch fills what was fetched: whole rows of own vertices, some columns of others. Edges have no weights.
func (g *guidedAlone) fetch(k int, b *batch.Batch, v *version) {
	p := b.Pulled
	f := &p.Features
	f.Rows, f.Cols, f.F32 = len(b.Vertices), g.d.Features.Cols, make([]float32, len(b.Vertices)*g.d.Features.Cols)
	p.Labels.Classes = g.d.Labels.Classes
	for i, u := range b.Vertices {
		row := f.F32[i*f.Cols : (i+1)*f.Cols]
		g.d.Features.CopyRow(row, u)
		if v != nil && g.parts[0].Book.Owner(g.number[u]) != k {
			for _, c := range missingColumns(v.keep, f.Cols) {
				row[c] = 0
			}
		}
		p.Known.IDs = append(p.Known.IDs, u)
		p.Known.NoLoops = append(p.Known.NoLoops, float64(g.d.Graph.Degree(u)-loops(g.d.Graph, u)))
		p.Known.All = append(p.Known.All, float64(g.d.Graph.Degree(u)))
		p.Labels.Class = append(p.Labels.Class, g.d.Labels.Class[u])
	}
}

func loops(g *graph.CSR, v uint32) (n int) {
	for _, u := range g.Neighbors(v) {
		if u == v {
			n++
		}
	}
	return n
}

func missingColumns(c *store.Columns, all int) (out []int) {
	has := map[uint32]bool{}
	for _, i := range c.List() {
		has[i] = true
	}
	for i := range all {
		if !has[uint32(i)] {
			out = append(out, i)
		}
	}
	return out
}

// TestGuidedRunIsOneMachines: several workers with DGS follow the loss curve of one machine that does
// the same with the whole graph at hand, dropout included.
func TestGuidedRunIsOneMachines(t *testing.T) {
	for i, model := range []string{"sage", "gcn", "gat"} {
		d := traintest.Communities(t, 120, false)
		o := traintest.Options(model)
		o.Epochs, o.Model.Layers, o.Model.Norm = 4, 2, "none"
		parts := traintest.Cut(t, d, []string{"random", "fennel"}[i%2], 2+i)
		alone := newGuidedAlone(t, d, parts, o, dgsBatches)
		alone.star = i != 1
		graph := "dgs_graph=" + []string{"star", "part", "star"}[i]
		one, err := alone.Run(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		for _, strategy := range []string{"distdgl", "bytegnn"} {
			got := traintest.Batches(t, parts, o, dgsBatches, i%2 == 0, strategy, "dgs", "dgs_every=3", "dgs_epochs=5",
				graph, "dgs_share=0", "dgs_features=0.5", "dgs_epsilon=0.05").Results[0]
			traintest.SameRun(t, got, one)
		}
	}
}
