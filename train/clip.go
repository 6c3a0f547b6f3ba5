package train

import (
	"math"

	"starling/nn"
	"starling/tensor"
)

// clipping is a strategy that changes the gradients of a worker's parameters before
// they are added up. They then wait for the end of the backward pass.
type clipping interface {
	clip(params []*nn.Param)
}

// clipped is a strategy whose gradients are at most limit long on each worker, all
// parameters together.
type clipped struct {
	planned
	limit float64
	dev   tensor.Device
}

func (c *clipped) clip(params []*nn.Param) {
	sum := 0.0
	for _, p := range params {
		sum += c.dev.Dot(p.Grad, p.Grad)
	}
	if length := math.Sqrt(sum); length > c.limit {
		for _, p := range params {
			c.dev.Combine(p.Grad, c.limit/length, p.Grad, 0, tensor.Matrix{})
		}
	}
}
