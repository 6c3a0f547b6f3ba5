package nn

import (
	"fmt"
	"strings"
	"testing"

	"starling/graph"
	"starling/internal/testseed"
	"starling/rng"
	"starling/tensor"
	"starling/tensor/cpu"
	"starling/tensor/cpu/simd"
	"starling/tensor/ref"
)

// TestLoneVerticesTeachAttentionNothing: a vertex with only its own loop attends to itself, whatever the attention
// vectors are. Their gradients are exactly zero, on every instruction set and in float64, so that Adam, which
// makes full steps of rounding errors, leaves them alone.
func TestLoneVerticesTeachAttentionNothing(t *testing.T) {
	seed := testseed.New(t)
	devices := map[string]tensor.Device{"float64": ref.New()}
	for level := simd.Generic; level <= simd.Supported(); level++ {
		dev := cpu.NewWith(cpu.Options{Threads: 2, Level: level})
		t.Cleanup(dev.Close)
		devices[fmt.Sprint(level)] = dev
	}
	for name, dev := range devices {
		for _, c := range []Config{
			{Model: "gat", Layers: 2, Heads: 8, OutHeads: 1, Hidden: 64, Norm: "none"},
			{Model: "gat", Layers: 1, Heads: 8, OutHeads: 8, Hidden: 64, Norm: "none", AttentionDropout: 0.6},
			{Model: "gatv2", Layers: 2, Heads: 8, OutHeads: 2, Hidden: 64, Norm: "none", Dropout: 0.5},
		} {
			c.In, c.Out = 30, 7
			trainAlone(t, fmt.Sprintf("%s, %s of %d layers", name, c.Model, c.Layers), dev, c, seed)
		}
	}
}

// trainAlone trains 200 vertices without edges.
func trainAlone(t *testing.T, name string, dev tensor.Device, c Config, seed uint64) {
	t.Helper()
	const n = 200
	g, err := graph.FromEdges(n, nil, nil, nil, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	key := rng.New(seed)
	m, x := New(dev, c, seed), rows(randomMatrix(dev, n, c.In, key))
	agg := NewLocal(NewTopology(dev, g), false)
	label, every := make([]uint32, n), make([]uint32, n)
	for i := range label {
		label[i], every[i] = uint32(i%c.Out), uint32(i)
	}
	task, optim := Classify{Labels: tensor.Indices(dev, label)}, NewOptimiser(dev, m.Params, DefaultOptim())
	for e := range 5 {
		p := &Pass{Dev: dev, Agg: agg, Train: true, Vertices: n, Key: key.Fold(uint64(e))}
		m.ZeroGrad(dev)
		logits := m.Forward(p, x)
		TakeLoss(dev, task.Loss(dev, logits, logits, tensor.Indices(dev, every), 1./n))
		m.Backward(p, logits)
		for _, w := range m.Params {
			if !strings.Contains(w.Name, "att") {
				continue
			}
			for i, d := range download(dev, w.Grad) {
				if d != 0 {
					t.Fatalf("%s, epoch %d: the gradient of %s at %d is %g, want 0", name, e, w.Name, i, d)
				}
			}
		}
		optim.Step(0.01)
	}
}
