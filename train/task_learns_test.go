package train_test

import (
	"math"
	"testing"

	"starling/tensor"
	"starling/train/traintest"
)

// TestTasksLearn on both devices and in bfloat16. In mini-batches it is train/mini's to
// say.
func TestTasksLearn(t *testing.T) {
	for _, kind := range traintest.Tasks {
		d := traintest.WithTask(t, kind)
		o := traintest.TaskOptions(d)
		one := traintest.Full(t, traintest.Ref(), d, o)
		traintest.LearnsTask(t, kind, "float64", one)
		single := traintest.Full(t, traintest.CPU(t, 2), d, o)
		traintest.LearnsTask(t, kind, "float32", single)
		for i, l := range single.Loss {
			if math.Abs(l-one.Loss[i]) > 1e-3 {
				t.Fatalf("%s: loss %d is %g, %g in float64", kind, i, l, one.Loss[i])
			}
		}
		o.Rows = tensor.BF16
		traintest.LearnsTask(t, kind, "bfloat16", traintest.Full(t, traintest.CPU(t, 2), d, o))
	}
}
