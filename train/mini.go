package train

import (
	"context"
	"fmt"
	"math"
	"runtime"

	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/rng"
	"starling/sample"
	"starling/tensor"
)

// MiniOptions say how mini-batches are drawn.
type MiniOptions struct {
	Sampler string // one of Samplers
	// Size is how many training vertices make a batch; of subgraphs how many vertices
	// are drawn (saint-node), edges (saint-edge), walks begun (saint-walk), or about how
	// many vertices the clusters of a batch have together (cluster).
	Size int
	// Fanouts of the layers, from the roots' on; draws a layer for fastgcn and ladies.
	Fanouts []int
	// Replace and Weighted are neighbour's.
	Replace, Weighted bool
	// Clusters is how many the graph is cut into (cluster); 0: so many that ten make
	// a batch, but of at least 150 vertices.
	Clusters int
	// WalkLength is saint-walk's; 0: the model's layers.
	WalkLength int
	// Threads is how many sample at once; 0: one a core.
	Threads int

	rehearsed int // epochs of a run whose memory is to be known, from a few batches; 0: none
}

// Samplers are the names that MiniOptions.Sampler may have.
var Samplers = []string{"neighbour", "fastgcn", "ladies", "cluster", "saint-node", "saint-edge", "saint-walk"}

// clusterSize is about Cluster-GCN's own for Reddit, 1500 clusters.
const clusterSize = 150

// Method makes the sampler's method ready for a graph.
func (m *MiniOptions) Method(ctx context.Context, g *graph.CSR, roots []uint32, layers int, byID bool, seed uint64) (sample.Method, error) {
	switch m.Sampler {
	case "neighbour":
		n := &sample.Neighbour{Graph: g, Roots: roots, Size: m.Size, Fanouts: m.Fanouts, Replace: m.Replace, Weighted: m.Weighted, ByID: byID, Seed: seed}
		return n.Prepare()
	case "fastgcn":
		return sample.NewFastGCN(g, roots, m.Size, m.Fanouts, seed)
	case "ladies":
		return sample.NewLADIES(g, roots, m.Size, m.Fanouts, seed)
	case "cluster":
		k := m.clusters(g.Nodes())
		return sample.NewCluster(ctx, g, roots, k, int(math.Round(float64(m.Size)*float64(k)/float64(g.Nodes()))), seed)
	case "saint-node":
		return sample.NewSAINTNodes(g, roots, m.Size, seed)
	case "saint-edge":
		if g.Edges() == 0 {
			return nil, mistaken("sampler saint-edge draws edges, and the graph has none; use --sampler saint-node or neighbour")
		}
		return sample.NewSAINTEdges(g, roots, m.Size, seed)
	case "saint-walk":
		length := m.WalkLength
		if length == 0 {
			length = layers
		}
		if m.rehearsed > 0 {
			return sample.UncountedSAINTWalks(g, roots, m.Size, length, seed), nil
		}
		return sample.NewSAINTWalks(g, roots, m.Size, length, seed)
	}
	return nil, fmt.Errorf("sampler %q is not one of %v", m.Sampler, Samplers)
}

// clusters is how many a graph of n vertices is cut into.
func (m *MiniOptions) clusters(n int) int {
	if m.Clusters > 0 {
		return m.Clusters
	}
	return max(1, min(n/clusterSize, 10*n/m.Size))
}

// before says what takes a while before the first epoch.
func (m *MiniOptions) before(n int) string {
	switch m.Sampler {
	case "cluster":
		return "cutting the graph into " + event.Counted(m.clusters(n), "cluster")
	case "saint-walk":
		return "counting how often walks meet vertices and edges"
	}
	return ""
}

// Mini trains on mini-batches of a graph in this process: an epoch is a step for
// each batch. Batches are sampled ahead on other cores. Measuring goes over the
// whole graph with all neighbours, layer by layer, so that its memory does not
// grow with the number of layers.
//
// An epoch of one batch with all neighbours is an epoch of Full.
func Mini(ctx context.Context, dev tensor.Device, data *graph.Dataset, opt Options, mini MiniOptions, events event.Listener) (*Result, error) {
	if events == nil {
		events = event.All()
	}
	whole := opt
	whole.Inductive = false // what is trained on is ours to choose
	s, err := wholeGraph(dev, data, whole)
	if err != nil {
		return nil, err
	}
	f, err := newLoop(dev, s, alone{}, opt, events)
	if err != nil {
		return nil, err
	}
	g := data.Graph
	if opt.Inductive {
		g = g.Subgraph(marked(g.Nodes(), data.Splits.Train))
	}
	m, err := newMini(ctx, f, seen(g, opt), data, mini)
	if err != nil {
		return nil, err
	}
	defer m.ahead.stop()
	f.train = m.epoch
	events.On(event.Started{Dataset: data.Meta.Name, Model: opt.Model.Model, Strategy: "none", Workers: 1,
		Vertices: int64(data.Graph.Nodes()), Edges: data.Graph.Edges(), Parameters: f.model.Size(),
		FirstEpoch: f.state.Epoch, Epochs: opt.Epochs, Metric: f.task.Name()})
	return f.run(ctx)
}

// seen is a graph without features of edges if the model looks at none: samplers then
// need not say which edges they drew.
func seen(g *graph.CSR, opt Options) *graph.CSR {
	if opt.Model.EdgeDim > 0 || g.EdgeDim == 0 {
		return g
	}
	plain := *g
	plain.EdgeDim, plain.EdgeFeatures = 0, nil
	return &plain
}

// marked has true for the vertices listed.
func marked(n int, ids []uint32) []bool {
	m := make([]bool, n)
	for _, v := range ids {
		m[v] = true
	}
	return m
}

// mini is a loop's training on mini-batches.
type mini struct {
	*loop
	batches int
	few     bool // a rehearsal: batches without roots take memory as well
	ahead   *ahead
	on      *onBlocks
}

func newMini(ctx context.Context, f *loop, g *graph.CSR, data *graph.Dataset, mo MiniOptions) (*mini, error) {
	convs := f.model.Convs()
	if layered := len(mo.Fanouts); (mo.Sampler == "neighbour" || mo.Sampler == "fastgcn" || mo.Sampler == "ladies") && layered != convs {
		return nil, fmt.Errorf("%d fanouts for a model of %d graph layers; give one a layer", layered, convs)
	}
	weighs := mo.Weighted || mo.Sampler != "neighbour" && mo.Sampler != "cluster"
	if f.opt.Model.Model == "gin" && f.opt.Model.EdgeDim > 0 && weighs && mo.rehearsed == 0 { // then it is in the place of cluster
		return nil, mistaken("sampler %s makes each edge count by what it drew, and with --edge-features gin does not weigh its edges; use --sampler neighbour without --weighted, or cluster, or --model gat", mo.Sampler)
	}
	if text := mo.before(g.Nodes()); text != "" {
		f.events.On(event.Note{Minor: true, Text: text})
	}
	method, err := mo.Method(ctx, g, data.Splits.Train, convs, readsDirectly(f), f.opt.Seed)
	if err != nil {
		return nil, err
	}
	return f.onBatches(method, g, data.Features, data.Labels, mo), nil
}

// onBatches has batches of a method sampled, of which a rehearsal takes a few.
func (f *loop) onBatches(method sample.Method, g *graph.CSR, features *graph.Features, labels *graph.Labels, mo MiniOptions) *mini {
	if f.opt.RowNormalise && features.Kind() == graph.Sparse {
		features = features.RowNormalise()
	}
	threads := mo.Threads
	if threads == 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	on := newBlocks(f.dev, g, f.x.Matrix)
	host := newHostSide(f, g, features, labels, on.loops)
	m := &mini{loop: f, batches: method.Batches(), few: mo.rehearsed > 0, on: on}
	if m.few {
		m.batches = min(m.batches, 32)
	}
	m.ahead = newAhead(method, host, f.state.Epoch, max(f.opt.Epochs, mo.rehearsed), threads)
	return m
}

// readsDirectly reports whether the first layer only sums features that are the
// same in every batch: they are then read where they lie, not gathered.
func readsDirectly(f *loop) bool {
	if f.x.Sparse != nil {
		return false
	}
	t := f.model.Traffic(false, true, true)
	return len(t) > 0 && t[0].Once > 0
}

// epoch is a step for every batch. It returns the mean loss of the roots, each at
// the weights of its step.
func (m *mini) epoch(epoch int, lr float64) (float64, error) {
	sum, roots := 0.0, 0
	m.each(epoch, func(b *ready) {
		if len(b.Roots) > 0 || m.few {
			sum += m.batch(b, lr)
			roots += len(b.Roots)
		}
	})
	switch {
	case roots > 0:
		return sum / float64(roots), nil
	case !m.few:
		return 0, mistaken("no batch of epoch %d has a training vertex; use a larger --batch-size", epoch)
	}
	return 0, nil
}

// each is what an epoch does: it waits for its batches, one after the other.
func (m *mini) each(epoch int, do func(b *ready)) {
	batches := m.batches
	if m.few && epoch > 0 { // it only shows what is there beside a batch
		batches = 1
	}
	for range batches {
		wait := m.spans("wait")("batch")
		b := m.ahead.next()
		wait()
		do(b)
		m.ahead.release(b)
	}
	if m.few {
		m.ahead.fill()
	}
}

// batch is one step. It returns the sum of the roots' losses.
func (m *mini) batch(b *ready, lr float64) float64 {
	return m.step(b, lr, func(_ *nn.Pass, logits tensor.Matrix) (tensor.Matrix, float64) {
		loss := b.task(m.dev).Loss(m.dev, logits, logits, m.dev.Indices(b.Roots), b.Scale)
		return m.on.weigh(logits), loss
	}) / b.Scale
}

// step is forward, backward and update over a batch. learn returns the gradient of
// the last layer's rows, which may be in their place, and the loss.
func (m *mini) step(b *ready, lr float64, learn func(p *nn.Pass, rows tensor.Matrix) (tensor.Matrix, float64)) float64 {
	m.on.begin(b)
	defer m.on.end()
	gather := m.spans("step")("gather")
	x := b.input(m.dev, m.x, m.opt)
	gather()
	p := &nn.Pass{Dev: m.dev, Agg: m.on, Train: true, Fewer: true, Rows: m.opt.Rows, IDs: m.dev.Indices(b.Vertices), Key: passKey(m.opt.Seed, b.Epoch, b.Number)}
	m.model.ZeroGrad(m.dev)
	end := m.spans("step")("forward")
	rows := m.model.Forward(p, x)
	end()
	drows, loss := learn(p, rows)
	if !tensor.Same(drows, rows) {
		m.dev.Free(rows)
	}
	end = m.spans("step")("backward")
	m.model.Backward(p, drows)
	end()
	b.freeInput(m.dev, x)
	end = m.spans("step")("update")
	m.optim.Step(lr)
	end()
	return loss
}

// passKey is that of a batch's dropout. The first batch has the epoch's, which is
// full-graph training's: with one batch they are the same run.
func passKey(seed uint64, epoch, number int) rng.Key {
	key := rng.New(seed).Fold(uint64(epoch))
	if number > 0 {
		key = key.Fold(1<<32 + uint64(number))
	}
	return key
}
