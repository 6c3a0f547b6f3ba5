package nn

import (
	"starling/rng"
	"starling/tensor"
)

// Split is features whose columns are divided over workers, so that none has a row whole. A
// first layer that is linear before its activation is then a sum of partial products, one per
// worker and slice s of columns, which the features' owner of today adds up (P3, OSDI 2021):
//
//	A·x·W + x·R = Σ_s A·x[:,s]·W[s,:] + x[:,s]·R[s,:]
//	dW[s,:] = (A·x[:,s])ᵀ·g,  dR[s,:] = x[:,s]ᵀ·g
//
// x is after dropout of the input (Config.InputDraws), which each worker applies to the numbers that it has: a draw
// depends on nothing but key, vertex and column.
//
// All workers call the same methods in the same order, each for the rows of its own batch.
type Split interface {
	// Product fills y with A·x·W + x·R; r is nil where the layer has no root weight.
	Product(reduce Reduction, y tensor.Matrix, w, r *Param)
	// ProductGrad is given g, the gradient of y, and adds to those rows of W's and R's gradients
	// that this worker's columns meet, for the batches of all workers.
	ProductGrad(reduce Reduction, g tensor.Matrix, w, r *Param)
}

// SplitRows is a Split whose first layer transforms rows before it looks at them together, as attention does: products
// are of rows of sources, or of destinations, and not of sums:
//
//	z = x·W = Σ_s x[:,s]·W[s,:];   dW[s,:] = x[:,s]ᵀ·dz
//
// All workers call the same methods in the same order here too, also those whose batch has no rows.
type SplitRows interface {
	Split
	// Sources is the number of rows of the batch at hand.
	Sources() int
	// Rows fills z with x·W, of all sources or, own, of the destinations, which come first.
	Rows(own bool, z, w tensor.Matrix)
	// RowsGrad is given the gradient of z, and adds to those rows of W's gradient that this worker's columns meet.
	RowsGrad(own bool, dz, dw tensor.Matrix)
}

// SplitProduct is a product of the first layer with a Split input.
type SplitProduct struct {
	Weights []*Param // each of as many rows as features have columns
	Width   int      // of the rows that are added up
	// Sources: the rows belong to sources; else to destinations.
	Sources bool
}

// SplitProducts are the products of the first layer, in the order in which it computes them; none: its input may not be
// Split.
func (m *Model) SplitProducts() []SplitProduct {
	of := func(p *Param, sources bool) SplitProduct { return SplitProduct{[]*Param{p}, p.Value.Cols, sources} }
	switch c := m.modules[0].(type) {
	case *gat:
		return []SplitProduct{of(c.w, true)}
	case *gatv2:
		return []SplitProduct{of(c.left, true), of(c.right, false)}
	case *film:
		return []SplitProduct{of(c.w, true), of(c.films, false), of(c.skip, false), of(c.filmSkip, false)}
	case *sagePool:
		return []SplitProduct{of(c.pool, true), of(c.r, false)}
	case *linear:
		if m.convs > 0 {
			return []SplitProduct{of(c.w, true)}
		}
	case *sumConv:
		return c.splitProduct()
	case *gin:
		return c.sum.splitProduct()
	}
	return nil
}

func (c *sumConv) splitProduct() []SplitProduct {
	if c.eps != nil {
		return nil
	}
	p := SplitProduct{Weights: []*Param{c.w}, Width: c.outWidth()}
	if c.r != nil {
		p.Weights = append(p.Weights, c.r)
	}
	return []SplitProduct{p}
}

// SplitsRows reports whether the first layer of a model takes a SplitRows, and no sums.
func (c *Config) SplitsRows() bool {
	switch c.Model {
	case "gat", "gatv2", "film", "sage-pool", "resgcn+", "ressage+":
		return true
	}
	return false
}

// splitTimes: dst = after(x·w), or added to dst, where columns are divided over workers.
func (x Input) splitTimes(dev tensor.Device, dst, w tensor.Matrix, own, add bool, after tensor.Epilogue) {
	to := dst
	if add {
		to = dev.Scratch(dst.Type(), dst.Rows, dst.Cols)
		defer dev.Free(to)
	}
	x.Split.(SplitRows).Rows(own, to, w)
	if add {
		dev.Combine(dst, 1, dst, 1, to)
	}
	if !after.Empty() {
		dev.Activate(dst, dst, after)
	}
}

// ownTimes is times over rows of destinations.
func (x Input) ownTimes(dev tensor.Device, dst, w tensor.Matrix, lo, hi int, add bool, after tensor.Epilogue) {
	if x.Split != nil {
		x.splitTimes(dev, dst, w, true, add, after)
		return
	}
	x.times(dev, dst, w, lo, hi, add, after)
}

// ownGradWeight is gradWeight over rows of destinations.
func (x Input) ownGradWeight(dev tensor.Device, dw, dy tensor.Matrix, lo, hi int, zeros float32) {
	if x.Split != nil {
		x.Split.(SplitRows).RowsGrad(true, dy, dw)
		return
	}
	x.gradWeight(dev, dw, dy, lo, hi, zeros)
}

// SplitFirst is the first layer's width before its activation, if its input may be Split.
func (m *Model) SplitFirst() (width int, ok bool) {
	c, ok := m.modules[0].(*sumConv)
	if g, is := m.modules[0].(*gin); is {
		c, ok = g.sum, true
	}
	if !ok || c.eps != nil {
		return 0, false
	}
	return c.outWidth(), true
}

// SplitsFirst reports whether the first layer of a model's input may be Split, without making the model.
func (c *Config) SplitsFirst() bool {
	if c.Model == "gin" {
		return c.EdgeDim == 0 && !c.TrainEps
	}
	return c.Model == "gcn" || c.Model == "sage"
}

// InputDraws is the dropout of the input in a training pass with a key; its P is 0 where there is none.
func (c *Config) InputDraws(key rng.Key) (d tensor.Dropout) {
	if c.InputDropout {
		p := Pass{Train: true, Key: key}
		d = p.dropout(0, drawInput, c.Dropout)
	}
	return d
}
