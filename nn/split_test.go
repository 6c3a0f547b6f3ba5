package nn

import (
	"testing"

	"starling/tensor/ref"
)

// TestSplitsFirst: what is said of a model without making it is what it does.
func TestSplitsFirst(t *testing.T) {
	for _, model := range Models {
		for bits := range 8 {
			c := Config{Model: model, Layers: 2, Hidden: 4, Heads: 2, OutHeads: 1, Norm: "layer", Aggregator: "mean",
				Dropout: 0.5, In: 3, Out: 2, InputDropout: bits&1 > 0, TrainEps: bits&2 > 0}
			if bits&4 > 0 && UsesEdges(model) {
				c.EdgeDim = 2
			}
			_, want := New(ref.New(), c, 1).SplitFirst()
			if got := c.SplitsFirst(); got != want {
				t.Errorf("%+v: %t, the model %t", c, got, want)
			}
			products := New(ref.New(), c, 1).SplitProducts()
			if got := c.SplitsFirst() || c.SplitsRows(); got != (len(products) > 0) {
				t.Errorf("%+v: %t, the model has products %v", c, got, products)
			}
			for _, x := range products {
				for _, p := range x.Weights {
					if p.Value.Rows != c.In || p.Value.Cols != x.Width {
						t.Errorf("%+v: %s is %d by %d", c, p.Name, p.Value.Rows, p.Value.Cols)
					}
				}
			}
		}
	}
}
