package train

import (
	"starling/graph"
	"starling/nn"
	"starling/tensor"
)

// taskOf is the task that labels are for, with the labels on the device. Unlabelled
// vertices never occur in a split, so anything serves for them.
func taskOf(dev tensor.Device, l *graph.Labels) nn.Task {
	switch n := l.Len(); l.Kind() {
	case graph.MultiLabel:
		return nn.MultiLabel{Marks: dev.FromHost(n, l.Classes, Marks(make([]uint16, 0, len(l.Multi)), l.Multi))}
	case graph.Regression:
		return nn.Regress{Values: dev.FromHost(n, l.Classes, l.Values)}
	}
	return nn.Classify{Labels: tensor.Indices(dev, labels(l))}
}

// one is 1 as bfloat16, in which marks take half the memory of singles and are exact.
const one = 0x3f80

// Marks appends the marks of vertices as numbers.
func Marks(to []uint16, multi []uint8) []uint16 {
	for _, m := range multi {
		x := uint16(0)
		if m == 1 {
			x = one
		}
		to = append(to, x)
	}
	return to
}

// labels are classes as the device keeps them.
func labels(l *graph.Labels) []uint32 {
	out := make([]uint32, len(l.Class))
	for i, c := range l.Class {
		out[i] = uint32(c)
	}
	return out
}
