package batch

import (
	"context"
	"fmt"

	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/sample"
	"starling/tensor"
	"starling/train"
)

// Run trains on mini-batches of a graph in this process: an epoch is a step for each
// batch. Batches are sampled on other cores before they are needed. Measuring goes over the
// whole graph with all neighbours, layer by layer, so that its memory does not grow with
// the number of layers.
//
// An epoch of one batch with all neighbours is an epoch of train.Full.
func Run(ctx context.Context, dev tensor.Device, data *graph.Dataset, opt train.Options, mini train.BatchSettings,
	events event.Listener) (*train.Result, error) {
	if events == nil {
		events = event.All()
	}
	whole := opt
	whole.Inductive = false // what is trained on is ours to choose
	s, err := train.WholeGraph(dev, data, whole)
	if err != nil {
		return nil, err
	}
	f, err := train.NewLoop(dev, s, train.Alone{}, opt, events)
	if err != nil {
		return nil, err
	}
	g := data.Graph
	if opt.Inductive {
		g = g.Subgraph(marked(g.Nodes(), data.Splits.Train))
	}
	m, err := newSteps(ctx, f, Seen(g, opt), data, Options(mini))
	if err != nil {
		return nil, err
	}
	defer m.Stop()
	f.TrainEpoch = m.Epoch
	events.On(event.Started{Dataset: data.Meta.Name, Model: opt.Model.Model, Strategy: "none", Workers: 1,
		Vertices: int64(data.Graph.Nodes()), Edges: data.Graph.Edges(), Parameters: f.Model.Size(),
		Learnt:     f.LearntNumbers(),
		FirstEpoch: f.State.Epoch, Epochs: opt.Epochs, Metric: f.MetricName()})
	return f.Run(ctx)
}

// DryRun is the memory dry run of Run, on a few batches.
func DryRun(ctx context.Context, dev tensor.Device, data *graph.Dataset, opt train.Options, mini train.BatchSettings,
	events event.Listener) (*train.Needs, error) {
	mini.DryEpochs = opt.Epochs
	if (*Options)(&mini).inClusters() { // equally many vertices, without cutting the graph
		mini.Sampler = "saint-node"
	}
	r, err := Run(ctx, dev, data, train.DryOptions(opt), mini, events)
	if err != nil {
		return nil, err
	}
	return &train.Needs{Parameters: r.Parameters}, nil
}

// Seen is a graph without features of edges if the model looks at none: samplers then
// need not say which edges they drew.
func Seen(g *graph.CSR, opt train.Options) *graph.CSR {
	if opt.Model.EdgeDim > 0 || g.EdgeDim == 0 {
		return g
	}
	plain := *g
	plain.EdgeDim, plain.EdgeFeatures = 0, nil
	return &plain
}

// marked has true for the vertices listed.
func marked(n int, ids []uint32) []bool {
	m := make([]bool, n)
	for _, v := range ids {
		m[v] = true
	}
	return m
}

func newSteps(ctx context.Context, f *train.Loop, g *graph.CSR, data *graph.Dataset, mo Options) (*Steps, error) {
	convs := f.Model.Convs()
	if mo.layered() && len(mo.Fanouts) != convs {
		return nil, fmt.Errorf("%d fanouts for a model of %d graph layers; give one per layer", len(mo.Fanouts), convs)
	}
	if err := mo.checkWeighs(f.Opt); err != nil {
		return nil, err
	}
	if text := mo.before(g.Nodes()); text != "" {
		f.Events.On(event.Note{Minor: true, Text: text})
	}
	if data.Typed() {
		if mo.DrawOn == onGPU {
			return nil, notDrawnThere("the graph has types")
		}
		return typedSteps(ctx, f, g, data, mo)
	}
	if mo.Temporal != "" {
		return temporalSteps(f, g, data, mo)
	}
	method, err := mo.Method(ctx, g, data.Splits.Train, convs, readsDirectly(f), f.Opt.Seed)
	if err != nil {
		return nil, err
	}
	m := OnMethod(f, method, g, data.Features, data.Labels, mo)
	if err := m.checkDrawOn(&mo); err != nil {
		m.Stop()
		return nil, err
	}
	return m, nil
}

// OnMethod has batches sampled by a method, of which a memory dry run takes a few.
func OnMethod(f *train.Loop, method sample.Method, g *graph.CSR, features *graph.Features, labels *graph.Labels,
	mo Options) *Steps {
	if f.Opt.RowNormalize && features.Kind() == graph.Sparse {
		features = features.RowNormalize()
	}
	on := blocksOf(f.Dev, g, f.X.Matrix)
	host := NewHost(f, g, features, labels, on.loops)
	if labels != nil { // a step of pairs changes degrees, which batches that are drawn meanwhile must not see
		host.kind, host.degrees = kindOf(f), on.Degrees
	}
	m := &Steps{Loop: f, Count: method.Batches(), few: mo.DryEpochs > 0, Over: on, Degrees: on.Degrees}
	switch {
	case m.few:
		m.Count = min(m.Count, 32)
	case labels != nil && f.X.Typed == nil:
		m.ahead = newAhead(f.Dev, on, host)
	}
	if f.Opt.Disk != nil && !m.few {
		m.disk = diskOf(f, method, features, mo.ThreadCount())
		host.disk, host.returned = m.disk, m.disk.release
	}
	m.Source = m.prefetch(method, g, host, mo)
	return m
}

// prefetch has batches be drawn before they are needed, by the device or by the host's threads.
func (m *Steps) prefetch(method sample.Method, g *graph.CSR, host *Host, mo Options) Source {
	f := m.Loop
	var on Drawer
	if m.drawnOn = "it was not asked to"; mo.DrawOn != onHost && mo.DrawOn != "" {
		on, m.drawnOn = m.drawsThere(host, method, g, &mo)
	}
	last := max(f.Opt.Epochs, mo.DryEpochs)
	if on != nil {
		return NewPrefetcher(method.Batches(), drawnBuffers-2, []Drawer{on}, host, f.State, last)
	}
	var drawers []Drawer
	for range mo.ThreadCount() {
		local := localDrawer{method.Sampler()}
		if m.disk == nil {
			drawers = append(drawers, local)
			continue
		}
		drawers = append(drawers, diskDrawer{local, m.disk})
	}
	return NewPrefetcher(method.Batches(), len(drawers), drawers, host, f.State, last)
}

// readsDirectly reports whether the first layer only sums features that are the
// same in every batch: they are then read in place, not gathered.
func readsDirectly(f *train.Loop) bool {
	if f.X.Sparse != nil || f.Opt.HostFeatures || f.Opt.Disk != nil { // each row comes once
		return false
	}
	t := f.Model.Traffic(false, nn.Kept, true)
	return len(t) > 0 && t[0].Once > 0
}
