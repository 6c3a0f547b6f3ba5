package nn

import (
	"math"
	"testing"

	"starling/rng"
	"starling/tensor"
	"starling/tensor/ref"
)

// TestTypedGradients: whole typed models beside finite differences, with dropout, rows that are learnt, and a type that
// alone is read of the last layer.
func TestTypedGradients(t *testing.T) {
	g := readGolden[typedGolden](t, "typed")[0]
	s, csr := g.graph(t)
	for _, name := range TypedModels {
		for _, outputs := range [][]int{nil, {1}} {
			dev := ref.New()
			c := Config{Model: name, Layers: 2, Hidden: 4, Heads: 2, Out: 3, Dropout: 0.3, AttentionDropout: 0.2, Typed: TypedOf(s)}
			c.Typed.Outputs = outputs
			key := rng.New(5)
			in := &TypedInput{Runs: s.AllRuns(), X: make([]tensor.Matrix, 4), Learnt: make([]*Param, 4)}
			for i, width := range []int{3, 2, 0, 5} {
				c.Typed.Types[i].In = width
				n := int(s.Types[i].Count)
				if width == 0 {
					in.Learnt[i] = NewLearnt(dev, s.Types[i].Name, make([]uint32, n), c.Hidden, 7)
					continue
				}
				in.X[i] = randomMatrix(dev, n, width, key.Fold(uint64(i)))
			}
			m := New(dev, c, 3)
			for k, param := range m.Params { // sums of rows without neighbours are not on a ReLU's bend
				some := randomMatrix(dev, param.Value.Rows, param.Value.Cols, key.Fold(uint64(100+k)))
				dev.Combine(param.Value, 1, param.Value, 0.2, some)
			}
			dy := randomMatrix(dev, csr.Nodes(), c.Out, key.Fold(9))
			if outputs != nil { // no other row is read
				dev.Zero(dy.Slice(0, int(s.Types[1].First)))
				dev.Zero(dy.Slice(int(s.Types[1].End()), dy.Rows))
			}
			pass := func() *Pass {
				return &Pass{Dev: dev, Agg: NewLocal(NewTyped(dev, csr, s), false), Train: true, Rows: tensor.F64,
					Types: s.AllRuns(), Key: key}
			}
			loss := func() float64 {
				d := dev.New(tensor.F64, 1, 1)
				dev.Dot(d, m.Forward(pass(), Input{Typed: in}), dy)
				return download(dev, d)[0]
			}
			loss()
			p := pass()
			m.Forward(p, Input{Typed: in})
			d := dev.New(tensor.F64, dy.Rows, dy.Cols)
			dev.Copy(d, dy)
			m.Backward(p, d)
			for k, param := range append(m.Params, in.Learnt[2]) {
				x, got := download(dev, param.Value), download(dev, param.Grad)
				for try := range 3 {
					i, h := key.Fold(uint64(k)).IntN(uint64(try), len(x)), 1e-5
					at := func(v float64) float64 {
						y := append([]float64(nil), x...)
						y[i] = v
						dev.Upload(param.Value, y)
						return loss()
					}
					want := (at(x[i]+h) - at(x[i]-h)) / (2 * h)
					dev.Upload(param.Value, x)
					if math.Abs(got[i]-want) > 1e-6*(1+math.Abs(want)) {
						t.Errorf("%s, outputs %v: the gradient of number %d of %s is %g, want %g", name, outputs, i, param.Name,
							got[i], want)
					}
				}
			}
		}
	}
}
