package batch

import (
	"context"
	"fmt"

	"starling/event"
	"starling/exchange"
	"starling/graph"
	"starling/nn"
	"starling/partition"
	"starling/sample"
	"starling/store"
	"starling/tensor"
	"starling/train"
	"starling/train/site"
	"starling/wire"
)

// Predictions of models that were trained on temporal batches: each vertex from what is from before its own time,
// drawn
// as when splits were measured.

// timesOf are the times of a dataset's vertices, as they are predicted: all after the last, where it has none.
func timesOf(times []int64, v uint32) int64 {
	if times == nil {
		return graph.NoTime
	}
	return times[v]
}

// PredictAsOf is what a model computes for every vertex of a dataset, without its last leftOut stages.
func PredictAsOf(dev tensor.Device, d *graph.Dataset, features *graph.Features, opt train.Options,
	weights []nn.Tensor,
	leftOut int, as *sample.AsOf) (width int, rows []float32, err error) {
	model := nn.New(dev, opt.Model, as.Seed)
	if err := model.Load(dev, weights); err != nil {
		return 0, nil, err
	}
	g, seen := Seen(d.Graph, opt), d.SeenFrom()
	if seen == nil {
		return 0, nil, timelessEdges(d.Dir)
	}
	n := &sample.Temporal{Graph: g, Past: sample.NewPast(g, seen, nil), Times: make([]int64, g.Nodes()),
		Fanouts: as.Fanouts, Recent: as.Draws == "recent", Seed: as.Seed}
	if _, err := n.Prepare(); err != nil {
		return 0, nil, err
	}
	opt.Seed = as.Seed
	all := train.Input(dev, features, opt)
	over := blocksOf(dev, g, all.Matrix)
	s := n.TemporalSampler()
	host := &Host{Features: features, form: formOf(model, over.loops)}
	if opt.Model.EdgeDim > 0 {
		host.graph = g
	}
	w := &passes{dev: dev, opt: &opt, model: model, over: over, host: host, all: all,
		draw: func(b *Batch, seeds []uint32, times []int64) error {
			s.SampleAt(&b.Batch, seeds, times, measuring, 0)
			return nil
		}}
	return w.table(g.Nodes(), leftOut, func(v uint32) (uint32, int64) { return v, timesOf(d.Times, v) })
}

// table is every vertex's row.
func (w *passes) table(n, leftOut int, seed func(v uint32) (uint32, int64)) (width int, rows []float32, err error) {
	list := make([]uint32, n)
	for v := range list {
		list[v] = uint32(v)
	}
	width, err = w.each(list, leftOut, seed, func(_ uint32, row []float64) {
		for _, x := range row {
			rows = append(rows, float32(x))
		}
	})
	return width, rows, err
}

func timelessEdges(dir string) error {
	return &graph.InputError{File: dir, Field: "times", Found: "none",
		Want: "times of edges or of vertices, as the model " +
			"was trained with", Fix: "import the tables with --time COLUMN"}
}

// InferAsOf is PredictAsOf of one of several workers, for the vertices of its part. All call it.
func InferAsOf(ctx context.Context, dev tensor.Device, part *partition.Part, end wire.Endpoint, opt train.Options,
	weights []nn.Tensor, leftOut int, as *sample.AsOf) ([]float32, error) {
	rows, err := inferAsOf(ctx, dev, part, end, opt, weights, leftOut, as)
	if err != nil {
		end.Fail(err)
	}
	return rows, err
}

func inferAsOf(ctx context.Context, dev tensor.Device, part *partition.Part, end wire.Endpoint, opt train.Options,
	weights []nn.Tensor, leftOut int, as *sample.AsOf) (rows []float32, err error) {
	if part.SeenFrom == nil {
		return nil, timelessEdges(part.Dir)
	}
	model := nn.New(dev, opt.Model, as.Seed)
	if err := model.Load(dev, weights); err != nil {
		return nil, err
	}
	if g := Seen(part.In, opt); g != part.In {
		less := *part
		less.In, part = g, &less
	}
	opt.Seed = as.Seed
	opt.Batches = &train.BatchSettings{Sampler: "neighbour", Fanouts: as.Fanouts, Temporal: as.Draws}
	on := &train.Site{Ctx: ctx, Dev: dev, Part: part, End: end, Opt: opt, Events: event.All(),
		Peers: train.NewGroup(ctx, end, dev, part.Book.Servers)}
	p := &Pipeline{Site: on, Options: Options(*opt.Batches),
		Setup: exchange.NewSetup(site.Worker(on, exchange.DefaultRows, exchange.RelayOption{}))}
	if p.Loops, err = anyLoops(p.Setup); err != nil {
		return nil, err
	}
	if p.Store, err = store.Open(ctx, part, end, p.Draws()); err != nil {
		return nil, err
	}
	host := &Host{Features: part.Features, form: formOf(model, p.Loops)}
	if opt.Model.EdgeDim > 0 {
		host.graph = part.In
	}
	w := p.passes(model, host, train.Input(dev, part.Features, opt))
	if _, err := p.Setup.Share(0); err != nil { // all serve
		return nil, err
	}
	_, rows, err = w.table(part.Core(), leftOut, func(v uint32) (uint32, int64) {
		return p.Setup.W.Global(v), timesOf(part.Times, v)
	})
	if err == nil {
		_, err = p.Setup.Share(1) // all have asked
	}
	if err != nil {
		return nil, fmt.Errorf("predicting from the past: %w", err)
	}
	return rows, p.Store.Close()
}
