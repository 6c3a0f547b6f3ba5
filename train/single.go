package train

import (
	"context"
	"fmt"
	"slices"

	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/tensor"
	"starling/wire"
)

// Full trains on a whole graph in this process. It returns early, with what was
// reached and Reason "interrupted", when ctx ends.
func Full(ctx context.Context, dev tensor.Device, data *graph.Dataset, opt Options, events event.Listener) (*Result,
	error) {
	if events == nil {
		events = event.All()
	}
	s, err := WholeGraph(dev, data, opt)
	if err != nil {
		return nil, err
	}
	f, err := NewLoop(dev, s, Alone{}, opt, events)
	if err != nil {
		return nil, err
	}
	f.dropFeatures()
	events.On(event.Started{Dataset: data.Meta.Name, Model: opt.Model.Model, Strategy: "none", Workers: 1,
		Vertices: int64(data.Graph.Nodes()), Edges: data.Graph.Edges(), Parameters: f.Model.Size(),
		Learnt:     f.LearntNumbers(),
		FirstEpoch: f.State.Epoch, Epochs: opt.Epochs, Metric: f.metric.Name})
	r, err := f.Run(ctx)
	if r != nil && f.Learnt != nil && r.Best != nil {
		r.Best = append(slices.Clip(r.Best), f.Learnt.Rows(dev)...)
	}
	return r, err
}

// dropFeatures has a device with a copy of the features free it when their sum over neighbours is kept, where the
// model reads nothing else of them.
func (f *Loop) dropFeatures() {
	on, ok := f.TrainOn.(local)
	back, copies := f.Dev.(tensor.Returner)
	if ok && copies && on.CacheFirst && f.TrainOn == f.MeasureOn && f.X.Sparse == nil && f.Model.OnlySums() {
		on.Done = back.Return
	}
}

// WholeGraph puts graph, features, labels and splits on the device.
func WholeGraph(dev tensor.Device, data *graph.Dataset, opt Options) (s Share, err error) {
	if data.Features == nil && !data.Typed() || data.Labels == nil || len(data.Splits.Train) == 0 {
		return s, fmt.Errorf("dataset %s: training needs features, labels and a train split", data.Dir)
	}
	if err := data.Graph.CheckLocal(); err != nil {
		return s, err
	}
	s.Task = taskOf(dev, data.Labels)
	s.Splits = splits(dev, &data.Splits)
	s.Known = Known{Labels: data.Labels, Splits: data.Splits}
	s.Vertices, s.Training = int64(data.Graph.Nodes()), int64(len(data.Splits.Train))
	topology := nn.NewTopology(dev, data.Graph)
	if schema := data.Meta.Schema; schema != nil {
		s.Types, s.Schema = schema.AllRuns(), schema
		topology.SetTypes(schema, s.Types, s.Types)
		s.X = nn.Input{Typed: typedInput(dev, s.Types, data.TypeFeatures, nil, schema, opt)}
	} else {
		s.X = Input(dev, data.Features, opt)
	}
	s.MeasureOn = local{nn.NewLocal(topology, opt.CacheFirst)}
	s.TrainOn = s.MeasureOn
	if opt.Inductive {
		seen := make([]bool, data.Graph.Nodes())
		for _, v := range data.Splits.Train {
			seen[v] = true
		}
		s.TrainOn = local{nn.NewLocal(nn.NewTopology(dev, data.Graph.Subgraph(seen)), opt.CacheFirst)}
	}
	return s, nil
}

// local is the strategy of a graph that is all here.
type local struct{ *nn.Local }

func (local) Begin(int, int, bool)      {}
func (local) Err() error                { return nil }
func (local) Finish() error             { return nil }
func (local) Caches() []nn.Tensor       { return nil }
func (local) Plan(*nn.Model) *wire.Plan { return wire.NewPlan() }
