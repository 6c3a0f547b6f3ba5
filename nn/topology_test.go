package nn

import (
	"math"
	"testing"

	"starling/graph"
	"starling/rng"
	"starling/tensor/ref"
)

// TestByColumn: the sums over groups of columns add up to those over all, with weights
// and without, for every reduction, groups without a column among them.
func TestByColumn(t *testing.T) {
	const rows, cols, width, groups = 9, 14, 3, 4
	key, dev := rng.New(5), ref.New()
	defer dev.Close()
	for _, weighed := range []bool{false, true} {
		in := &graph.CSR{Indptr: []int64{0}}
		for v := range rows {
			for e := range v % 6 { // the first row has none; columns come twice
				at := uint64(v*cols + e)
				in.Indices = append(in.Indices, uint32(key.IntN(at, cols)))
				if weighed {
					in.Weights = append(in.Weights, float32(key.Fold(1).Float64(at)))
				}
			}
			in.Indptr = append(in.Indptr, int64(len(in.Indices)))
		}
		degrees, group := &Degrees{All: make([]float64, rows)}, make([]int, cols)
		columns := &Degrees{All: make([]float64, cols)}
		for v := range degrees.All {
			degrees.All[v] = float64(v)
		}
		numbers := make([]float64, cols*width)
		for u := range group {
			group[u], columns.All[u] = u%(groups-1), float64(u+1)
		}
		for i := range numbers {
			numbers[i] = key.Fold(2).Normal(uint64(i))
		}
		src, whole, parts := dev.New(dev.Type(), cols, width), dev.New(dev.Type(), rows, width), dev.New(dev.Type(),
			rows, width)
		dev.Upload(src, numbers)
		all := NewPart(dev, in, cols, degrees, columns, false)
		for _, kind := range []Kind{Sum, Mean, MeanSelf, Symmetric} {
			r := Reduction{Kind: kind}
			all.Sum(r, whole, src, false)
			edges := int64(0)
			for k, part := range all.ByColumn(group, groups) {
				part.Sum(r, parts, src, k > 0)
				edges += part.EdgeCount(0, rows)
			}
			want, got := make([]float64, rows*width), make([]float64, rows*width)
			dev.Download(want, whole)
			dev.Download(got, parts)
			for i := range want {
				if math.Abs(want[i]-got[i]) > 1e-12 || edges != int64(len(in.Indices)) {
					t.Fatalf("weighed %v, %v: sums are %v in groups, %v at once; %d edges of %d", weighed, kind, got,
						want, edges, len(in.Indices))
				}
			}
		}
	}
}
