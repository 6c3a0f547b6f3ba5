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
