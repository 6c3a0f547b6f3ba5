package sancus

import (
	"math"

	"starling/tensor"
)

// clip scales a matrix down so that it is at most limit long.
func clip(dev tensor.Device, limit float64, m tensor.Matrix) {
	if length := math.Sqrt(tensor.Dots(dev, [2]tensor.Matrix{m, m})[0]); length > limit {
		dev.Combine(m, limit/length, m, 0, tensor.Matrix{})
	}
}
