package train

import (
	"cmp"
	"context"

	"starling/event"
	"starling/nn"
	"starling/partition"
	"starling/tensor"
	"starling/wire"
)

// Infer runs a trained model over a part, layer by layer, together with the workers of the
// other parts, which all call it: a worker has the rows of its own vertices and of their halo,
// and no more. It returns the rows of its own vertices after all stages but some at the end.
// opt names the strategy, an exact one over the whole graph; its Resume may have learnt rows.
func Infer(ctx context.Context, dev tensor.Device, part *partition.Part, end wire.Endpoint, opt Options,
	weights []nn.Tensor, leftOut int) (rows tensor.Matrix, err error) {
	s := &Site{Ctx: ctx, Dev: dev, Part: used(part, opt), End: end, Peers: Alone{}, Opt: opt, Events: event.All()}
	on, err := newStrategy(s)
	if err != nil {
		return rows, err
	}
	model := nn.New(dev, opt.Model, opt.Seed)
	if err := model.Load(dev, weights); err != nil {
		return rows, err
	}
	on.Begin(0, 0, false)
	p := &nn.Pass{Dev: dev, Agg: on, Vertices: part.Book.Nodes, Own: part.Core(), Rows: opt.Rows,
		IDs: tensor.Indices(dev, part.IDs[:part.Core()])}
	x, err := s.inferenceInput(p)
	if err != nil {
		return rows, err
	}
	for i := range model.Stages() - leftOut {
		y := model.Stage(p, i, x)
		if i > 0 {
			dev.Free(x.Matrix)
		}
		x = nn.Input{Matrix: y}
	}
	if err := cmp.Or(dev.Err(), on.Err()); err != nil {
		end.Fail(err)
		return rows, err
	}
	return x.Matrix, on.Finish()
}

// inferenceInput are the features of the part's vertices, and of a typed graph the learnt rows of those without.
func (s *Site) inferenceInput(p *nn.Pass) (x nn.Input, err error) {
	schema := s.Part.Book.Schema
	if schema == nil {
		return Input(s.Dev, s.Part.Features, s.Opt), nil
	}
	p.Types = s.Part.CoreTypes()
	x.Typed = typedInput(s.Dev, p.Types, s.Part.TypeFeatures, s.Part.IDs[:s.Part.Core()], schema, s.Opt)
	if s.Opt.Resume != nil {
		err = learntOf(x.Typed).start(s.Dev, s.Opt.Resume.Caches)
	}
	return x, err
}
