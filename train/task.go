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
		return nn.MultiLabel{Marks: dev.FromHostBF16(n, l.Classes, marks(make([]uint16, 0, len(l.Multi)), l.Multi))}
	case graph.Regression:
		return nn.Regress{Values: dev.FromHost(n, l.Classes, l.Values)}
	}
	return nn.Classify{Labels: dev.Indices(labels(l))}
}

// one is 1 as bfloat16, in which marks take half the memory of singles and are exact.
const one = 0x3f80

// marks appends the marks of vertices as numbers.
func marks(to []uint16, multi []uint8) []uint16 {
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

// batchLabels are those of a batch's outputs. Their memory is reused.
type batchLabels struct {
	rows, width int
	classes     []uint32
	marks       []uint16
	values      []float32
}

// gather takes the labels of vertices.
func (b *batchLabels) gather(l *graph.Labels, vertices []uint32) {
	b.rows, b.width = len(vertices), l.Classes
	b.classes, b.marks, b.values = b.classes[:0], b.marks[:0], b.values[:0]
	for _, v := range vertices {
		switch {
		case l.Multi != nil:
			b.marks = marks(b.marks, l.Row(int(v)))
		case l.Values != nil:
			b.values = append(b.values, l.Numbers(int(v))...)
		default:
			b.classes = append(b.classes, uint32(l.Class[v]))
		}
	}
}

// task is that of the batch.
func (b *batchLabels) task(dev tensor.Device, kind string) nn.Task {
	switch kind {
	case graph.MultiLabel:
		return nn.MultiLabel{Marks: dev.FromHostBF16(b.rows, b.width, b.marks)}
	case graph.Regression:
		return nn.Regress{Values: dev.FromHost(b.rows, b.width, b.values)}
	}
	return nn.Classify{Labels: dev.Indices(b.classes)}
}
