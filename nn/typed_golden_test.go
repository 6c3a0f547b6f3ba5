package nn

import (
	"encoding/json"
	"fmt"
	"testing"

	"starling/graph"
	"starling/rng"
	"starling/tensor"
)

// typedGolden is a case of golden_typed.json.
type typedGolden struct {
	golden
	Types []struct {
		Name  string `json:"name"`
		Count int64  `json:"count"`
	} `json:"types"`
	Relations []graph.Relation `json:"relations"`
	Src       [][]uint32       `json:"src"`
	Dst       [][]uint32       `json:"dst"`
	How       struct {
		Heads  int `json:"heads"`
		Bases  int `json:"bases"`
		Blocks int `json:"blocks"`
	} `json:"options"`
}

func (g *typedGolden) graph(t *testing.T) (*graph.Schema, *graph.CSR) {
	s := &graph.Schema{Relations: g.Relations}
	var n int64
	for _, typ := range g.Types {
		s.Types = append(s.Types, graph.VertexType{Name: typ.Name, First: n, Count: typ.Count})
		n += typ.Count
	}
	if err := s.Validate(n); err != nil {
		t.Fatal(err)
	}
	var src, dst []uint32
	var kind []uint16
	for r := range g.Src {
		src, dst = append(src, g.Src[r]...), append(dst, g.Dst[r]...)
		for range g.Src[r] {
			kind = append(kind, uint16(r))
		}
	}
	csr, err := graph.FromTypedEdges(int(n), src, dst, kind)
	if err != nil {
		t.Fatal(err)
	}
	if err := csr.CheckRelations(s); err != nil {
		t.Fatal(err)
	}
	return s, csr
}

func (g *typedGolden) module(b *builder, c *TypedConfig, in, out int) Module {
	c.Bases, c.Blocks = g.How.Bases, g.How.Blocks
	switch g.Layer {
	case "RGCNConv":
		return newRelational(c, in, out, output{}, all(c), newRGCN(b, c, in, out))
	case "HGTConv":
		return newHGT(b, c, in, out, g.How.Heads, 0, output{}, all(c))
	case "SimpleHGN":
		return newSimpleHGN(b, c, in, out, g.How.Heads, 5, 0, output{}, all(c))
	case "UnitRows":
		return newUnitRows(b, out, output{})
	case "SAGEConv":
		return newRelational(c, in, out, output{}, all(c), newHSAGE(b, c, in, out))
	}
	return newRGAT(b, c, in, out, g.How.Heads, 0, output{}, all(c))
}

// all says that rows of every type are needed.
func all(c *TypedConfig) []bool { return c.needed(1)[0] }

// TestTypedLayersAgreeWithPyG compares layers over relations, forward and backward, with PyG's, and
// simplehgn's with the paper's formula in torch.
func TestTypedLayersAgreeWithPyG(t *testing.T) {
	for name, d := range devices(t) {
		for i, g := range readGolden[typedGolden](t, "typed") {
			t.Run(fmt.Sprintf("%s/%s/%d", name, g.Layer, i), func(t *testing.T) { g.check(t, d.dev, d.tol) })
		}
	}
}

func (g *typedGolden) check(t *testing.T, dev tensor.Device, tol float64) {
	s, csr := g.graph(t)
	var want array
	if err := json.Unmarshal(g.Y, &want); err != nil {
		t.Fatal(err)
	}
	b := &builder{dev: dev, key: rng.New(1)}
	mod := g.module(b, TypedOf(s), g.X.Shape[1], want.Shape[1])
	used := g.load(t, dev, b)
	p := &Pass{Dev: dev, Agg: NewLocal(NewTyped(dev, csr, s), false), Train: true, Rows: dev.Type(), Types: s.AllRuns()}
	y := mod.Forward(p, rows(upload(dev, g.X)))
	near(t, "y", download(dev, y), want.Data, tol)
	dx := mod.Backward(p, upload(dev, g.DY), true)
	near(t, "dx", download(dev, dx), g.DX.Data, tol)
	for _, param := range used {
		near(t, "d "+param.Name, param.tensor(dev, param.Name, param.Grad).Data, g.DParams[param.Name].Data, tol)
	}
}
