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

// explanation learns masks of remote vertices and of columns as GNNExplainer does (Ying et al., NeurIPS 2019): σ(N)
// [remote] and σ(F) [columns] keep predictions of the model at the weights given, with the penalties and the optimizer
// that it has published:
//
//	loss = KL(h ‖ Φ) + 0.005·Σ σ(N) + 1·mean H(σ(N)) + 1·mean σ(F) + 0.1·mean H(σ(F))
//
// where H is the entropy of a coin and h what the model predicts without masks. KL(h ‖ Φ) is what -MI(Y; masks) is up
// to the constant H(Y). What is explained is
//
//	star   DGS's explanation graph (§3.2.2): the core vertices, pooled to one vertex G by the mean of their features,
//	       linked with every remote vertex in both directions and with itself; x_u = σ(N_u)·σ(F)⊙features_u,
//	       x_G = σ(F)⊙mean; h is the mean of the core's predictions
//	part   the core vertices themselves, each with its own prediction and neighbours; KL is summed up, and masks count
//	       in remote rows alone
//
// A pooled vertex has the mean of all remote ones, so that each of n has 1/n of the gradient and the sum of masks
// outweighs it: all masks of a star become small alike.
//
// Masks go on from those of the explanation before, from half of each number θ. Everything is a function of the part,
// the weights and these. It is used by one goroutine.
type explanation struct {
	dev    tensor.Device
	model  *nn.Model
	labels string // their kind
	rows   tensor.DType
	part   *partition.Part
	star   bool
	seed   uint64
	most   int // own rows that fit
	own    *graph.Features
	pooled []float32 // features of G
	values []float32 // of the remote vertices, [remote, cols]
	remote int
	cols   int
	place  []int32 // of the part's halo among them; -1: not there
	whole  *sampled
	buffer []float64 // masked rows, and their gradients
}

// learnt are the numbers θ that masks σ(θ) go on from.
type learnt struct{ nodes, columns []float64 }

// explained is what was learnt, values in (0, 1).
type explained struct {
	nodes, columns []float64
	learnt         learnt
	epochs         int
	loss           float64
}

// explainOptions are how masks are learnt.
type explainOptions struct {
	nodes, columns bool // which of the masks
	epochs         int
	loss           float64 // at which it ends
	number         int     // which explanation it is
	rows           int     // that are sampled for it; 0: all
}

// sampled are vertices whose predictions are kept, and what these are made of: own rows, whose first are the vertices
// explained, and remote ones after them.
type sampled struct {
	agg     *nn.Local
	values  []float32
	own     int
	targets int
	remote  []int // which of the explanation's
}

var useCore = sample.Use("core vertices explained")

// The penalties that GNNExplainer has for edges and for features.
var (
	nodeCost   = nn.MaskCost{Size: 0.005, Sum: true, Entropy: 1, Each: true}
	columnCost = nn.MaskCost{Size: 1, Entropy: 0.1, Each: true}
)

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

// newExplanation makes the explanation of a part. remote has the features of the vertices
// listed, which explainedRemote chose for as many bytes.
func newExplanation(dev tensor.Device, p *partition.Part, own, remote *graph.Features, list []uint32, c nn.Config,
	rows tensor.DType, bytes int64, star bool, seed uint64) *explanation {
	c.Dropout, c.AttentionDropout, c.InputDropout = 0, 0, false
	x := &explanation{dev: dev, model: nn.New(dev, c, seed), labels: p.Labels.Kind(), rows: rows, part: p, star: star,
		seed: seed, own: own, pooled: pooled(own), remote: len(list), cols: own.Cols,
		most: int(bytes / 2 / max(vertexBytes(&c, dev.Type().Size()), 1))}
	x.values = make([]float32, x.remote*x.cols)
	for i := range x.remote {
		remote.CopyRow(x.values[i*x.cols:(i+1)*x.cols], uint32(i))
	}
	x.place = make([]int32, len(p.Halo))
	for i := range x.place {
		x.place[i] = -1
	}
	for i, v := range list {
		at, _ := slices.BinarySearch(p.Halo, v)
		x.place[at] = int32(i)
	}
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

// order are the core vertices in the order in which an explanation takes them.
func (x *explanation) order(number int) []uint32 {
	key := rng.New(x.seed).Fold(useCore).Fold(uint64(x.part.Meta.Part))
	if number > 0 {
		key = key.Fold(uint64(number))
	}
	return key.Perm(x.part.Core())
}

// sample returns the vertices of an explanation: all, or those that fit into some rows.
func (x *explanation) sample(o *explainOptions) *sampled {
	if o.rows == 0 || o.rows >= min(x.part.Core(), x.most)+x.remote {
		if x.whole == nil {
			all := x.order(0)
			core := slices.Clone(all[:min(len(all), max(1, x.most))])
			slices.Sort(core)
			remote := make([]int, x.remote)
			for i := range remote {
				remote[i] = i
			}
			x.whole = x.among(core, len(core), remote)
		}
		return x.whole
	}
	return x.among(x.neighbourhoods(o))
}

// neighbourhoods are core vertices at random, as many as fit with their in-neighbours: these first, then the core
// vertices among their neighbours, and the remote ones.
func (x *explanation) neighbourhoods(o *explainOptions) (core []uint32, targets int, remote []int) {
	var near []uint32
	seen := map[uint32]bool{}
	chosen := map[uint32]bool{}
	for _, v := range x.order(o.number) {
		if len(seen) >= min(o.rows, x.most) {
			break
		}
		if !x.meetsRemote(v) {
			continue
		}
		core, chosen[v], seen[v] = append(core, v), true, true
		for _, u := range x.part.In.Neighbors(v) {
			if len(seen) >= o.rows || seen[u] {
				continue
			}
			if int(u) < x.part.Core() {
				near, seen[u] = append(near, u), true
			} else if at := x.place[int(u)-x.part.Core()]; at >= 0 {
				remote, seen[u] = append(remote, int(at)), true
			}
		}
	}
	targets = len(core)
	for _, u := range near {
		if !chosen[u] {
			core = append(core, u)
		}
	}
	return core, targets, remote
}

// meetsRemote reports whether a core vertex hears from a remote one that has a mask.
func (x *explanation) meetsRemote(v uint32) bool {
	for _, u := range x.part.In.Neighbors(v) {
		if at := int(u) - x.part.Core(); at >= 0 && x.place[at] >= 0 {
			return true
		}
	}
	return false
}

// among is the part's graph of some core vertices and remote ones.
func (x *explanation) among(core []uint32, targets int, remote []int) *sampled {
	s := &sampled{own: len(core), targets: targets, remote: remote}
	place := map[uint32]uint32{} // by number in the part
	for i, v := range core {
		place[v] = uint32(i)
		row := make([]float32, x.cols)
		x.own.CopyRow(row, v)
		s.values = append(s.values, row...)
	}
	halo := make([]uint32, x.remote) // number in the part
	for at, i := range x.place {
		if i >= 0 {
			halo[i] = uint32(x.part.Core() + at)
		}
	}
	for i, r := range remote {
		place[halo[r]] = uint32(len(core) + i)
		s.values = append(s.values, x.values[r*x.cols:(r+1)*x.cols]...)
	}
	s.agg = nn.NewLocal(nn.NewTopology(x.dev, inside(x.part.In, core, place, len(remote))), false)
	return s
}

// inside is a graph of vertices by their places, and of some more that hear nothing.
func inside(in *graph.CSR, core []uint32, place map[uint32]uint32, more int) *graph.CSR {
	g := &graph.CSR{Indptr: []int64{0}}
	for _, v := range core {
		for e := in.Indptr[v]; e < in.Indptr[v+1]; e++ {
			at, ok := place[in.Indices[e]]
			if !ok {
				continue
			}
			g.Indices = append(g.Indices, at)
			if in.Weights != nil {
				g.Weights = append(g.Weights, in.Weights[e])
			}
		}
		g.Indptr = append(g.Indptr, int64(len(g.Indices)))
	}
	for range more {
		g.Indptr = append(g.Indptr, int64(len(g.Indices)))
	}
	return g
}

// starOf is the star of a sample's remote vertices.
func (x *explanation) starOf(s *sampled) *sampled {
	out := &sampled{own: 1, targets: 1, remote: s.remote, values: slices.Clone(x.pooled)}
	out.values = append(out.values, s.values[s.own*x.cols:]...)
	out.agg = nn.NewLocal(nn.NewTopology(x.dev, star(len(s.remote))), false)
	return out
}

// explain learns masks from weights and the masks before, if any. Without epochs they are all one.
func (x *explanation) explain(ctx context.Context, weights []nn.Tensor, from learnt, o explainOptions) (*explained,
	error) {
	if err := x.model.Load(x.dev, weights); err != nil {
		return nil, fmt.Errorf("the explainer's model: %w", err)
	}
	all := learnt{make([]float64, x.remote), make([]float64, x.cols)}
	copy(all.nodes, from.nodes)
	copy(all.columns, from.columns)
	s, out := x.sample(&o), &explained{learnt: all}
	nodes := nn.NewMask(len(s.remote), o.nodes && o.epochs > 0, nodeCost)
	columns := nn.NewMask(x.cols, o.columns && o.epochs > 0, columnCost)
	nodes.Begin(halved(picked(all.nodes, s.remote)))
	columns.Begin(halved(all.columns))
	target := x.infer(s)
	if x.star {
		target, s = mean(target), x.starOf(s)
	}
	for out.epochs < o.epochs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		out.epochs++
		before := out.loss
		out.loss = x.step(s, target, nodes, columns) + nodes.Penalty() + columns.Penalty()
		if out.loss <= o.loss || out.epochs > 1 && o.loss > 0 && before-out.loss < o.loss*before {
			break
		}
		nodes.Update(out.epochs)
		columns.Update(out.epochs)
	}
	for i, theta := range nodes.Theta() {
		all.nodes[s.remote[i]] = theta
	}
	copy(all.columns, columns.Theta())
	out.nodes = filled(nn.MaskOf(all.nodes, o.nodes && o.epochs > 0).Value, all.nodes)
	out.columns = nn.MaskOf(all.columns, o.columns && o.epochs > 0).Value
	return out, nil
}

// filled gives the masks that no sample had, whose numbers θ are zero, the mean of the others.
func filled(masks, theta []float64) []float64 {
	sum, n := 0.0, 0.0
	for i, m := range masks {
		if theta[i] != 0 {
			sum, n = sum+m, n+1
		}
	}
	for i := range masks {
		if theta[i] == 0 && n > 0 {
			masks[i] = sum / n
		}
	}
	return masks
}

// halved are numbers θ that masks go on from: large ones, whose σ is flat, would hardly change again.
func halved(theta []float64) []float64 {
	out := make([]float64, len(theta))
	for i, t := range theta {
		out[i] = t / 2
	}
	return out
}

// picked are some of a list.
func picked(list []float64, which []int) []float64 {
	out := make([]float64, len(which))
	for i, at := range which {
		out[i] = list[at]
	}
	return out
}

// infer is what the model predicts of a sample's first vertices, as it learns it.
func (x *explanation) infer(s *sampled) (out [][]float64) {
	n := len(s.values) / max(x.cols, 1)
	in := x.dev.Scratch(x.dev.RowType(x.rows), n, x.cols)
	x.dev.Upload(in, s.values)
	logits := x.model.Forward(&nn.Pass{Dev: x.dev, Agg: s.agg, Rows: x.rows}, nn.Input{Matrix: in})
	x.dev.Free(in)
	width := logits.Cols
	all := make([]float64, n*width)
	x.dev.Download(all, logits)
	x.dev.Free(logits)
	for v := range s.targets {
		p := nn.Predicted(all[v*width:(v+1)*width], x.labels)
		out = append(out, nn.Standardized(p, x.model.TargetScale(x.dev)))
	}
	return out
}

// mean returns the mean of some predictions.
func mean(of [][]float64) [][]float64 {
	if len(of) == 0 {
		return nil
	}
	out := make([]float64, len(of[0]))
	for _, p := range of {
		for c, y := range p {
			out[c] += y / float64(len(of))
		}
	}
	return [][]float64{out}
}

// step is the predictions' loss at the masks, whose gradients it sets.
func (x *explanation) step(s *sampled, target [][]float64, nodes, columns *nn.Mask) (loss float64) {
	p := &nn.Pass{Dev: x.dev, Agg: s.agg, Train: true, Rows: x.rows}
	x.buffer = slices.Grow(x.buffer[:0], len(s.values))[:len(s.values)]
	x.eachRow(s, nodes, func(row []float32, at int, m float64, masked bool) {
		for c, f := range row {
			x.buffer[at+c] = float64(f)
			if masked {
				x.buffer[at+c] *= m * columns.Value[c]
			}
		}
	})
	in := x.dev.Scratch(x.dev.RowType(x.rows), s.own+len(s.remote), x.cols)
	x.dev.Upload(in, x.buffer)
	x.model.ZeroGrad(x.dev)
	logits := x.model.Forward(p, nn.Input{Matrix: in})
	all := make([]float64, logits.Rows*logits.Cols)
	x.dev.Download(all, logits)
	for v := range target {
		row := all[v*logits.Cols : (v+1)*logits.Cols]
		kl, gradient := nn.Divergence(target[v], row, x.labels)
		loss += kl
		copy(row, gradient)
	}
	clear(all[len(target)*logits.Cols:])
	x.dev.Upload(logits, all)
	dx := x.model.BackwardInput(p, logits)
	x.dev.Download(x.buffer, dx)
	x.dev.Free(dx)
	x.dev.Free(in)
	x.gradients(s, nodes, columns)
	return loss
}

// eachRow goes through the rows of a sample with what each counts.
func (x *explanation) eachRow(s *sampled, nodes *nn.Mask, f func(row []float32, at int, m float64, masked bool)) {
	for i := range s.own + len(s.remote) {
		m := 1.0
		if i >= s.own {
			m = nodes.Value[i-s.own]
		}
		f(s.values[i*x.cols:(i+1)*x.cols], i*x.cols, m, x.star || i >= s.own)
	}
}

// gradients sets those of masks from that of the masked rows, in the buffer.
func (x *explanation) gradients(s *sampled, nodes, columns *nn.Mask) {
	clear(nodes.Gradient)
	clear(columns.Gradient)
	i := -s.own
	x.eachRow(s, nodes, func(row []float32, at int, m float64, masked bool) {
		sum := 0.0
		for c, f := range row {
			if f == 0 || !masked {
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
	return peak + 4*int64(2*len(x.values)) + 8*int64(cap(x.buffer))
}
