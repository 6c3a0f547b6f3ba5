package nn

import (
	"math"
	"testing"

	"starling/graph"
	"starling/tensor"
	"starling/tensor/cpu"
	"starling/tensor/ref"
)

// TestTargetScale: passes that do not train, and the last stage, give what was learnt times the deviation plus the mean,
// on every device and with rows in bfloat16; the scale is saved with the weights.
func TestTargetScale(t *testing.T) {
	host := cpu.New(1)
	defer host.Close()
	for name, dev := range map[string]tensor.Device{"float64": ref.New(), "float32": host} {
		for _, rows := range []tensor.DType{dev.Type(), tensor.BF16} {
			c := Config{Model: "mlp", Layers: 2, Hidden: 5, In: 3, Out: 2, Norm: "none", StandardizeTargets: true}
			m := New(dev, c, 1)
			want := &graph.Scale{Mean: []float64{10000, -3}, Deviation: []float64{200, 0.5}}
			m.SetTargetScale(dev, want)
			if s := m.TargetScale(dev); !s.Equal(want) {
				t.Fatalf("the scale is %v", s)
			}
			x := dev.Scratch(dev.RowType(rows), 4, 3)
			dev.Upload(x, []float64{1, 2, 3, -1, 0, 2, 0, 0, 0, 5, -5, 1})
			out := func(train bool) []float64 {
				y := m.Forward(&Pass{Dev: dev, Rows: rows, Train: train}, Input{Matrix: x})
				list := make([]float64, 8)
				dev.Download(list, y)
				return list
			}
			z, y := out(true), out(false)
			h := m.Stage(&Pass{Dev: dev, Rows: rows}, 0, Input{Matrix: x})
			last := make([]float64, 8)
			dev.Download(last, m.Stage(&Pass{Dev: dev, Rows: rows}, 1, Input{Matrix: h}))
			for i := range z {
				k := i % 2
				right := z[i]*want.Deviation[k] + want.Mean[k]
				if math.Abs(y[i]-right) > 1e-3 || y[i] != last[i] || dev.Type() == tensor.F64 && y[i] != right {
					t.Errorf("%s, %v: output %d is %g, of the last stage %g, want %g", name, rows, i, y[i], last[i], right)
				}
			}
			other := New(dev, c, 2)
			if err := other.Load(dev, m.State(dev)); err != nil || !other.TargetScale(dev).Equal(want) {
				t.Errorf("loaded: %v, %v", err, other.TargetScale(dev))
			}
		}
	}
}
