package nn

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"starling/graph"
	"starling/rng"
	"starling/tensor"
	"starling/tensor/cpu"
	"starling/tensor/ref"
)

// array is an array of a golden file.
type array struct {
	Shape []int     `json:"shape"`
	Data  []float64 `json:"data"`
}

// golden is one case of nn/testdata (see its README).
type golden struct {
	Layer   string `json:"layer"`
	Loss    string `json:"loss"`
	Options struct {
		Bias       *bool  `json:"bias"`
		Heads      int    `json:"heads"`
		Concat     bool   `json:"concat"`
		Aggr       string `json:"aggr"`
		RootWeight *bool  `json:"root_weight"`
		TrainEps   bool   `json:"train_eps"`
		Hidden     int    `json:"hidden"`
		Conv       string `json:"conv"`
		Norm       string `json:"norm"`
		Training   bool   `json:"training"`
		Widths     []int  `json:"widths"`
	} `json:"options"`
	Graph *struct {
		Name   string   `json:"name"`
		N      int      `json:"n"`
		RawSrc []uint32 `json:"src"`
		RawDst []uint32 `json:"dst"`
	} `json:"graph"`
	EdgeAttr     *array           `json:"edge_attr"`
	X            array            `json:"x"`
	Params       map[string]array `json:"params"`
	Buffers      map[string]array `json:"buffers"`
	DY           array            `json:"dy"`
	DX           array            `json:"dx"`
	DParams      map[string]array `json:"dparams"`
	BuffersAfter map[string]array `json:"buffers_after"`
	Y            json.RawMessage  `json:"y"`
	Labels       []int32          `json:"labels"`
	Rows         []uint32         `json:"rows"`
	Targets      array            `json:"targets"`
}

func readGolden[T any](t *testing.T, name string) []T {
	t.Helper()
	raw, err := os.ReadFile("testdata/golden_" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []T }
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	return file.Cases
}

// devices are what golden values are compared on, with the tolerance each owes.
func devices(t *testing.T) map[string]struct {
	dev tensor.Device
	tol float64
} {
	cpu := cpu.New(2)
	t.Cleanup(cpu.Close)
	return map[string]struct {
		dev tensor.Device
		tol float64
	}{"float64": {ref.New(), 1e-9}, "cpu": {cpu, 1e-4}}
}

func (g *golden) isSet(b *bool) bool { return b == nil || *b }

// module builds the layer of a case.
func (g *golden) module(b *builder) Module {
	in := g.X.Shape[1]
	out := g.DY.Shape[1]
	o := &g.Options
	switch g.Layer {
	case "GCNConv":
		c := newGCN(b, in, out, output{})
		if !g.isSet(o.Bias) {
			c.bias = nil
		}
		return c
	case "SAGEConv":
		if o.Aggr == "max" {
			return newSAGEPool(b, in, out, output{})
		}
		if o.Aggr == "gcn" {
			return newSAGEGCN(b, in, out, output{})
		}
		c := newSAGE(b, in, out, output{})
		if !g.isSet(o.Bias) {
			c.bias = nil
		}
		if !g.isSet(o.RootWeight) {
			c.r = nil
		}
		return c
	case "GATConv":
		width := out
		if o.Concat {
			width = out / o.Heads
		}
		c := newGAT(b, in, width, o.Heads, o.Concat, 0, g.edgeDim(), output{})
		if !g.isSet(o.Bias) {
			c.bias = nil
		}
		return c
	case "GATv2Conv":
		width := out
		if o.Concat {
			width = out / o.Heads
		}
		return newGATv2(b, in, width, o.Heads, o.Concat, 0, g.edgeDim(), output{})
	case "GINEConv":
		return newGINE(b, in, o.Hidden, out, g.edgeDim(), o.TrainEps, output{})
	case "FiLMConv":
		return newFiLM(b, in, out, output{})
	case "GINConv":
		return newGIN(b, in, o.Hidden, out, o.TrainEps, output{})
	case "BatchNorm1d":
		return newNorm(b, "batch", "", in, output{})
	case "LayerNorm":
		return newNorm(b, "layer", "", in, output{})
	case "DeepGCNLayer":
		r := &residual{}
		b.prefix = "conv."
		if o.Conv == "GCNConv" {
			r.conv = newGCN(b, in, out, output{keepDY: true})
		} else {
			r.conv = newSAGE(b, in, out, output{keepDY: true})
		}
		b.prefix = "norm."
		kind := map[string]string{"LayerNorm": "layer", "BatchNorm1d": "batch"}[o.Norm]
		r.norm = newNorm(b, kind, "", in, output{act: tensor.ReLU})
		return r
	}
	panic("golden: unknown layer " + g.Layer)
}

func (g *golden) aggregator(t *testing.T, dev tensor.Device) *Local {
	n := g.X.Shape[0]
	var src, dst []uint32
	if g.Graph != nil {
		n, src, dst = g.Graph.N, g.Graph.RawSrc, g.Graph.RawDst
	}
	csr, err := graph.FromEdges(n, src, dst, nil, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if g.EdgeAttr != nil {
		g.arrange(csr)
	}
	return NewLocal(NewTopology(dev, csr), false)
}

func (g *golden) edgeDim() int {
	if g.EdgeAttr == nil {
		return 0
	}
	return g.EdgeAttr.Shape[1]
}

// arrange gives edges their features: those of equal edges in the order they were given.
func (g *golden) arrange(csr *graph.CSR) {
	d := g.edgeDim()
	used := make([]bool, len(g.Graph.RawSrc))
	csr.EdgeDim, csr.EdgeFeatures = d, make([]float32, len(csr.Indices)*d)
	for v := range csr.Nodes() {
		for e := csr.Indptr[v]; e < csr.Indptr[v+1]; e++ {
			for i := range used {
				if !used[i] && int(g.Graph.RawDst[i]) == v && g.Graph.RawSrc[i] == csr.Indices[e] {
					used[i] = true
					for c := range d {
						csr.EdgeFeatures[int(e)*d+c] = float32(g.EdgeAttr.Data[i*d+c])
					}
					break
				}
			}
		}
	}
}

func upload(dev tensor.Device, a array) tensor.Matrix {
	r, c := a.Shape[0], 1
	if len(a.Shape) > 1 {
		c = a.Shape[1]
	}
	m := dev.New(dev.Type(), r, c)
	dev.Upload(m, a.Data)
	return m
}

func download(dev tensor.Device, m tensor.Matrix) []float64 {
	v := make([]float64, m.Rows*m.Cols)
	dev.Download(v, m)
	return v
}

// near fails unless got is want within tol, relative to the largest of want (and 1).
func near(t *testing.T, what string, got, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	scale := 1.0
	for _, w := range want {
		scale = max(scale, math.Abs(w))
	}
	for i := range got {
		if d := math.Abs(got[i] - want[i]); !(d <= tol*scale) {
			t.Fatalf("%s[%d] = %.12g, want %.12g (off by %.2g)", what, i, got[i], want[i], d)
		}
	}
}

// TestLayersAgreeWithPyG compares every layer, forward and backward, with values
// that PyG and torch computed (scripts/peers/golden.py).
func TestLayersAgreeWithPyG(t *testing.T) {
	for name, d := range devices(t) {
		for _, file := range []string{"gcn", "sage", "sagepool", "gat", "gatv2", "gin", "film", "edges", "norm",
			"res"} {
			for i, g := range readGolden[golden](t, file) {
				label := fmt.Sprintf("%s/%s/%d", name, file, i)
				if g.Graph != nil {
					label += "/" + g.Graph.Name
				}
				tol := d.tol
				if file == "edges" { // features of edges, and loops' means of them, are kept in single precision
					tol = max(tol, 1e-7)
				}
				t.Run(label, func(t *testing.T) { g.check(t, d.dev, tol) })
			}
		}
	}
}

func (g *golden) check(t *testing.T, dev tensor.Device, tol float64) {
	b := &builder{dev: dev, key: rng.New(1)}
	mod := g.module(b)
	used := g.load(t, dev, b)
	train := g.Layer != "BatchNorm1d" || g.Options.Training
	p := &Pass{Dev: dev, Agg: g.aggregator(t, dev), Train: train, Vertices: int64(g.X.Shape[0]), Rows: dev.Type()}
	x := upload(dev, g.X)
	y := mod.Forward(p, rows(x))
	var want array
	if err := json.Unmarshal(g.Y, &want); err != nil {
		t.Fatal(err)
	}
	near(t, "y", download(dev, y), want.Data, tol)
	for _, f := range b.buffers {
		if after, ok := g.BuffersAfter[f.Name]; ok {
			near(t, f.Name, download(dev, f.Value), after.Data, tol)
		}
	}
	if !train {
		return // evaluation has no backward pass
	}
	dx := mod.Backward(p, upload(dev, g.DY), true)
	near(t, "dx", download(dev, dx), g.DX.Data, tol)
	for _, param := range used {
		got := param.tensor(dev, param.Name, param.Grad)
		near(t, "d "+param.Name, got.Data, g.DParams[param.Name].Data, tol)
	}
}

// load sets the parameters of a case and returns those it names.
func (g *golden) load(t *testing.T, dev tensor.Device, b *builder) (used []*Param) {
	named := map[string]Tensor{}
	for name, a := range g.Params {
		named[name] = Tensor{Name: name, Shape: a.Shape, Data: a.Data}
	}
	for _, p := range b.params {
		if _, ok := named[p.Name]; !ok {
			continue // a case without bias
		}
		if err := p.load(dev, p.Value, named, p.Name); err != nil {
			t.Fatal(err)
		}
		used = append(used, p)
	}
	if len(used) != len(named) {
		t.Fatalf("the case has parameters %v, the layer %d of them", slices.Sorted(keys(named)), len(used))
	}
	for _, f := range b.buffers {
		if a, ok := g.Buffers[f.Name]; ok {
			dev.Upload(f.Value, a.Data)
		}
	}
	return used
}

func keys[V any](m map[string]V) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// TestLossesAgreeWithTorch compares values and gradients of the losses.
func TestLossesAgreeWithTorch(t *testing.T) {
	for name, d := range devices(t) {
		for i, g := range readGolden[golden](t, "loss") {
			t.Run(fmt.Sprintf("%s/%s/%d", name, g.Loss, i), func(t *testing.T) {
				logits := upload(d.dev, g.X)
				dl := d.dev.New(d.dev.Type(), logits.Rows, logits.Cols)
				rows := tensor.Indices(d.dev, g.Rows)
				scale := 1 / float64(len(g.Rows))
				var loss float64
				if g.Loss == "cross_entropy" {
					label := make([]uint32, len(g.Labels))
					for j, l := range g.Labels {
						label[j] = uint32(l)
					}
					loss = TakeLoss(d.dev, Classify{Labels: tensor.Indices(d.dev, label)}.Loss(d.dev, dl, logits, rows,
						scale))
				} else {
					loss = TakeLoss(d.dev, MultiLabel{Marks: upload(d.dev, g.Targets)}.Loss(d.dev, dl, logits, rows,
						scale))
				}
				var want float64
				if err := json.Unmarshal(g.Y, &want); err != nil {
					t.Fatal(err)
				}
				near(t, "loss", []float64{loss}, []float64{want}, d.tol)
				near(t, "dx", download(d.dev, dl), g.DX.Data, d.tol)
			})
		}
	}
}

// TestOptimisersAgreeWithTorch follows five steps of each optimiser.
func TestOptimisersAgreeWithTorch(t *testing.T) {
	type step struct {
		Optimizer string `json:"optimizer"`
		Options   struct {
			LR       float64   `json:"lr"`
			Decay    float64   `json:"weight_decay"`
			Momentum float64   `json:"momentum"`
			Betas    []float64 `json:"betas"`
			Eps      float64   `json:"eps"`
		} `json:"options"`
		Param array   `json:"param"`
		Grads []array `json:"grads"`
		After []array `json:"params_after"`
	}
	for name, d := range devices(t) {
		for i, g := range readGolden[step](t, "optim") {
			t.Run(fmt.Sprintf("%s/%s/%d", name, g.Optimizer, i), func(t *testing.T) {
				c := DefaultOptim()
				c.Name, c.LR, c.WeightDecay, c.Momentum = strings.ToLower(g.Optimizer), g.Options.LR, g.Options.Decay, g.Options.Momentum
				if g.Options.Betas != nil {
					c.Beta1, c.Beta2 = g.Options.Betas[0], g.Options.Betas[1]
				}
				if g.Options.Eps != 0 {
					c.Eps = g.Options.Eps
				}
				p := &Param{Name: "p", Value: upload(d.dev, g.Param), Grad: upload(d.dev, g.Param)}
				o := NewOptimiser(d.dev, []*Param{p}, c)
				for s := range g.Grads {
					d.dev.Upload(p.Grad, g.Grads[s].Data)
					o.Step(c.LR)
					near(t, fmt.Sprintf("step %d", s+1), download(d.dev, p.Value), g.After[s].Data, d.tol)
				}
			})
		}
	}
}

// TestSchedulesAgreeWithTorch compares learning rates epoch by epoch.
func TestSchedulesAgreeWithTorch(t *testing.T) {
	type sched struct {
		Schedule string             `json:"schedule"`
		Options  map[string]float64 `json:"options"`
		Base     float64            `json:"base_lr"`
		LR       []float64          `json:"lr"`
	}
	for _, g := range readGolden[sched](t, "schedule") {
		text := fmt.Sprintf("step:%g,%g", g.Options["step_size"], g.Options["gamma"])
		if g.Schedule == "CosineAnnealingLR" {
			text = fmt.Sprintf("cosine:%g,%g", g.Options["T_max"], g.Options["eta_min"])
		}
		s, err := ParseSchedule(text)
		if err != nil {
			t.Fatal(err)
		}
		for e, want := range g.LR {
			near(t, fmt.Sprintf("%s epoch %d", text, e), []float64{s.Rate(g.Base, e)}, []float64{want}, 1e-12)
		}
	}
}
