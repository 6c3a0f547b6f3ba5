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
	squares := make([][2]tensor.Matrix, len(params))
	for i, p := range params {
		squares[i] = [2]tensor.Matrix{p.Grad, p.Grad}
	}
	sum := 0.0
	for _, square := range tensor.Dots(c.dev, squares...) {
		sum += square
	}
	if length := math.Sqrt(sum); length > c.limit {
		for _, p := range params {
			c.dev.Combine(p.Grad, c.limit/length, p.Grad, 0, tensor.Matrix{})
		}
	}
}
