package nn

import "starling/tensor"

// Conv is a message-passing layer in its steps. A distributed strategy may run
// Send and Finish on ranges of rows, each row once, in any order; Conv's Forward
// and Backward (as a Module) run them whole.
//
//	Begin(x)         takes the input, makes room
//	Send(lo, hi)     rows of x become rows of messages       dense
//	Gather           messages become sums over neighbours    the aggregator's part
//	Finish(lo, hi)   rows of sums (and x) become rows of y   dense
//
//	BeginGrad(dy)    takes the gradient of y, makes room
//	FinishGrad       dy becomes the gradient of the sums
//	GatherGrad       gradients of sums become gradients of messages
//	SendGrad         gradients of messages become dx
type Conv interface {
	Module
	Begin(p *Pass, x Input)
	Send(p *Pass, lo, hi int)
	Gather(p *Pass)
	Finish(p *Pass, lo, hi int)
	// End returns y.
	End(p *Pass) tensor.Matrix
	BeginGrad(p *Pass, dy tensor.Matrix, wantDX bool)
	FinishGrad(p *Pass)
	GatherGrad(p *Pass)
	SendGrad(p *Pass)
	// EndGrad returns dx, if it was wanted.
	EndGrad(p *Pass) tensor.Matrix
}

func convForward(c Conv, p *Pass, layer int, x Input) tensor.Matrix {
	dst, src := p.Agg.Rows(layer)
	c.Begin(p, x)
	c.Send(p, 0, src)
	c.Gather(p)
	c.Finish(p, 0, dst)
	return c.End(p)
}

func convBackward(c Conv, p *Pass, dy tensor.Matrix, wantDX bool) tensor.Matrix {
	c.BeginGrad(p, dy, wantDX)
	c.FinishGrad(p)
	c.GatherGrad(p)
	c.SendGrad(p)
	return c.EndGrad(p)
}

// output is what follows a layer's sums: bias, activation, dropout.
type output struct {
	layer int
	bias  *Param
	act   tensor.Act
	drop  float64
}

// after is for the first rows of the pass's vertices.
func (o *output) after(p *Pass, rows int) tensor.After {
	a := tensor.After{Act: o.act, Dropout: p.dropout(o.layer, drawOutput, o.drop).Slice(0, rows)}
	if o.bias != nil {
		a.Bias = o.bias.Value
	}
	return a
}

// rowsOf is after for rows lo to hi of the output.
func rowsOf(a tensor.After, lo, hi int) tensor.After {
	a.Dropout = a.Dropout.Slice(lo, hi)
	return a
}

// grad turns dy into the gradient before the activation, in place, and adds to the bias's.
func (o *output) grad(p *Pass, dy, y tensor.Matrix) {
	var dbias tensor.Matrix
	if o.bias != nil {
		dbias = o.bias.Grad
	}
	after := o.after(p, dy.Rows)
	switch {
	case after.Act != tensor.NoAct || after.Dropout.P != 0:
		p.Dev.ActivateGrad(dy, dy, y, after, dbias)
	case o.bias != nil:
		p.Dev.ColumnSum(dbias, dy, true)
	}
}
