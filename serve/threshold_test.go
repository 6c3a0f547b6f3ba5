package serve

import (
	"fmt"
	"slices"
	"testing"

	"starling/nn"
)

// TestThresholdsAreApplied: predict and the server decide by the run's threshold, for one class of two and for each of
// several labels, and otherwise than without.
func TestThresholdsAreApplied(t *testing.T) {
	d := block(t)
	for _, task := range []string{nn.TaskClassify, nn.TaskMultiLabel} {
		d.Meta.Classes = 2
		r := trained(t, models["sage"], d)
		r.Config.Task = task
		s := serverOf(t, r, d)
		p := predicted(t, r, d, Probabilities)
		plain := predicted(t, r, d, Labels)
		if r.Config.Threshold, r.Config.Positive = []float64{0.8}, 1; task == nn.TaskMultiLabel {
			r.Config.Threshold = []float64{0.8, 0.3}
		}
		if !r.Config.validThreshold() {
			t.Fatal("the threshold is not valid")
		}
		labels := predicted(t, r, d, Labels)
		changed := 0
		for v := range uint32(200) {
			row := p.Values[2*v : 2*v+2]
			got := asked[predictionsReply](t, s, "/predict", fmt.Sprintf(`{"vertices":[%d]}`, v)).Predictions[0]
			for class := range 2 {
				want, was, is := false, false, false
				if task == nn.TaskClassify {
					want = (row[1] >= 0.8) == (class == 1)
					was, is = plain.Class[v] == int32(class), labels.Class[v] == int32(class)
					if (*got.Label == int32(class)) != want {
						t.Fatalf("vertex %d: served %d of %v", v, *got.Label, row)
					}
				} else {
					want = float64(row[class]) >= r.Config.Threshold[class]
					was, is = plain.Marks[2*int(v)+class] == 1, labels.Marks[2*int(v)+class] == 1
					if has := slices.Contains(got.Labels, int32(class)); has != want {
						t.Fatalf("vertex %d: served %v of %v", v, got.Labels, row)
					}
				}
				if is != want {
					t.Fatalf("%s, vertex %d, class %d: predicted %v of %v", task, v, class, is, row)
				}
				if is != was {
					changed++
				}
			}
		}
		if changed == 0 {
			t.Errorf("%s: the threshold changes nothing", task)
		}
	}
}
