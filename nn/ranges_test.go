package nn

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"starling/rng"
	"starling/tensor"
	"starling/tensor/ref"
)

// TestRangesAreTheWhole: a pass by ranges, in any order, gives the logits and the
// gradients of a whole one, tells of every parameter once, and leaves no memory.
func TestRangesAreTheWhole(t *testing.T) {
	all := configs()
	for _, model := range []string{"resgcn+", "ressage+", "gin", "mlp"} {
		for _, norm := range []string{"batch", "layer"} {
			all = append(all, Config{Model: model, Layers: 4, Hidden: 6, Heads: 1, OutHeads: 1, Norm: norm,
				Aggregator: "mean", In: 5, Out: 3, Dropout: 0.3, TrainEps: true})
		}
	}
	for i, c := range all {
		for _, n := range []int{1, 17, 40} {
			for _, features := range []string{"dense", "constant", "sparse"} {
				key := rng.New(uint64(100*i + n))
				label := fmt.Sprintf("%s norm %s on %d vertices, features %s", c.Model, c.Norm, n, features)
				dev := ref.New()
				g := featured(randomGraph(t, n, 3*n, key, i%2 == 0), c.EdgeDim, itself)
				agg := NewLocal(NewTopology(dev, g), features == "constant")
				x := testInput(dev, features, n, c.In, key.Fold(1))
				dlogits := randomMatrix(dev, n, c.Out, key.Fold(2))
				m := New(dev, c, 7)
				pass := func() *Pass {
					return &Pass{Dev: dev, Agg: agg, Train: true, Key: key, Vertices: int64(n), Masked: n == 17}
				}
				p := pass()
				want := m.Forward(p, x)
				d := dev.New(tensor.F64, n, c.Out)
				dev.Copy(d, dlogits)
				m.Backward(p, d)
				wantGrads := gradsOf(dev, m)
				m.ZeroGrad(dev)
				d = dev.New(tensor.F64, n, c.Out)
				used, _ := dev.Usage()

				told := 0
				p = pass()
				p.Ready = func(params []*Param) { told += len(params) }
				dev.Copy(d, dlogits)
				got := byRanges(m, agg, p, x, d, n, key.Fold(3))
				nearly(t, label+": logits", download(dev, got), download(dev, want))
				nearly(t, label+": gradients", gradsOf(dev, m), wantGrads)
				dev.Free(got)
				if now, _ := dev.Usage(); told != len(m.Params) || now != used {
					t.Fatalf("%s: told of %d of %d parameters; %d bytes in use, %d before", label, told, len(m.Params),
						now, used)
				}
			}
		}
	}
}

// byRanges runs a pass by ranges in random order.
func byRanges(m *Model, agg *Local, p *Pass, x Input, d tensor.Matrix, n int, key rng.Key) tensor.Matrix {
	draw := uint64(0)
	eachRange := func(f func(lo, hi int)) {
		draw++
		size := 1 + key.IntN(draw, 9)
		for _, k := range key.Fold(draw).Perm((n + size - 1) / size) {
			f(int(k)*size, min(int(k+1)*size, n))
		}
	}
	r := m.Ranges(p, x)
	for phase := range r.Phases() {
		eachRange(func(lo, hi int) { r.Forward(phase, lo, hi) })
		r.EndForward(phase)
		if phase == r.Phases()-1 {
			break
		}
		switch r.SyncPoint(phase) {
		case SumPoint:
			s := r.Sums(phase)
			if r.HasEarly(phase) {
				eachRange(func(lo, hi int) { r.Early(phase, lo, hi) })
			}
			eachRange(func(lo, hi int) { agg.SumRows(s.Reduce, s.Dst, s.Src, lo, hi, false) })
		case EdgePoint:
			op := r.Edgewise(phase)
			eachRange(func(lo, hi int) { op.EdgeForward(agg.Edges(op.Over()), lo, hi) })
		case CommonPoint:
			r.Whole(phase)
		}
	}
	logits := r.Logits()
	r.BeginGrad(d)
	for phase := r.Phases() - 1; phase >= 0; phase-- {
		if phase < r.Phases()-1 {
			eachRange(func(lo, hi int) { r.Root(phase, lo, hi) })
			if r.SyncPoint(phase) != SumPoint {
				r.WholeGrad(phase)
			} else if r.GoesBack(phase) {
				s := r.SumGrads(phase)
				eachRange(func(lo, hi int) { agg.SumGradRows(s.Reduce, s.Src, s.Dst, lo, hi) })
			}
		}
		var los []int
		eachRange(func(lo, hi int) {
			r.Backward(phase, lo, hi)
			los = append(los, lo)
		})
		slices.Sort(los)
		for i := 0; i < len(los); i += 2 { // two at a time
			end := n
			if i+2 < len(los) {
				end = los[i+2]
			}
			if r.Roots(phase) {
				r.LearnRoots(phase, los[i], end, end == n)
			}
			r.WeightGrad(phase, los[i], end)
		}
		r.EndBackward(phase)
	}
	return logits
}

func gradsOf(dev tensor.Device, m *Model) (all []float64) {
	for _, p := range m.Params {
		all = append(all, download(dev, p.Grad)...)
	}
	return all
}

func nearly(t *testing.T, what string, got, want []float64) {
	t.Helper()
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= 1e-9*(1+math.Abs(want[i]))) {
			t.Fatalf("%s: %g at %d, want %g", what, got[i], i, want[i])
		}
	}
}
