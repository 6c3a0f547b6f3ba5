package nn

import (
	"math"
	"testing"

	"starling/rng"
	"starling/tensor"
	"starling/tensor/cpu"
	"starling/tensor/ref"
)

// pairsOf are pairs of n rows: repeats, a row with itself, and both orders.
func pairsOf(n int) (left, right []uint32) {
	for i := range uint32(2 * n) {
		left, right = append(left, i%uint32(n)), append(right, (i*i+1)%uint32(n))
	}
	return append(left, 0, 1, 1), append(right, 1, 0, 1)
}

// decoded is a model with a decoder, and the loss of some pairs at its weights.
func decoded(t *testing.T, dev tensor.Device, kind string, store tensor.DType) (*Model, func() float64) {
	const n = 12
	key := rng.New(3)
	c := Config{Model: "sage", Layers: 2, Hidden: 6, Heads: 1, OutHeads: 1, Norm: "none", Aggregator: "mean", In: 5,
		Out: 4, Dropout: 0.3, Decoder: kind}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	agg := NewLocal(NewTopology(dev, randomGraph(t, n, 40, key, false)), false)
	x := testInput(dev, "dense", n, c.In, key.Fold(1))
	m := New(dev, c, 7)
	for i, p := range m.Params {
		dev.Combine(p.Value, 1, p.Value, 0.3, randomMatrix(dev, p.Value.Rows, p.Value.Cols, key.Fold(uint64(100+i))))
	}
	left, right := pairsOf(n)
	target, all := make([]float64, len(left)), make([]uint32, len(left))
	for i := range left {
		target[i], all[i] = float64(i%2), uint32(i)
	}
	targets := dev.New(dev.Type(), len(left), 1)
	dev.Upload(targets, target)
	return m, func() float64 {
		p := &Pass{Dev: dev, Agg: agg, Train: true, Vertices: n, Key: key, Rows: store}
		m.ZeroGrad(dev)
		out := m.Forward(p, x)
		z, dz := dev.Scratch(dev.Type(), n, c.Out), dev.New(dev.Type(), n, c.Out)
		dev.Copy(z, out)
		scores := m.Decoder.Score(p, z, tensor.Indices(dev, left), tensor.Indices(dev, right))
		loss := TakeLoss(dev, lossOf(dev, scores, scores, tensor.Loss{Kind: tensor.BCE, Targets: targets, Scale: 0.1}))
		m.Decoder.Backward(p, dz, scores)
		dev.Copy(out, dz)
		m.Backward(p, out)
		for _, f := range []tensor.Matrix{z, dz, scores} {
			dev.Free(f)
		}
		return loss
	}
}

// TestDecoderGradients checks those of encoder and decoder on the float64 device.
func TestDecoderGradients(t *testing.T) {
	for _, kind := range Decoders {
		t.Run(kind, func(t *testing.T) {
			dev := ref.New()
			m, loss := decoded(t, dev, kind, tensor.F64)
			checkGradients(t, dev, m.Params, loss)
		})
	}
}

// TestDecoderOnCPU: singles and halves follow the reference, and nothing stays in use.
func TestDecoderOnCPU(t *testing.T) {
	cpu, ref := cpu.New(2), ref.New()
	defer cpu.Close()
	for _, kind := range Decoders {
		want, wantLoss := decoded(t, ref, kind, tensor.F64)
		for store, bound := range map[tensor.DType]float64{tensor.F32: 1e-4, tensor.BF16: 0.1} {
			m, loss := decoded(t, cpu, kind, store)
			loss() // makes what is kept
			before, _ := cpu.Usage()
			if l, w := loss(), wantLoss(); math.Abs(l-w) > bound*w {
				t.Errorf("%s, %v: loss %g, want %g", kind, store, l, w)
			}
			if after, _ := cpu.Usage(); after != before {
				t.Errorf("%s: %d bytes not freed", kind, after-before)
			}
			for i, p := range m.Params {
				near(t, p.Name, download(cpu, p.Grad), download(ref, want.Params[i].Grad), bound)
			}
		}
	}
}

// TestDecoderScores compares scores with the formula, one pair at a time, also of no pairs. The names
// are the names of a state dict.
func TestDecoderScores(t *testing.T) {
	dev := ref.New()
	z := randomMatrix(dev, 5, 3, rng.New(1))
	host := download(dev, z)
	for _, kind := range Decoders {
		m := New(dev, Config{Model: "mlp", Layers: 1, Hidden: 1, Norm: "none", In: 2, Out: 3, Decoder: kind}, 1)
		p := &Pass{Dev: dev}
		if s := m.Decoder.Score(p, z, tensor.Indices(dev, []uint32{}), tensor.Indices(dev, []uint32{})); s.Rows != 0 {
			t.Fatalf("%d scores of no pairs", s.Rows)
		}
		got := download(dev, m.Decoder.Score(p, z, tensor.Indices(dev, []uint32{0, 4, 2}),
			tensor.Indices(dev, []uint32{1, 0, 2})))
		for i, pair := range [][2]int{{0, 1}, {4, 0}, {2, 2}} {
			var product [3]float64
			want := 0.0
			for j := range product {
				product[j] = host[pair[0]*3+j] * host[pair[1]*3+j]
				want += product[j]
			}
			if kind == "mlp" {
				w1, b1, w2, b2 := download(dev, m.Params[2].Value), download(dev, m.Params[3].Value), download(dev,
					m.Params[4].Value), download(dev, m.Params[5].Value)
				want = b2[0]
				for j := range product {
					h := b1[j]
					for k := range product {
						h += product[k] * w1[k*3+j]
					}
					want += max(h, 0) * w2[j]
				}
			}
			if math.Abs(got[i]-want) > 1e-12 {
				t.Errorf("%s: pair %v scores %g, want %g", kind, pair, got[i], want)
			}
		}
		if kind == "mlp" && m.Params[2].Name != "decoder.lins.0.weight" {
			t.Errorf("the decoder's first parameter is %s", m.Params[2].Name)
		}
	}
}
