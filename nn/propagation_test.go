package nn

import (
	"testing"

	"starling/tensor/ref"
)

func TestDecoupledByFiniteDifferences(t *testing.T) {
	for _, norm := range []string{"none", "layer"} {
		c := Config{Model: "gcn", Decoupled: true, Layers: 3, Hidden: 6, Norm: norm, In: 5, Out: 3, Dropout: 0.3}
		for _, features := range []string{"dense", "constant", "sparse"} {
			t.Run(norm+"/"+features, func(t *testing.T) { finiteDifferences(t, ref.New(), c, features) })
		}
	}
}
