package nn

import (
	"maps"
	"slices"

	"starling/tensor"
)

// stepped is a module in steps, most of which work on ranges of rows, each row
// once, in any order. Whole modules are the same steps on all rows; Ranges runs
// them piece by piece. Between send and finish lies the part that rows have in
// common: a layer's aggregation, or batch norm's moments.
//
//	begin(x)             takes the input, allocates y
//	send(lo, hi)         rows of x become rows of messages          before the common part
//	finish(lo, hi)       rows of sums (and x) become rows of y      after it
//	end                  frees what only the forward pass needed
//
//	beginGrad(dy)        takes the gradient of y
//	makeDX               allocates dx, when first asked for
//	finishGrad(lo, hi)   dy becomes the gradient of the sums
//	rootGrad(lo, hi)     the part of dx that needs no neighbour
//	sendGrad(lo, hi)     gradients of messages become dx
//	finishWeightGrad(lo, hi)  adds to the gradients of parameters, for the rows after finishGrad
//	sendWeightGrad(lo, hi)    the same for those after sendGrad
//	endGrad              frees the rest
//
// Ranges are learnt from in ascending order, so that sums have the same bits
// whatever the order of the other steps.
type stepped interface {
	begin(p *Pass, x Input) (y tensor.Matrix)
	send(p *Pass, lo, hi int)
	finish(p *Pass, lo, hi int)
	end(p *Pass)
	beginGrad(p *Pass, dy tensor.Matrix, wantDX bool)
	makeDX(p *Pass) tensor.Matrix // none unless it is wanted
	finishGrad(p *Pass, lo, hi int)
	rootGrad(p *Pass, lo, hi int)
	sendGrad(p *Pass, lo, hi int)
	finishWeightGrad(p *Pass, lo, hi int)
	sendWeightGrad(p *Pass, lo, hi int)
	endGrad(p *Pass)
}

// common is a stepped module whose rows have something in common. Whole modules
// have it done by gather and gatherGrad. makeSentGrads allocates the gradients of
// messages, after finishGrad and before gatherGrad.
type common interface {
	stepped
	gather(p *Pass)
	makeSentGrads(p *Pass)
	gatherGrad(p *Pass)
}

// rooted is a stepped module in which a vertex's own part may have a weight of its own.
// Its gradient is added up before the others': it travels while these are computed.
type rooted interface {
	stepped
	rootWeight() *Param // or nil
	rootWeightGrad(p *Pass, lo, hi int)
}

// rowwise are the steps that a module without a common part does not have.
type rowwise struct{}

func (rowwise) send(*Pass, int, int)           {}
func (rowwise) rootGrad(*Pass, int, int)       {}
func (rowwise) sendGrad(*Pass, int, int)       {}
func (rowwise) sendWeightGrad(*Pass, int, int) {}

// forward runs a module on all rows: src of them before the common part, all of y after.
func forward(c stepped, p *Pass, x Input, src int) tensor.Matrix {
	y := c.begin(p, x)
	c.send(p, 0, src)
	if c, ok := c.(common); ok {
		c.gather(p)
	}
	c.finish(p, 0, y.Rows)
	c.end(p)
	return y
}

// whole is a module that is run on all rows, and then frees what it has done with.
type whole interface {
	stepped
	freeY(p *Pass)
	freeDY(p *Pass)
}

// backward makes matrices as late and frees them as early as can be: it is the widest
// part of an epoch.
func backward(c whole, p *Pass, dy tensor.Matrix, wantDX bool, src int) tensor.Matrix {
	c.beginGrad(p, dy, wantDX)
	c.finishGrad(p, 0, dy.Rows)
	c.freeY(p)
	if c, ok := c.(rooted); ok && c.rootWeight() != nil {
		c.rootWeightGrad(p, 0, dy.Rows)
		p.ready(c.rootWeight())
	}
	c.finishWeightGrad(p, 0, dy.Rows)
	if c, ok := c.(common); ok {
		c.makeSentGrads(p)
		c.gatherGrad(p)
	}
	c.rootGrad(p, 0, dy.Rows)
	c.sendGrad(p, 0, src)
	c.sendWeightGrad(p, 0, src)
	dx := c.makeDX(p)
	c.endGrad(p)
	c.freeDY(p)
	return dx
}

// output is what follows a layer's sums: bias, activation, dropout.
type output struct {
	layer  int
	bias   *Param
	act    tensor.Act
	drop   float64
	keepY  bool // others still need y when its gradient is there: logits
	keepDY bool // others still need the gradient of y: around a residual block

	y, dy, dx tensor.Matrix
	wantDX    bool
}

// Layer is the number of the layer.
func (o *output) Layer() int { return o.layer }

// sourceRows is the number of rows that the layer takes in a pass.
func (o *output) sourceRows(p *Pass) int {
	_, src := p.Agg.Rows(o.layer)
	return src
}

func (o *output) beginGrad(_ *Pass, dy tensor.Matrix, wantDX bool) {
	o.dy, o.wantDX, o.dx = dy, wantDX, tensor.Matrix{}
}

// bufferDX is a buffer for the gradient of x, made when first asked for; none unless it is wanted.
func (o *output) bufferDX(p *Pass, rows, cols int) tensor.Matrix {
	if o.wantDX && o.dx.IsZero() {
		o.dx = p.Dev.Scratch(p.rowType(), rows, cols)
	}
	return o.dx
}

// inPlaceDX is bufferDX for kernels that may write to where dy is.
func (o *output) inPlaceDX(p *Pass) tensor.Matrix {
	if o.wantDX && o.dx.IsZero() && !o.keepDY && !p.InRanges {
		o.dx = o.dy
	}
	return o.bufferDX(p, o.dy.Rows, o.dy.Cols)
}

// freeY gives y back, which has served when dy is the gradient before the activation.
func (o *output) freeY(p *Pass) {
	if !o.keepY && !p.InRanges {
		p.Dev.Free(o.y)
	}
	o.y = tensor.Matrix{}
}

// freeDY gives dy back, unless dx is in its place.
func (o *output) freeDY(p *Pass) {
	if !o.dy.IsZero() && !o.keepDY && !p.InRanges && !tensor.Same(o.dx, o.dy) {
		p.Dev.Free(o.dy)
	}
	if !p.InRanges {
		o.dy = tensor.Matrix{}
	}
}

// after is for rows lo to hi of the pass's vertices.
func (o *output) after(p *Pass, lo, hi int) tensor.Epilogue {
	a := tensor.Epilogue{Act: o.act, Dropout: p.dropout(o.layer, drawOutput, o.drop).Slice(lo, hi)}
	if o.bias != nil {
		a.Bias = o.bias.Value
	}
	return a
}

// zeros is the share of zeros that y is expected to have, and dy before the activation: what
// dropout and a ReLU take away.
func (o *output) zeros(p *Pass) float32 {
	kept := 1.0
	if p.Train {
		kept -= o.drop
	}
	if o.act == tensor.ReLU {
		kept /= 2
	}
	return float32(1 - kept)
}

// grad turns rows lo to hi of dy into the gradient before the activation, in place.
// Of all rows at once it adds to the bias's gradient too; else gradBias does.
func (o *output) grad(p *Pass, lo, hi int) {
	var dbias tensor.Matrix
	if o.bias != nil && !p.InRanges {
		dbias = o.bias.Grad
	}
	after := o.after(p, lo, hi)
	rows := o.dy.Slice(lo, hi)
	switch {
	case after.Act != tensor.NoAct || after.Dropout.P != 0:
		p.Dev.ActivateGrad(rows, rows, o.y.Slice(lo, hi), after, dbias)
	case !dbias.IsZero():
		p.Dev.ColumnSum(dbias, rows, true)
	}
}

// gradBias adds rows of the gradient before the activation to the bias's.
func (o *output) gradBias(p *Pass, lo, hi int) {
	if o.bias != nil && p.InRanges {
		p.Dev.ColumnSum(o.bias.Grad, o.dy.Slice(lo, hi), true)
	}
}

// later keeps the gradients of parameters that come with rows until it is the
// range's turn to be learnt from.
type later map[int][]tensor.Matrix

// of is where the gradients of the range from lo on go: to the parameters
// themselves, unless ranges come in any order.
func (l *later) of(p *Pass, lo int, params ...*Param) []tensor.Matrix {
	out := make([]tensor.Matrix, len(params))
	for i, param := range params {
		out[i] = param.Grad
		if p.InRanges {
			out[i] = p.Dev.New(param.Grad.Type(), param.Grad.Rows, param.Grad.Cols)
		}
	}
	if p.InRanges {
		if *l == nil {
			*l = later{}
		}
		(*l)[lo] = out
	}
	return out
}

// learn adds what was kept of rows lo to hi, ranges in ascending order.
func (l *later) weightGrad(p *Pass, lo, hi int, params ...*Param) {
	for _, at := range slices.Sorted(maps.Keys(*l)) {
		if at < lo || at >= hi {
			continue
		}
		for i, m := range (*l)[at] {
			p.Dev.Combine(params[i].Grad, 1, params[i].Grad, 1, m)
			p.Dev.Free(m)
		}
		delete(*l, at)
	}
}
