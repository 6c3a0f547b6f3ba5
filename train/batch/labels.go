package batch

import (
	"starling/graph"
	"starling/nn"
	"starling/tensor"
	"starling/train"
)

// batchLabels are the labels of a batch's outputs. Their memory is reused.
type batchLabels struct {
	rows, width int
	classes     []uint32
	marks       []uint16
	values      []float32
}

// gather takes the labels of vertices. Numbers are standardized by a scale, if there is one.
func (b *batchLabels) gather(l *graph.Labels, vertices []uint32, targets *graph.Scale) {
	b.rows, b.width = len(vertices), l.Classes
	b.classes, b.marks, b.values = b.classes[:0], b.marks[:0], b.values[:0]
	for _, v := range vertices {
		switch {
		case l.Multi != nil:
			b.marks = train.Marks(b.marks, l.Row(int(v)))
		case l.Values != nil:
			b.values = append(b.values, l.Numbers(int(v))...)
		default:
			b.classes = append(b.classes, uint32(l.Class[v]))
		}
	}
	targets.Apply(b.values)
}

// task is the batch's task, of a kind of labels.
func (b *batchLabels) task(dev tensor.Device, kind string) nn.Task {
	switch kind {
	case graph.MultiLabel:
		return nn.MultiLabel{Marks: dev.FromHost(b.rows, b.width, b.marks)}
	case graph.Regression:
		return nn.Regress{Values: dev.FromHost(b.rows, b.width, b.values)}
	}
	return nn.Classify{Labels: tensor.Indices(dev, b.classes)}
}

// weigh is the batch's task with the losses of its seed vertices weighted.
func (b *batchLabels) weigh(task nn.Task, w nn.Weighting, seeds []uint32) nn.Task {
	return w.Of(task, seeds, func(row uint32) uint32 { return b.classes[row] },
		func(row uint32, class int) bool { return b.marks[int(row)*b.width+class] != 0 })
}
