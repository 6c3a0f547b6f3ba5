package dgs

import (
	"context"
	"fmt"
	"slices"

	"starling/graph"
	"starling/nn"
	"starling/partition"
	"starling/rng"
	"starling/sample"
	"starling/tensor"
)

// explanation is DGS's explanation graph of a worker (§3.2.2) and GNNExplainer over it (Ying et al.,
// NeurIPS 2019): the core vertices, pooled to one vertex G by the mean of their features, linked
// with every remote vertex u in both directions and with itself. Masks σ(N) [remote] and σ(F)
// [columns] are learnt that keep the prediction of G:
//
//	x_u = σ(N_u) · σ(F) ⊙ features_u,   x_G = σ(F) ⊙ mean of features
//	loss = KL(h ‖ Φ(G)) + 0.5·mean σ(N) + 1·mean H(σ(N)) + 1·mean σ(F) + 0.1·mean H(σ(F))
//
// where Φ is the model at the weights given, h the mean of its predictions over the core, inferred
// over the part with the remote vertices' own features, and H the entropy of a coin. KL(h ‖ Φ) is
// what -MI(Y; masks) is up to the constant H(Y). Everything is a function of the part and the
// weights. It is used by one goroutine.
type explanation struct {
	dev    tensor.Device
	model  *nn.Model
	labels string // their kind
	rows   tensor.DType
	remote int
	cols   int
	x      []float32 // features of G and of the remote vertices, [1+remote, cols]
	star   *nn.Local
	part   *nn.Local
	core   int       // vertices whose predictions are inferred
	inputs []float32 // of these and of the remote vertices
	buffer []float64 // masked rows, and their gradients
}

// explained is what was learnt, values in (0, 1).
type explained struct {
	nodes, columns []float64
	epochs         int
	loss           float64
}

// explainOptions are how masks are learnt.
type explainOptions struct {
	nodes, columns bool // which of the masks
	epochs         int
	loss           float64 // at which it ends
}

var useCore = sample.Use("core vertices explained")

// vertexBytes is about what a vertex of the explanation takes: its features, their masked copy with
// its gradient, and activations with theirs.
func vertexBytes(c *nn.Config, size int) int64 {
	return int64(c.In)*(4+8+2*int64(size)) + 4*int64(c.Layers*(c.Hidden+c.Out)*size)
}

// explainedRemote are the vertices of a part's halo that fit into half of some bytes: those with
// the most edges into the core, by number in the partition, ascending.
func explainedRemote(p *partition.Part, bytes int64, each int64) []uint32 {
	core, edges := p.Core(), make([]int, len(p.Halo))
	for _, u := range p.In.Indices {
		if int(u) >= core {
			edges[int(u)-core]++
		}
	}
	order := make([]int, len(p.Halo))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return edges[b] - edges[a] })
	order = order[:min(len(order), int(bytes/2/max(each, 1)))]
	slices.Sort(order)
	out := make([]uint32, len(order))
	for i, at := range order {
		out[i] = p.Halo[at]
	}
	return out
}

// newExplanation makes the explanation graph of a part. remote has the features of the vertices
// listed, which explainedRemote chose for as many bytes.
func newExplanation(dev tensor.Device, p *partition.Part, own, remote *graph.Features, list []uint32, c nn.Config,
	rows tensor.DType, bytes int64, seed uint64) *explanation {
	c.Dropout, c.AttentionDropout, c.InputDropout = 0, 0, false
	x := &explanation{dev: dev, model: nn.New(dev, c, seed), labels: p.Labels.Kind(), rows: rows,
		remote: len(list), cols: own.Cols}
	x.x = make([]float32, (1+x.remote)*x.cols)
	copy(x.x, pooled(own))
	for i := range x.remote {
		remote.CopyRow(x.x[(1+i)*x.cols:(2+i)*x.cols], uint32(i))
	}
	x.star = nn.NewLocal(nn.NewTopology(dev, star(x.remote)), false)
	chosen := chosenCore(p, int(bytes/2/max(vertexBytes(&c, dev.Type().Size()), 1)), seed)
	x.core = len(chosen)
	for _, v := range chosen {
		row := make([]float32, x.cols)
		own.CopyRow(row, v)
		x.inputs = append(x.inputs, row...)
	}
	x.inputs = append(x.inputs, x.x[x.cols:]...)
	x.part = nn.NewLocal(nn.NewTopology(dev, inferred(p, chosen, list)), false)
	return x
}

// pooled is the mean of rows.
func pooled(f *graph.Features) []float32 {
	sum, row := make([]float64, f.Cols), make([]float32, f.Cols)
	for v := range f.Rows {
		f.CopyRow(row, uint32(v))
		for c, x := range row {
			sum[c] += float64(x)
		}
	}
	for c := range row {
		row[c] = float32(sum[c] / float64(max(f.Rows, 1)))
	}
	return row
}

// star links vertex 0 with itself and with all others, both ways.
func star(others int) *graph.CSR {
	g := &graph.CSR{Indptr: []int64{0}}
	for u := range uint32(others + 1) {
		g.Indices = append(g.Indices, u)
	}
	g.Indptr = append(g.Indptr, int64(others+1))
	for range others {
		g.Indices = append(g.Indices, 0)
		g.Indptr = append(g.Indptr, int64(len(g.Indices)))
	}
	return g
}

// chosenCore are at most most core vertices, at random, ascending.
func chosenCore(p *partition.Part, most int, seed uint64) []uint32 {
	all := rng.New(seed).Fold(useCore).Fold(uint64(p.Meta.Part)).Perm(p.Core())
	out := slices.Clone(all[:min(len(all), max(1, most))])
	slices.Sort(out)
	return out
}

// inferred is the part's graph of some core vertices and, after them, remote ones.
func inferred(p *partition.Part, core, remote []uint32) *graph.CSR {
	place := map[uint32]uint32{} // by number in the part
	for i, v := range core {
		place[v] = uint32(i)
	}
	for i, v := range remote {
		at, _ := slices.BinarySearch(p.Halo, v)
		place[uint32(p.Core()+at)] = uint32(len(core) + i)
	}
	g := &graph.CSR{Indptr: []int64{0}}
	for _, v := range core {
		for e := p.In.Indptr[v]; e < p.In.Indptr[v+1]; e++ {
			at, ok := place[p.In.Indices[e]]
			if !ok {
				continue
			}
			g.Indices = append(g.Indices, at)
			if p.In.Weights != nil {
				g.Weights = append(g.Weights, p.In.Weights[e])
			}
		}
		g.Indptr = append(g.Indptr, int64(len(g.Indices)))
	}
	for range remote {
		g.Indptr = append(g.Indptr, int64(len(g.Indices)))
	}
	return g
}

// explain learns masks from weights. Without epochs they are all one.
func (x *explanation) explain(ctx context.Context, weights []nn.Tensor, o explainOptions) (*explained, error) {
	if err := x.model.Load(x.dev, weights); err != nil {
		return nil, fmt.Errorf("the explainer's model: %w", err)
	}
	nodes := nn.NewMask(x.remote, o.nodes && o.epochs > 0, 0.5, 1)
	columns := nn.NewMask(x.cols, o.columns && o.epochs > 0, 1, 0.1)
	out := &explained{}
	target := nn.Standardized(x.infer(), x.model.TargetScale(x.dev)) // as in passes that train
	for out.epochs < o.epochs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		out.epochs++
		out.loss = x.step(target, nodes, columns) + nodes.Penalty() + columns.Penalty()
		if out.loss <= o.loss {
			break
		}
		nodes.Update(out.epochs)
		columns.Update(out.epochs)
	}
	out.nodes, out.columns = nodes.Value, columns.Value
	return out, nil
}

// infer is the mean of the predictions of the core's vertices.
func (x *explanation) infer() []float64 {
	n := x.core + x.remote
	in := x.dev.Scratch(x.dev.RowType(x.rows), n, x.cols)
	x.dev.Upload(in, x.inputs)
	logits := x.model.Forward(&nn.Pass{Dev: x.dev, Agg: x.part, Rows: x.rows}, nn.Input{Matrix: in})
	x.dev.Free(in)
	width := logits.Cols
	all := make([]float64, n*width)
	x.dev.Download(all, logits)
	x.dev.Free(logits)
	mean := make([]float64, width)
	for v := range x.core {
		for c, p := range nn.Predicted(all[v*width:(v+1)*width], x.labels) {
			mean[c] += p / float64(x.core)
		}
	}
	return mean
}

// step is the prediction's loss at the masks, whose gradients it sets.
func (x *explanation) step(target []float64, nodes, columns *nn.Mask) float64 {
	p := &nn.Pass{Dev: x.dev, Agg: x.star, Train: true, Rows: x.rows}
	x.buffer = slices.Grow(x.buffer[:0], len(x.x))[:len(x.x)]
	x.eachRow(nodes, func(row []float32, at int, m float64) {
		for c, f := range row {
			x.buffer[at+c] = m * columns.Value[c] * float64(f)
		}
	})
	in := x.dev.Scratch(x.dev.RowType(x.rows), 1+x.remote, x.cols)
	x.dev.Upload(in, x.buffer)
	x.model.ZeroGrad(x.dev)
	logits := x.model.Forward(p, nn.Input{Matrix: in})
	all := make([]float64, logits.Rows*logits.Cols)
	x.dev.Download(all, logits)
	loss, gradient := nn.Divergence(target, all[:logits.Cols], x.labels)
	clear(all)
	copy(all, gradient)
	x.dev.Upload(logits, all)
	dx := x.model.BackwardInput(p, logits)
	x.dev.Download(x.buffer, dx)
	x.dev.Free(dx)
	x.dev.Free(in)
	x.gradients(nodes, columns)
	return loss
}

// eachRow goes through the rows of the explanation graph with what each counts.
func (x *explanation) eachRow(nodes *nn.Mask, f func(row []float32, at int, m float64)) {
	for i := range 1 + x.remote {
		m := 1.0
		if i > 0 {
			m = nodes.Value[i-1]
		}
		f(x.x[i*x.cols:(i+1)*x.cols], i*x.cols, m)
	}
}

// gradients sets those of masks from that of the masked rows, in the buffer.
func (x *explanation) gradients(nodes, columns *nn.Mask) {
	clear(nodes.Gradient)
	clear(columns.Gradient)
	i := -1
	x.eachRow(nodes, func(row []float32, at int, m float64) {
		sum := 0.0
		for c, f := range row {
			if f == 0 {
				continue
			}
			g := x.buffer[at+c] * float64(f)
			columns.Gradient[c] += g * m
			sum += g * columns.Value[c]
		}
		if i >= 0 {
			nodes.Gradient[i] = sum
		}
		i++
	})
}

// close gives the device back.
func (x *explanation) close() { x.dev.Close() }

// bytes is what the explanation holds, and at most held on its device.
func (x *explanation) bytes() int64 {
	_, peak := x.dev.Usage()
	return peak + 4*int64(len(x.x)+len(x.inputs)) + 8*int64(cap(x.buffer))
}
