package nn

import (
	"math"
	"testing"

	"starling/graph"
	"starling/rng"
	"starling/tensor"
	"starling/tensor/ref"
)

// TestFromColumns: the sum over edges from some columns is the sum over all edges with zeros in the other columns, and
// gradients of those columns are the same, with weights, loops and as a part of a larger graph.
func TestFromColumns(t *testing.T) {
	dev, key := ref.New(), rng.New(5)
	for c := range 8 {
		aligned, weighted := c&1 == 1, c&2 == 2
		rows, cols := 6, 9
		in := &graph.CSR{Indptr: []int64{0}}
		degrees := func(n int, at uint64) *Degrees {
			d := &Degrees{All: make([]float64, n), NoLoops: make([]float64, n)}
			for i := range n {
				d.All[i] = 1 + math.Floor(9*key.Float64(at+uint64(i)))
				d.NoLoops[i] = d.All[i] - 0.5
			}
			return d
		}
		for v := range rows {
			for u := range cols {
				if at := uint64(100*c + 10*v + u); key.Float64(at) < 0.5 {
					in.Indices = append(in.Indices, uint32(u))
					if weighted {
						in.Weights = append(in.Weights, float32(key.Float64(1000+at)))
					}
				}
			}
			in.Indptr = append(in.Indptr, int64(len(in.Indices)))
		}
		whole := NewPart(dev, in, cols, degrees(rows, 1), degrees(cols, 50), aligned)
		keep := []uint32{0, 1, 2, 3, 4, 5, 7}
		if !aligned {
			keep = []uint32{1, 4, 8}
		}
		some := whole.FromColumns(keep)
		for _, kind := range []Kind{Sum, Mean, MeanSelf, Symmetric} {
			r := Reduction{Kind: kind, Self: 0.3}
			z, few := make([]float64, 2*cols), make([]float64, 0, 2*len(keep))
			for _, u := range keep {
				z[2*u], z[2*u+1] = key.Normal(uint64(u)), key.Normal(uint64(100+u))
				few = append(few, z[2*u], z[2*u+1])
			}
			want, got := dev.New(tensor.F64, rows, 2), dev.New(tensor.F64, rows, 2)
			whole.Sum(r, want, uploaded(dev, z), false)
			some.Sum(r, got, uploaded(dev, few), false)
			same(t, "sum", kind, downloaded(dev, got), downloaded(dev, want))
			dy := downloaded(dev, want)
			all, part := dev.New(tensor.F64, cols, 2), dev.New(tensor.F64, len(keep), 2)
			whole.SumGrad(r, all, uploaded(dev, dy))
			some.SumGrad(r, part, uploaded(dev, dy))
			wide := downloaded(dev, all)
			var picked []float64
			for _, u := range keep {
				picked = append(picked, wide[2*u], wide[2*u+1])
			}
			same(t, "gradient", kind, downloaded(dev, part), picked)
		}
		some.Free()
	}
}

func uploaded(dev tensor.Device, v []float64) tensor.Matrix {
	m := dev.New(tensor.F64, len(v)/2, 2)
	dev.Upload(m, v)
	return m
}

func downloaded(dev tensor.Device, m tensor.Matrix) []float64 {
	v := make([]float64, m.Rows*m.Cols)
	dev.Download(v, m)
	return v
}

func same(t *testing.T, what string, kind Kind, got, want []float64) {
	t.Helper()
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-12 {
			t.Fatalf("%s, reduction %v: %v, want %v", what, kind, got, want)
		}
	}
}
