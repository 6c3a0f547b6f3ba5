package full

import (
	"fmt"
	"testing"

	"starling/graph"
	"starling/nn"
	"starling/partition"
	"starling/train/traintest"
)

// TestHaloIsExact: every model, with dropout, on several workers and partitions
// follows one worker's loss: to 1e-9 in float64, to 1e-4 in float32.
func TestHaloIsExact(t *testing.T) {
	workers := []int{1, 2, 3, 5}
	method := func(w int) string { return []string{"random", "hash", "chunk", "fennel"}[w%4] }
	for _, sparse := range []bool{false, true} {
		d := traintest.Communities(t, 120, sparse)
		cuts := map[int][]*partition.Part{} // to write one takes longer than to train on it
		for _, w := range workers {
			cuts[w] = traintest.Cut(t, d, method(w), w)
		}
		for _, model := range nn.Models {
			o := traintest.Options(model)
			o.Epochs, o.EvalEvery = 4, 2
			if o.Model.Layers > 2 {
				o.Model.Layers = 4
			}
			if model == "gcn" {
				o.Model.Norm = "batch"
			}
			want := traintest.Full(t, traintest.Ref(), d, o)
			for _, w := range workers {
				parts := cuts[w]
				label := fmt.Sprintf("%s sparse=%v on %d workers cut by %s", model, sparse, w, method(w))
				for _, r := range traintest.TrainParts(t, parts, traintest.Ref, o) {
					traintest.SameCurve(t, label, r.Loss, want.Loss, 1e-9)
					traintest.SameCurve(t, label+", validation", r.Val, want.Val, 1e-9)
				}
				for _, r := range traintest.TrainParts(t, parts, traintest.Single, o) {
					traintest.SameCurve(t, label+", float32", r.Loss, want.Loss, inSingle(model))
				}
			}
		}
	}
}

// TestHaloAsLargeAsCore: two workers with two vertices each, all joined, need two
// remote vertices each. Then local numbers of core and halo coincide, which must
// not be taken for self-loops.
func TestHaloAsLargeAsCore(t *testing.T) {
	d := traintest.Communities(t, 4, false)
	var src, dst []uint32
	for u := range uint32(4) {
		for v := range uint32(4) {
			if u != v {
				src, dst = append(src, u), append(dst, v)
			}
		}
	}
	d.Graph = traintest.FromEdges(t, 4, src, dst, nil, graph.BuildOptions{})
	d.Meta.Edges = d.Graph.Edges()
	for _, model := range nn.Models {
		o := traintest.Options(model)
		o.Epochs, o.EvalEvery, o.Model.Layers = 3, 0, 2
		want := traintest.Full(t, traintest.Ref(), d, o)
		parts := traintest.Cut(t, d, "chunk", 2)
		if parts[0].Meta.Core != parts[0].Meta.Halo {
			t.Fatalf("core %d, halo %d", parts[0].Meta.Core, parts[0].Meta.Halo)
		}
		for _, r := range traintest.TrainParts(t, parts, traintest.Ref, o) {
			traintest.SameCurve(t, model, r.Loss, want.Loss, 1e-9)
		}
	}
}
