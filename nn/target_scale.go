package nn

import (
	"slices"
	"strings"

	"starling/graph"
	"starling/tensor"
)

// targetScale is how the targets of a regression are standardized: for a target y the model learns
//
//	z = (y - mean) / deviation        y, z [vertices, targets], mean and deviation by column
//
// over the training vertices, so that its loss, rates and first weights do not depend on the unit of the targets. Passes
// that train have z; all others undo it and have y. Both numbers are saved with the weights.
type targetScale struct{ mean, deviation *Buffer }

// scaleNames begin the names of both.
const scaleNames = "targets."

// OfTargets reports whether an array of a state has what targets are standardized by.
func OfTargets(name string) bool { return strings.HasPrefix(name, scaleNames) }

func newTargetScale(b *builder, targets int) *targetScale {
	none := graph.NewScale(targets)
	b.prefix = scaleNames
	return &targetScale{b.buffer("mean", none.Mean), b.buffer("deviation", none.Deviation)}
}

// TargetScale is the one that targets are standardized by; nil: they are as they are.
func (m *Model) TargetScale(dev tensor.Device) *graph.Scale {
	if m.targets == nil {
		return nil
	}
	s := graph.NewScale(m.Config.Out)
	dev.Download(s.Mean, m.targets.mean.Value)
	dev.Download(s.Deviation, m.targets.deviation.Value)
	return s
}

// SetTargetScale sets it, of a model that has one.
func (m *Model) SetTargetScale(dev tensor.Device, s *graph.Scale) {
	dev.Upload(m.targets.mean.Value, s.Mean)
	dev.Upload(m.targets.deviation.Value, s.Deviation)
}

// Standardized are some targets of a vertex as a model learns them. A nil scale changes nothing.
func Standardized(y []float64, s *graph.Scale) []float64 {
	if s == nil {
		return y
	}
	z := make([]float64, len(y))
	for t := range y {
		z[t] = (y[t] - s.Mean[t]) / s.Deviation[t]
	}
	return z
}

// undo makes targets of what the model has learnt, which is freed: a batch norm of mean 0 and variance 1. They have the
// device's own type, in which numbers far from 0 keep their digits.
func (s *targetScale) undo(dev tensor.Device, z tensor.Matrix) tensor.Matrix {
	y := dev.Scratch(dev.Type(), z.Rows, z.Cols)
	dev.Copy(y, z)
	dev.Free(z)
	moments := dev.New(tensor.F64, 2, z.Cols)
	dev.Upload(moments.Slice(1, 2), slices.Repeat([]float64{1}, z.Cols))
	pair := dev.Scratch(dev.Type(), 2, z.Cols)
	dev.Copy(pair.Slice(0, 1), s.deviation.Value)
	dev.Copy(pair.Slice(1, 2), s.mean.Value)
	dev.BatchNorm(y, y, moments, pair.Slice(0, 1), pair.Slice(1, 2), 0, tensor.Epilogue{})
	dev.Free(moments)
	dev.Free(pair)
	return y
}
