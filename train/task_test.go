package train

import (
	"testing"

	"starling/graph"
	"starling/nn"
	"starling/tensor"
	"starling/tensor/ref"
)

// TestTaskOfAnEmptyPart: a worker without vertices counts as the others do.
func TestTaskOfAnEmptyPart(t *testing.T) {
	dev := ref.New()
	for _, l := range []*graph.Labels{{Classes: 3, Multi: []uint8{}}, {Classes: 2, Values: []float32{}},
		{Classes: 3, Class: []int32{}}} {
		task := taskOf(dev, l)
		counts := task.Counts(dev, dev.New(tensor.F64, 0, l.Classes), tensor.Indices(dev, nil))[0]
		loss := task.Loss(dev, tensor.Matrix{}, dev.New(tensor.F64, 0, l.Classes), tensor.Indices(dev, nil), 1)
		if nn.TakeLoss(dev, loss) != 0 || len(counts) != task.Width() {
			t.Errorf("%s: %v", l.Kind(), counts)
		}
	}
}
