package nn

import (
	"slices"
	"testing"

	"starling/rng"
	"starling/tensor/ref"
)

// TestInputFrom: the gradient of the last columns of the input equals the last columns of the whole gradient, whichever
// comes first in a layer, the sum or the product.
func TestInputFrom(t *testing.T) {
	const n, in, from = 30, 6, 4
	dev, key := ref.New(), rng.New(3)
	g := randomGraph(t, n, 120, key, false)
	for _, c := range []Config{
		{Model: "gcn", In: in, Hidden: 3, Out: 2, Layers: 2},
		{Model: "gcn", In: in, Hidden: 9, Out: 2, Layers: 2},
		{Model: "sage", In: in, Hidden: 3, Out: 2, Layers: 2},
		{Model: "sage", In: in, Hidden: 9, Out: 2, Layers: 2},
	} {
		grad := func(first int) []float64 {
			m := New(dev, c, 1)
			p := &Pass{Dev: dev, Agg: NewLocal(NewTopology(dev, g), false), Train: true, Vertices: n, Key: key,
				InputFrom: first}
			m.ZeroGrad(dev)
			dx := m.BackwardInput(p, m.Forward(p, Input{Matrix: randomMatrix(dev, n, in, key)}))
			if dx.Cols != in-first {
				t.Fatalf("%s: a gradient of %d columns", c.Model, dx.Cols)
			}
			values := make([]float64, n*dx.Cols)
			dev.Download(values, dx)
			return values
		}
		all, last := grad(0), grad(from)
		for v := range n {
			want, got := all[v*in+from:(v+1)*in], last[v*(in-from):(v+1)*(in-from)]
			if !slices.Equal(got, want) {
				t.Errorf("%s of %d: vertex %d: %g, expected %g", c.Model, c.Hidden, v, got, want)
			}
		}
	}
}
