package full

import (
	"fmt"
	"math"
	"testing"

	"starling/train/traintest"
)

// TestTasksOnManyWorkers: the loss curve and the measures of one worker, whatever the
// strategy; one part may be without vertices of a split.
func TestTasksOnManyWorkers(t *testing.T) {
	for _, kind := range traintest.Tasks {
		d := traintest.WithTask(t, kind)
		o := traintest.TaskOptions(d)
		o.Epochs = 8
		want := traintest.Full(t, traintest.Ref(), d, o)
		for _, strategy := range []string{"halo", "cagnet", "g3", "neutronstar"} {
			t.Run(fmt.Sprintf("%s/%s", kind, strategy), func(t *testing.T) {
				o := o
				o.Strategy = traintest.Strategy(t, strategy)
				r := traintest.TrainParts(t, traintest.Cut(t, d, "multilevel", 3), traintest.Ref, o)[0]
				for i, l := range want.Loss {
					if math.Abs(r.Loss[i]-l) > 1e-9 {
						t.Fatalf("loss %d is %.12g, want %.12g", i, r.Loss[i], l)
					}
				}
				for name, x := range want.Measures {
					if math.Abs(r.Measures[name]-x) > 1e-9 {
						t.Errorf("%s is %.12g, want %.12g", name, r.Measures[name], x)
					}
				}
			})
		}
	}
}
