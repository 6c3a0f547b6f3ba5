package train

import (
	"context"

	"starling/coflow"
	"starling/collective"
	"starling/nn"
	"starling/tensor"
	"starling/wire"
)

// Group is the workers of a run, joined by collectives. Sums are made in rank
// order, so that they are the same bits on every worker and in every run.
type Group struct {
	ctx  context.Context
	comm *collective.Comm
	dev  tensor.Device

	single []float32
	double []float64
}

// NewGroup is the group of an endpoint's workers, for gradients on dev.
func NewGroup(ctx context.Context, end wire.Endpoint, dev tensor.Device) *Group {
	return &Group{ctx: ctx, comm: collective.New(end), dev: dev}
}

func (g *Group) AddUp(epoch int, v []float64) error {
	id := coflow.ID{Epoch: uint32(epoch), Type: coflow.Control, Layer: -1}
	return g.comm.AllReduce64(g.ctx, id, wire.Control, v, collective.Ordered)
}

// Gradients are added up as one vector: a message a peer instead of one a parameter.
func (g *Group) Gradients(epoch int, params []*nn.Param) error {
	id := coflow.ID{Epoch: uint32(epoch), Type: coflow.Params, Layer: -1, Backward: true}
	n := count(params)
	if g.dev.Type() == tensor.F64 {
		if g.double == nil {
			g.double = make([]float64, n)
		}
		each(params, g.double, g.dev.Download)
		if err := g.comm.AllReduce64(g.ctx, id, wire.Parameter, g.double, collective.Ordered); err != nil {
			return err
		}
		each(params, g.double, func(v []float64, m tensor.Matrix) { g.dev.Upload(m, v) })
		return nil
	}
	if g.single == nil {
		g.single = make([]float32, n)
	}
	each(params, g.single, g.dev.Download32)
	if err := g.comm.AllReduce(g.ctx, id, wire.Parameter, g.single, collective.Ordered); err != nil {
		return err
	}
	each(params, g.single, func(v []float32, m tensor.Matrix) { g.dev.Upload32(m, v) })
	return nil
}

// count is the numbers of all parameters.
func count(params []*nn.Param) (n int) {
	for _, p := range params {
		n += p.Grad.Rows * p.Grad.Cols
	}
	return n
}

// each calls f with every gradient and its place in v.
func each[T any](params []*nn.Param, v []T, f func([]T, tensor.Matrix)) {
	for _, p := range params {
		n := p.Grad.Rows * p.Grad.Cols
		f(v[:n], p.Grad)
		v = v[n:]
	}
}
