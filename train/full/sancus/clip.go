package sancus

import (
	"math"

	"starling/nn"
	"starling/tensor"
	"starling/train"
)

// clipped is a strategy whose gradients are at most limit long on each worker, all
// parameters together.
type clipped struct {
	train.Strategy
	limit float64
	dev   tensor.Device
}

// Unwrap is the strategy without clipping.
func (c *clipped) Unwrap() train.Strategy { return c.Strategy }

// Clip scales gradients down to the limit.
func (c *clipped) Clip(params []*nn.Param) {
	grads := make([]tensor.Matrix, len(params))
	for i, p := range params {
		grads[i] = p.Grad
	}
	clip(c.dev, c.limit, grads...)
}

// clip scales matrices down so that all together are at most limit long.
func clip(dev tensor.Device, limit float64, list ...tensor.Matrix) {
	squares := make([][2]tensor.Matrix, len(list))
	for i, m := range list {
		squares[i] = [2]tensor.Matrix{m, m}
	}
	sum := 0.0
	for _, square := range tensor.Dots(dev, squares...) {
		sum += square
	}
	if length := math.Sqrt(sum); length > limit {
		for _, m := range list {
			dev.Combine(m, limit/length, m, 0, tensor.Matrix{})
		}
	}
}
