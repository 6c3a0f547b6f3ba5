package exchange

import (
	"math"
	"testing"

	"starling/graph"
	"starling/nn"
	"starling/tensor"
	"starling/train/traintest"
)

// TestKeptDegrees: the sums that kept edges make are, for equal rows, those of all.
func TestKeptDegrees(t *testing.T) {
	dev := traintest.Ref()
	whole := &nn.Degrees{All: []float64{4, 3, 0}, NoLoops: []float64{4, 3, 0}}
	of := func(k nn.Kind, in *graph.CSR, rows *nn.Degrees) []float64 {
		src, dst := dev.New(tensor.F64, 8, 1), dev.New(tensor.F64, 3, 1)
		dev.Upload(src, []float64{1, 1, 1, 1, 1, 1, 1, 1})
		columns := &nn.Degrees{All: make([]float64, 8), NoLoops: make([]float64, 8)}
		nn.NewPart(dev, in, 8, rows, columns, true).Sum(nn.Reduction{Kind: k}, dst, src, false)
		out := make([]float64, 3)
		dev.Download(out, dst)
		return out
	}
	all := &graph.CSR{Indptr: []int64{0, 4, 7, 7}, Indices: []uint32{3, 4, 5, 6, 5, 6, 7}}
	some := &graph.CSR{Indptr: []int64{0, 1, 3, 3}, Indices: []uint32{4, 5, 7}}
	rows := keptDegrees(whole, []float64{1. / 4, 2. / 3, 1})
	for _, k := range []nn.Kind{nn.Mean, nn.MeanSelf, nn.Symmetric} {
		got, want := of(k, some, rows), of(k, all, whole)
		for v := range want {
			if math.Abs(got[v]-want[v]) > 1e-12 {
				t.Errorf("kind %d: %v, want %v", k, got, want)
			}
		}
	}
}
