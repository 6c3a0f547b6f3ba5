package p3

import (
	"fmt"
	"testing"

	"starling/graph"
	"starling/train"
	"starling/train/traintest"
)

// TestInputDropoutIsOneWorkers: a slice of columns is dropped as one worker drops whole rows, at a rate that takes a
// bit per number and at one that takes more, so that the losses are one worker's and distdgl's.
func TestInputDropoutIsOneWorkers(t *testing.T) {
	for i, model := range []string{"gcn", "sage", "gin"} {
		for j, rate := range []float64{0.5, 0.3} {
			sparse := (i+j)%2 == 1
			t.Run(fmt.Sprintf("%s %g sparse %t", model, rate, sparse), func(t *testing.T) {
				d := wideCommunities(t, sparse)
				o := traintest.Options(model)
				o.Epochs, o.Model.Layers, o.Model.Norm = 3, 2, "none"
				o.Model.Dropout, o.Model.InputDropout, o.Model.In = rate, true, d.Features.Cols
				m := train.BatchSettings{Sampler: "neighbour", Size: 25, Fanouts: []int{3, 4}, Threads: 2}
				one := mustMini(t, traintest.Ref(), d, o, m)
				parts := traintest.Cut(t, d, "random", 2+i)
				p3 := traintest.Batches(t, parts, o, m, true, "p3").Results[0]
				distdgl := traintest.Batches(t, parts, o, m, true, "distdgl").Results[0]
				traintest.SameCurve(t, "p3 beside one worker", p3.Loss, one.Loss, 1e-12)
				traintest.SameCurve(t, "p3 beside distdgl", p3.Loss, distdgl.Loss, 1e-12)
				o.Model.InputDropout = false
				if whole := mustMini(t, traintest.Ref(), d, o, m); whole.Loss[0] == one.Loss[0] {
					t.Errorf("loss %g with dropout of the input and without", one.Loss[0])
				}
			})
		}
	}
}

// wideCommunities have features of more columns than one hash has bits.
func wideCommunities(t *testing.T, sparse bool) *graph.Dataset {
	d := traintest.Communities(t, 120, sparse)
	if sparse {
		return d
	}
	wide := &graph.Features{Rows: d.Features.Rows, Cols: 10 * d.Features.Cols}
	for v := range d.Features.Rows {
		for range 10 {
			wide.F32 = append(wide.F32, d.Features.F32[v*d.Features.Cols:(v+1)*d.Features.Cols]...)
		}
	}
	d.Features, d.Meta.Features.Dim = wide, wide.Cols
	return d
}
