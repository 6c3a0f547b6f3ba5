package nn

import (
	"fmt"
	"testing"

	"starling/rng"
	"starling/tensor"
	"starling/tensor/ref"
)

// TestRelationDecoderGradients: every scored relation has weights of its own, whose gradients, and those of rows, are those
// of finite differences.
func TestRelationDecoderGradients(t *testing.T) {
	types := &TypedConfig{Types: []TypeConfig{{"user", 3}, {"item", 2}},
		Relations: []RelationConfig{{0, "knows", 0}, {1, "sold to", 0}, {0, "buys", 1}}}
	for _, kind := range RelationDecoders {
		t.Run(kind, func(t *testing.T) {
			dev, key := ref.New(), rng.New(4)
			types := *types
			types.Scored = []int{2, 0}
			c := Config{Model: "rgcn", Layers: 1, Hidden: 5, Out: 4, Decoder: kind, Typed: &types}
			if err := c.Validate(); err != nil {
				t.Fatal(err)
			}
			b := &builder{dev: dev, key: key}
			d := newDecoder(b, &c)
			z := b.add("z", []int{9, 4}, false, 9, 4, glorot(9, 4))
			for i, p := range b.params {
				dev.Combine(p.Value, 1, p.Value, 0.5, randomMatrix(dev, p.Value.Rows, p.Value.Cols, key.Fold(uint64(9+i))))
			}
			left, right := pairsOf(9)
			checkGradients(t, dev, b.params, func() float64 {
				for _, p := range b.params {
					dev.Zero(p.Grad)
				}
				loss := 0.0
				for r := range types.Scored {
					d.Relation(r)
					p := &Pass{Dev: dev, Train: true, Key: key, Rows: tensor.F64}
					n := len(left) - r
					scores := d.Score(p, z.Value, tensor.Indices(dev, left[:n]), tensor.Indices(dev, right[:n]))
					targets := dev.New(dev.Type(), n, 1)
					loss += TakeLoss(dev, lossOf(dev, scores, scores, tensor.Loss{Kind: tensor.BCE, Targets: targets, Scale: 0.1}))
					d.Backward(p, z.Grad, scores)
				}
				return loss
			})
			names := map[string]bool{}
			for _, p := range b.params {
				names[p.Name] = true
			}
			if want := "decoder.<user___buys___item>.rel_emb"; kind == "distmult" && !names[want] {
				t.Errorf("parameters %v, want %s", names, want)
			}
		})
	}
	for _, c := range []Config{{Decoder: "cosine"}, {Decoder: "dot"}, {}} {
		c.Model, c.Layers, c.Hidden, c.Out = "rgcn", 1, 5, 4
		typed := *types
		if c.Decoder == "" {
			typed.Scored = []int{0}
		}
		c.Typed = &typed
		if err := c.Validate(); err == nil {
			t.Error(fmt.Sprintf("decoder %q of relations %v passed", c.Decoder, typed.Scored))
		}
	}
}
