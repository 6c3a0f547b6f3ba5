package nn

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"starling/graph"
	"starling/rng"
	"starling/tensor"
	"starling/tensor/cpu"
	"starling/tensor/ref"
)

// randomGraph has about the given edges, with loops, repeats and isolated vertices.
func randomGraph(t *testing.T, n, edges int, key rng.Key, symmetric bool) *graph.CSR {
	t.Helper()
	var src, dst []uint32
	for i := range edges {
		// Leave the last fifth of the vertices alone.
		live := max(1, n*4/5)
		src = append(src, uint32(key.IntN(uint64(2*i), live)))
		dst = append(dst, uint32(key.IntN(uint64(2*i+1), live)))
	}
	if n == 0 {
		src, dst = nil, nil
	}
	g, err := graph.FromEdges(n, src, dst, nil, graph.BuildOptions{Symmetrize: symmetric})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// featured gives edges features that depend on their ends only, so that they follow when
// vertices change places.
func featured(g *graph.CSR, dim int, id func(row uint32) uint32) *graph.CSR {
	out := *g
	out.EdgeDim, out.EdgeFeatures = dim, make([]float32, dim*len(g.Indices))
	for v := range g.Nodes() {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			key := rng.New(77).Fold(uint64(id(uint32(v)))).Fold(uint64(id(g.Indices[e])))
			for c := range dim {
				out.EdgeFeatures[int(e)*dim+c] = float32(key.Normal(uint64(c)))
			}
		}
	}
	return &out
}

func itself(v uint32) uint32 { return v }

func randomMatrix(dev tensor.Device, rows, cols int, key rng.Key) tensor.Matrix {
	v := make([]float64, rows*cols)
	for i := range v {
		v[i] = key.Normal(uint64(i))
	}
	m := dev.New(dev.Type(), rows, cols)
	dev.Upload(m, v)
	return m
}

// configs are the models under test, small, with everything switched on.
func configs() []Config {
	base := Config{Layers: 2, Hidden: 6, Heads: 2, OutHeads: 1, Norm: "none", Aggregator: "mean", In: 5, Out: 3,
		Dropout: 0.3}
	with := func(f func(*Config)) Config {
		c := base
		f(&c)
		return c
	}
	return []Config{
		with(func(c *Config) { c.Model = "gcn" }),
		with(func(c *Config) { c.Model, c.Hidden, c.InputDropout = "gcn", 4, true }),
		with(func(c *Config) { c.Model, c.Norm, c.Layers = "gcn", "batch", 3 }),
		with(func(c *Config) { c.Model = "sage" }),
		with(func(c *Config) { c.Model, c.Norm = "sage", "layer" }),
		with(func(c *Config) { c.Model, c.Aggregator, c.Hidden = "sage", "gcn", 4 }),
		with(func(c *Config) { c.Model, c.AttentionDropout = "gat", 0.4 }),
		with(func(c *Config) { c.Model, c.OutHeads, c.InputDropout = "gat", 3, true }),
		with(func(c *Config) { c.Model = "sage-pool" }),
		with(func(c *Config) { c.Model, c.Norm = "sage-pool", "batch" }),
		with(func(c *Config) { c.Model, c.AttentionDropout = "gatv2", 0.4 }),
		with(func(c *Config) { c.Model, c.OutHeads, c.InputDropout = "gatv2", 3, true }),
		with(func(c *Config) { c.Model = "film" }),
		with(func(c *Config) { c.Model = "gin" }),
		with(func(c *Config) { c.Model, c.TrainEps = "gin", true }),
		with(func(c *Config) { c.Model, c.EdgeDim, c.AttentionDropout = "gat", 3, 0.4 }),
		with(func(c *Config) { c.Model, c.EdgeDim, c.OutHeads = "gatv2", 2, 3 }),
		with(func(c *Config) { c.Model, c.EdgeDim, c.TrainEps = "gin", 2, true }),
		with(func(c *Config) { c.Model, c.Norm, c.Layers = "resgcn+", "layer", 4 }),
		with(func(c *Config) { c.Model, c.Norm, c.Layers = "ressage+", "batch", 3 }),
		with(func(c *Config) { c.Model, c.Layers = "mlp", 3 }),
	}
}

func (c Config) label() string {
	return fmt.Sprintf("%s-%s-%s-h%d-o%d-in%v-eps%v-edges%d", c.Model, c.Norm, c.Aggregator, c.Hidden, c.OutHeads,
		c.InputDropout, c.TrainEps, c.EdgeDim)
}

// TestGradientsByFiniteDifferences nudges every parameter of every model on the
// float64 device and compares the change of the loss with its gradient.
func TestGradientsByFiniteDifferences(t *testing.T) {
	if testing.Short() {
		t.Skip("the reference's loops are the same on every architecture; emulated they are slow")
	}
	dev := ref.New()
	for _, c := range configs() {
		for _, features := range []string{"dense", "constant", "sparse"} {
			t.Run(c.label()+"/"+features, func(t *testing.T) { finiteDifferences(t, dev, c, features) })
		}
	}
}

func finiteDifferences(t *testing.T, dev tensor.Device, c Config, features string) {
	const n = 15
	key := rng.New(3)
	agg := NewLocal(NewTopology(dev, featured(randomGraph(t, n, 40, key, false), c.EdgeDim, itself)),
		features == "constant")
	x := testInput(dev, features, n, c.In, key.Fold(1))
	m := New(dev, c, 7)
	// Biases that start at zero leave ReLU at its kink on isolated vertices.
	for i, p := range m.Params {
		dev.Combine(p.Value, 1, p.Value, 0.1, randomMatrix(dev, p.Value.Rows, p.Value.Cols, key.Fold(uint64(100+i))))
	}
	label := make([]uint32, n)
	for i := range label {
		label[i] = uint32(key.Fold(2).IntN(uint64(i), c.Out))
	}
	task := Classify{Labels: tensor.Indices(dev, label)}
	some := tensor.Indices(dev, []uint32{0, 2, 3, 7, 14})
	loss := func() float64 {
		p := &Pass{Dev: dev, Agg: agg, Train: true, Vertices: n, Key: key}
		m.ZeroGrad(dev)
		logits := m.Forward(p, x)
		l := TakeLoss(dev, task.Loss(dev, logits, logits, some, 0.2))
		m.Backward(p, logits)
		return l
	}
	checkGradients(t, dev, m.Params, loss)
}

// checkGradients nudges every parameter and compares the change of the loss with the
// parameter's gradient, which loss leaves behind.
func checkGradients(t *testing.T, dev tensor.Device, params []*Param, loss func() float64) {
	t.Helper()
	loss()
	for _, p := range params {
		grad, value := download(dev, p.Grad), download(dev, p.Value)
		for i := range value {
			const h = 1e-6
			at := func(v float64) float64 {
				keep := value[i]
				value[i] = v
				dev.Upload(p.Value, value)
				value[i] = keep
				return loss()
			}
			slope := (at(value[i]+h) - at(value[i]-h)) / (2 * h)
			dev.Upload(p.Value, value)
			if math.Abs(slope-grad[i]) > 1e-5*max(1, math.Abs(slope)) {
				t.Fatalf("%s[%d]: gradient %.9g, by differences %.9g", p.Name, i, grad[i], slope)
			}
		}
	}
}

// testInput is features in one of the forms a dataset may have.
func testInput(dev tensor.Device, kind string, n, width int, key rng.Key) Input {
	if kind != "sparse" {
		return Input{Matrix: randomMatrix(dev, n, width, key), Constant: kind == "constant"}
	}
	// Row v has its entries at columns v%width and (v+2)%width.
	ptr, index, value := []int64{0}, []uint32{}, []float32{}
	for v := range n {
		for _, c := range []int{v % width, (v + 2) % width} {
			index = append(index, uint32(c))
			value = append(value, float32(key.Normal(uint64(len(value)))))
		}
		ptr = append(ptr, int64(len(index)))
	}
	s := tensor.NewSparse(dev, n, width, ptr, index, value)
	tptr, tindex, perm := []int64{0}, []uint32{}, []uint32{}
	for c := range width {
		for e, at := range index {
			if int(at) == c {
				tindex, perm = append(tindex, uint32(e/2)), append(perm, uint32(e))
			}
		}
		tptr = append(tptr, int64(len(tindex)))
	}
	return Input{Sparse: s, SparseT: tensor.Transpose(dev, s, tptr, tindex, perm), Constant: true}
}

// TestCPUFollowsReference trains every model on both devices and compares losses.
func TestCPUFollowsReference(t *testing.T) {
	cpu := cpu.New(2)
	defer cpu.Close()
	for _, c := range configs() {
		for _, features := range []string{"dense", "constant", "sparse"} {
			t.Run(c.label()+"/"+features, func(t *testing.T) {
				want := losses(t, ref.New(), c, features, tensor.F64)
				tol := 1e-4
				if c.Model == "gatv2" { // has gradients that are zero but for rounding, which Adam makes steps of
					tol = 2e-3
				}
				near(t, "loss", losses(t, cpu, c, features, tensor.F32), want, tol)
				if features != "sparse" {
					near(t, "bfloat16 loss", losses(t, cpu, c, features, tensor.BF16), want, 0.1)
				}
				if used, _ := cpu.Usage(); used > 4<<20 {
					t.Fatalf("%d bytes still in use: something is not freed", used)
				}
			})
		}
	}
}

// losses returns the losses of ten steps of Adam.
func losses(t *testing.T, dev tensor.Device, c Config, features string, store tensor.DType) (out []float64) {
	const n = 40
	key := rng.New(5)
	agg := NewLocal(NewTopology(dev, featured(randomGraph(t, n, 150, key, true), c.EdgeDim, itself)),
		features == "constant")
	x := testInput(dev, features, n, c.In, key.Fold(1))
	m := New(dev, c, 11)
	optim := NewOptimiser(dev, m.Params, DefaultOptim())
	label := make([]uint32, n)
	for i := range label {
		label[i] = uint32(i % c.Out)
	}
	task := Classify{Labels: tensor.Indices(dev, label)}
	every := tensor.Indices(dev, []uint32{0, 1, 2, 3, 5, 8, 13, 21, 34, 39})
	for e := range 10 {
		p := &Pass{Dev: dev, Agg: agg, Train: true, Vertices: n, Key: key.Fold(uint64(e)), Rows: store}
		m.ZeroGrad(dev)
		logits := m.Forward(p, x)
		out = append(out, TakeLoss(dev, task.Loss(dev, logits, logits, every, 0.1)))
		m.Backward(p, logits)
		optim.Step(0.01)
	}
	p := &Pass{Dev: dev, Agg: agg, Vertices: n, Rows: store}
	dev.Free(m.Forward(p, x)) // may compute what is constant, and keep it
	before, _ := dev.Usage()
	dev.Free(m.Forward(p, x))
	if after, _ := dev.Usage(); after != before {
		t.Fatalf("evaluation keeps %d bytes", after-before)
	}
	return out
}

// TestOddGraphs runs every model on graphs of no, one and only isolated vertices.
func TestOddGraphs(t *testing.T) {
	cpu := cpu.New(2)
	defer cpu.Close()
	for _, dev := range []tensor.Device{ref.New(), cpu} {
		for _, c := range configs() {
			for _, n := range []int{0, 1, 5} {
				g, err := graph.FromEdges(n, nil, nil, nil, graph.BuildOptions{})
				if err != nil {
					t.Fatal(err)
				}
				m := New(dev, c, 1)
				p := &Pass{Dev: dev, Agg: NewLocal(NewTopology(dev, featured(g, c.EdgeDim, itself)), false),
					Train: true, Vertices: int64(n)}
				x := rows(randomMatrix(dev, n, c.In, rng.New(2)))
				logits := m.Forward(p, x)
				if logits.Rows != n || logits.Cols != c.Out || !finite(dev, logits) {
					t.Fatalf("%s on %d lone vertices: %v, finite %v", c.label(), n, logits, finite(dev, logits))
				}
				m.Backward(p, logits)
			}
		}
	}
}

// TestVertexOrderDoesNotMatter relabels the vertices: each keeps its logits, dropout included.
func TestVertexOrderDoesNotMatter(t *testing.T) {
	dev := ref.New()
	const n = 20
	key := rng.New(8)
	perm := key.Fold(9).Perm(n) // vertex v moves to row perm[v]
	src, dst := make([]uint32, 60), make([]uint32, 60)
	for i := range src {
		src[i], dst[i] = uint32(key.IntN(uint64(2*i), n)), uint32(key.IntN(uint64(2*i+1), n))
	}
	for _, c := range configs() {
		feats := download(dev, randomMatrix(dev, n, c.In, key))
		logits := func(at []uint32) []float64 {
			ids, x := make([]uint32, n), make([]float64, len(feats))
			s, d := make([]uint32, len(src)), make([]uint32, len(dst))
			for v := range uint32(n) {
				ids[at[v]] = v
				copy(x[int(at[v])*c.In:], feats[int(v)*c.In:int(v+1)*c.In])
			}
			for i := range src {
				s[i], d[i] = at[src[i]], at[dst[i]]
			}
			g, err := graph.FromEdges(n, s, d, nil, graph.BuildOptions{})
			if err != nil {
				t.Fatal(err)
			}
			xm := dev.New(tensor.F64, n, c.In)
			dev.Upload(xm, x)
			g = featured(g, c.EdgeDim, func(row uint32) uint32 { return ids[row] })
			p := &Pass{Dev: dev, Agg: NewLocal(NewTopology(dev, g), false), Train: true, Vertices: n, Key: key,
				IDs: tensor.Indices(dev, ids)}
			y := download(dev, New(dev, c, 4).Forward(p, rows(xm)))
			out := make([]float64, len(y))
			for v := range n {
				copy(out[v*c.Out:(v+1)*c.Out], y[int(at[v])*c.Out:])
			}
			return out
		}
		same := make([]uint32, n)
		for v := range same {
			same[v] = uint32(v)
		}
		tol := 1e-12
		if c.EdgeDim > 0 {
			tol = 1e-7 // loops' means of edges' features are in single precision
		}
		near(t, c.label(), logits(perm), logits(same), tol)
	}
}

// finite reports whether all numbers of a matrix are.
func finite(dev tensor.Device, m tensor.Matrix) bool {
	host := make([]float64, m.Rows*m.Cols)
	dev.Download(host, m)
	return !slices.ContainsFunc(host, func(x float64) bool { return math.IsNaN(x) || math.IsInf(x, 0) })
}
