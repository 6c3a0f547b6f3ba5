package nn

import "starling/tensor"

// sumConv is the layer behind GCN, GraphSAGE and GIN's first half:
//
//	y = dropout(act( A·x·W + x·R + b ))
//
// with A the graph's adjacency under a Reduction, W in x out, R (the root weight)
// in x out or absent, x [src, in], y [dst, out].
//
// Two orders give the same y. Transform first, A·(x·W), aggregates rows of width
// out; aggregate first, (A·x)·W, rows of width in. The narrower wins; with equal
// widths aggregate first, because the product then ends in bias and activation
// while its rows are in cache.
//
// Backwards, with g the gradient before the activation, there are two ways too:
//
//	s = Aᵀ·g;  dW = xᵀ·s;  dx = s·Wᵀ              aggregates width out, keeps nothing
//	dW = (A·x)ᵀ·g;  dx = Aᵀ·(g·Wᵀ)                aggregates width in, keeps A·x
//
// The first is used where out <= in, whatever the order forwards was: A·x is then
// not kept, which saves a matrix a layer. The second is used where in < out, and
// for constant features, whose A·x is there anyway and whose dx is not wanted, so
// that their first layer aggregates nothing at all in an epoch; and where A·x has fewer
// rows than x: over sampled blocks, and beside copies of other workers' vertices; and where
// dx need not be sent back whole (Pass.Masked).
type sumConv struct {
	output
	reduce Reduction
	w, r   *Param // r may be nil
	eps    *Param // GIN's, or nil: then reduce.Self is 1 + eps
	// sendsZeros: x is what a ReLU has left (see Config.SendsZeros).
	sendsZeros bool

	x        Input
	constant bool // sum comes from constant features, and no rows travel
	drawn    bool // it is of this pass, after dropout; else the aggregator's
	fewer    bool // the pass's
	from     int  // the first column of x whose gradient is wanted
	masked   bool // likewise, if x has zeros
	msg, sum tensor.Matrix
	dmsg     tensor.Matrix // of messages, or of sums where these are kept
}

func (c *sumConv) Forward(p *Pass, x Input) tensor.Matrix { return forward(c, p, x, c.sourceRows(p)) }

func (c *sumConv) Backward(p *Pass, dy tensor.Matrix, wantDX bool) tensor.Matrix {
	return backward(c, p, dy, wantDX, c.sourceRows(p))
}

// in and outWidth are the layer's widths.
func (c *sumConv) in() int       { return c.w.Value.Rows }
func (c *sumConv) outWidth() int { return c.w.Value.Cols }

// order decides how the layer is computed for an input that is sparse or dense,
// and whose sum the aggregator keeps or not: whether rows are aggregated before
// they are transformed, and whether the backward pass uses A·x.
func (c *sumConv) order(sparse, constant bool) (sumsFirst, keepsSum bool) {
	sumsFirst = !sparse && (constant || c.eps != nil || c.in() <= c.outWidth())
	return sumsFirst, sumsFirst && (constant || c.eps != nil || c.fewer || c.masked || c.in() < c.outWidth())
}

func (c *sumConv) sumsFirst() bool {
	first, _ := c.order(c.x.Sparse != nil, c.constant)
	return first
}

func (c *sumConv) keepsSum() bool {
	_, keeps := c.order(c.x.Sparse != nil, c.constant)
	return keeps
}

func (c *sumConv) traffic(sparse, constant, wantDX bool) Traffic {
	t := Traffic{Layer: c.layer}
	constant = constant && !sparse && c.eps == nil
	first, keeps := c.order(sparse, constant)
	switch {
	case constant:
		t.Once = c.in()
		return t
	case first:
		t.Forward.Rows = c.in()
	default:
		t.Forward.Rows = c.outWidth()
	}
	switch {
	case !keeps:
		t.Backward.Rows = c.outWidth()
	case wantDX:
		t.Backward.Rows = c.in()
	}
	return t
}

func (c *sumConv) begin(p *Pass, x Input) tensor.Matrix {
	dst, src := p.Agg.Rows(c.layer)
	// a kept sum is the aggregator's, not ours to free
	c.x, c.fewer, c.masked, c.sum = x, p.Fewer, p.Masked && c.sendsZeros, tensor.Matrix{}
	c.constant, c.drawn = false, false
	if c.eps != nil {
		self := make([]float64, 1)
		p.Dev.Download(self, c.eps.Value)
		c.reduce.Self = 1 + self[0]
	}
	switch {
	case c.multiplies(p): // all is elsewhere
	case x.Split != nil:
		c.constant = true // and its sum is elsewhere
	case x.Constant && x.Sparse == nil && c.eps == nil:
		c.sum, c.constant = p.Agg.Constant(c.reduce, x.Matrix)
	case x.Drawn != nil && c.eps == nil:
		if on, ok := p.Agg.(Redrawer); ok {
			c.sum, c.constant = on.Redrawn(c.reduce, x.Matrix, x.Drawn)
			c.drawn = c.constant
		}
	}
	c.y = p.Dev.Scratch(p.rowType(), dst, c.outWidth())
	switch {
	case c.constant || c.multiplies(p):
	case c.sumsFirst():
		c.sum = p.Dev.Scratch(p.rowType(), dst, c.in())
	default:
		c.msg = p.Dev.Scratch(p.rowType(), src, c.outWidth())
	}
	return c.y
}

func (c *sumConv) send(p *Pass, lo, hi int) {
	if !c.sumsFirst() && !c.multiplies(p) {
		c.x.times(p.Dev, c.msg.Slice(lo, hi), c.w.Value, lo, hi, false, tensor.Epilogue{})
	}
}

// sums are what the aggregator adds up, and where to.
func (c *sumConv) sums() Sums {
	if c.sumsFirst() {
		return Sums{c.layer, c.reduce, c.sum, c.x.Matrix}
	}
	return Sums{c.layer, c.reduce, c.y, c.msg}
}

func (c *sumConv) gather(p *Pass) {
	if c.multiplies(p) {
		p.Multiplier.Multiply(c.layer, c.reduce, c.y, c.x.Matrix, c.w.Value, c.x.Constant, p.Train)
		return
	}
	if !c.constant {
		s := c.sums()
		p.Agg.Sum(s.Layer, s.Reduce, s.Dst, s.Src)
	}
}

// rootEarly reports whether the root's product comes before the sums, in the time in
// which others' rows travel.
func (c *sumConv) rootEarly(p *Pass) bool {
	return p.InRanges && c.r != nil && c.sumsFirst() && !c.constant
}

func (c *sumConv) root(p *Pass, lo, hi int) {
	c.x.times(p.Dev, c.y.Slice(lo, hi), c.r.Value, lo, hi, false, tensor.Epilogue{})
}

// finish ends in the product that can carry the activation: the root's if there
// is one, else W's, else a pass of its own.
func (c *sumConv) finish(p *Pass, lo, hi int) {
	y, after := c.y.Slice(lo, hi), c.after(p, lo, hi)
	if c.x.Split != nil {
		c.x.Split.Product(c.reduce, y, c.w, c.r)
		p.Dev.Activate(y, y, after)
		return
	}
	if c.multiplies(p) {
		if c.r != nil {
			c.x.times(p.Dev, y, c.r.Value, lo, hi, true, after)
		} else {
			p.Dev.Activate(y, y, after)
		}
		return
	}
	if c.rootEarly(p) {
		rows(c.sum).times(p.Dev, y, c.w.Value, lo, hi, true, after)
		return
	}
	if c.sumsFirst() {
		first := after
		if c.r != nil {
			first = tensor.Epilogue{}
		}
		rows(c.sum).times(p.Dev, y, c.w.Value, lo, hi, false, first)
	}
	switch {
	case c.r != nil:
		c.x.times(p.Dev, y, c.r.Value, lo, hi, true, after)
	case !c.sumsFirst():
		p.Dev.Activate(y, y, after)
	}
}

func (c *sumConv) end(p *Pass) {
	if !(p.Train && c.eps != nil) { // ε's gradient needs the messages
		freeAll(p, &c.msg)
	}
	if !c.constant && !(p.Train && c.keepsSum()) {
		freeAll(p, &c.sum)
	}
}

func (c *sumConv) beginGrad(p *Pass, dy tensor.Matrix, wantDX bool) {
	c.output.beginGrad(p, dy, wantDX)
	if c.keepsSum() && !c.multiplies(p) && (wantDX || c.eps != nil) {
		c.dmsg = p.Dev.Scratch(p.rowType(), dy.Rows, c.in()-c.from)
	}
}

func (c *sumConv) makeDX(p *Pass) tensor.Matrix { return c.bufferDX(p, c.sourceRows(p), c.in()-c.from) }

// wanted are the rows of a parameter for the columns of x whose gradient is wanted.
func (c *sumConv) wanted(p *Param) tensor.Matrix { return p.Value.Slice(c.from, p.Value.Rows) }

func (c *sumConv) makeSentGrads(p *Pass) {
	if c.multiplies(p) {
		c.makeDX(p)
		return
	}
	if !c.keepsSum() {
		c.dmsg = p.Dev.Scratch(p.rowType(), c.sourceRows(p), c.outWidth())
		return
	}
	if c.r == nil {
		c.freeDY(p)
	}
	c.makeDX(p)
}

func (c *sumConv) finishGrad(p *Pass, lo, hi int) {
	c.grad(p, lo, hi)
	if c.keepsSum() && !c.dmsg.IsZero() {
		p.Dev.MatMul(c.dmsg.Slice(lo, hi), c.dy.Slice(lo, hi), c.wanted(c.w),
			tensor.MatMul{TransB: true, ZerosA: c.zeros(p)})
	}
}

func (c *sumConv) rootWeight() *Param {
	if c.x.Split != nil {
		return nil // its gradient comes with W's
	}
	return c.r
}

func (c *sumConv) rootWeightGrad(p *Pass, lo, hi int) {
	c.x.gradWeight(p.Dev, c.r.Grad, c.dy, lo, hi, c.zeros(p))
}

func (c *sumConv) finishWeightGrad(p *Pass, lo, hi int) {
	c.gradBias(p, lo, hi)
	switch {
	case c.multiplies(p): // with the gradient of x
	case c.x.Split != nil:
		c.x.Split.ProductGrad(c.reduce, c.dy, c.w, c.r)
	case c.keepsSum():
		rows(c.sum).gradWeight(p.Dev, c.w.Grad, c.dy, lo, hi, c.zeros(p))
		if c.eps != nil {
			c.gradEps(p, c.dmsg.Slice(lo, hi), c.x.Slice(lo, hi))
		}
	case c.eps != nil:
		c.gradEps(p, c.dy.Slice(lo, hi), c.msg.Slice(lo, hi))
	}
}

// gradEps adds to the gradient of ε: the own rows' part of the sums, met by the sums' gradient.
func (c *sumConv) gradEps(p *Pass, dsum, own tensor.Matrix) { addDot(p.Dev, c.eps.Grad, dsum, own) }

// sumGrads are the gradients of sums, which the aggregator turns into those of what
// was added up; ok is false where these are not wanted.
func (c *sumConv) sumGrads() (s Sums, ok bool) {
	switch {
	case !c.keepsSum():
		return Sums{c.layer, c.reduce, c.dy, c.dmsg}, true
	case c.wantDX:
		return Sums{c.layer, c.reduce, c.dmsg, c.dx}, true
	}
	return Sums{}, false
}

func (c *sumConv) gatherGrad(p *Pass) {
	if c.multiplies(p) {
		p.Multiplier.MultiplyGrad(c.layer, c.reduce, c.dx, c.w.Grad, c.dy, c.w.Value)
	} else if s, ok := c.sumGrads(); ok {
		p.Agg.SumGrad(s.Layer, s.Reduce, s.Src, s.Dst)
	}
	if c.r == nil {
		c.freeDY(p)
	}
}

// rootGrad can go before the messages' gradients are there only where these come
// by a product; else the aggregator writes dx, and sendGrad adds the root's part.
func (c *sumConv) rootGrad(p *Pass, lo, hi int) {
	if c.rootFirst(p) {
		p.Dev.MatMul(c.dx.Slice(lo, hi), c.dy.Slice(lo, hi), c.wanted(c.r),
			tensor.MatMul{TransB: true, ZerosA: c.zeros(p)})
	}
}

func (c *sumConv) rootFirst(p *Pass) bool {
	return p.InRanges && c.wantDX && c.r != nil && !c.keepsSum()
}

func (c *sumConv) sendGrad(p *Pass, lo, hi int) {
	dx := c.makeDX(p)
	if dx.IsZero() {
		return
	}
	if !c.keepsSum() && !c.multiplies(p) {
		p.Dev.MatMul(dx.Slice(lo, hi), c.dmsg.Slice(lo, hi), c.wanted(c.w),
			tensor.MatMul{TransB: true, Add: c.rootFirst(p)})
	}
	if own := min(hi, c.dy.Rows); c.r != nil && !c.rootFirst(p) && lo < own {
		p.Dev.MatMul(dx.Slice(lo, own), c.dy.Slice(lo, own), c.wanted(c.r),
			tensor.MatMul{TransB: true, Add: true, ZerosA: c.zeros(p)})
	}
}

func (c *sumConv) sendWeightGrad(p *Pass, lo, hi int) {
	if !c.keepsSum() && !c.multiplies(p) {
		c.x.gradWeight(p.Dev, c.w.Grad, c.dmsg, lo, hi, 0)
	}
}

func (c *sumConv) endGrad(p *Pass) {
	freeAll(p, &c.dmsg, &c.msg)
	if !c.constant || c.drawn {
		freeAll(p, &c.sum)
	}
	c.sum, c.x = tensor.Matrix{}, Input{}
}
