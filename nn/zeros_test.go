package nn

import (
	"fmt"
	"testing"

	"starling/rng"
	"starling/tensor"
	"starling/tensor/ref"
)

// masking is neighbours that give gradients back only where the rows they were given were not
// zero, for layers that send zeros.
type masking struct {
	*Local
	*Model
	dev  tensor.Device
	rows map[int][]float64 // given
	t    *testing.T
}

func (m *masking) Sum(layer int, r Reduction, dst, src tensor.Matrix) {
	m.Local.Sum(layer, r, dst, src)
	if !m.Config.SendsZeros(layer) {
		return
	}
	m.rows[layer] = download(m.dev, src)
	zeros := 0
	for _, x := range m.rows[layer] {
		if x == 0 {
			zeros++
		}
		if x < 0 {
			m.t.Fatalf("%s, layer %d: %g is not what a ReLU leaves", m.Config.Model, layer, x)
		}
	}
	if zeros < len(m.rows[layer])/3 {
		m.t.Fatalf("%s, layer %d: %d zeros among %d numbers", m.Config.Model, layer, zeros, len(m.rows[layer]))
	}
}

func (m *masking) SumGrad(layer int, r Reduction, dsrc, ddst tensor.Matrix) {
	m.Local.SumGrad(layer, r, dsrc, ddst)
	if rows, ok := m.rows[layer]; ok {
		left := download(m.dev, dsrc)
		for i, x := range rows {
			if x == 0 {
				left[i] = 0
			}
		}
		m.dev.Upload(dsrc, left)
	}
}

// TestMaskedGradients: what comes back for zeros of a ReLU's rows does not matter, for the
// layers and models that SendsZeros names.
func TestMaskedGradients(t *testing.T) {
	all := configs()
	for _, model := range []string{"gcn", "sage", "gin", "resgcn+", "ressage+"} {
		for _, norm := range []string{"none", "batch", "layer"} {
			if c := (Config{Model: model, Layers: 4, Hidden: 8, Norm: norm, Aggregator: "mean", In: 5, Out: 11,
				Dropout: 0.3, TrainEps: true}); c.Validate() == nil {
				all = append(all, c)
			}
		}
	}
	masked := 0
	for i, c := range all {
		const n = 60
		key, dev := rng.New(uint64(i)), ref.New()
		g := featured(randomGraph(t, n, 3*n, key, i%2 == 0), c.EdgeDim, itself)
		m := New(dev, c, 7)
		agg := &masking{NewLocal(NewTopology(dev, g), true), m, dev, map[int][]float64{}, t}
		x := testInput(dev, "constant", n, c.In, key.Fold(1))
		dlogits := randomMatrix(dev, n, c.Out, key.Fold(2))
		grads := func(agg Aggregator, masked bool) []float64 {
			p := &Pass{Dev: dev, Agg: agg, Train: true, Key: key, Vertices: n, Masked: masked}
			dev.Free(m.Forward(p, x))
			d := dev.New(tensor.F64, n, c.Out)
			dev.Copy(d, dlogits)
			m.ZeroGrad(dev)
			m.Backward(p, d)
			return gradsOf(dev, m)
		}
		nearly(t, fmt.Sprintf("%s norm %s", c.Model, c.Norm), grads(agg, true), grads(agg.Local, false))
		masked += len(agg.rows)
	}
	if masked < 30 {
		t.Errorf("gradients of %d layers were masked", masked)
	}
}
