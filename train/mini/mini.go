// Package mini is mini-batch training: an epoch is a step for each batch.
package mini

import (
	"context"
	"fmt"
	"runtime"

	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/rng"
	"starling/sample"
	"starling/tensor"
	"starling/train"
)

// Options say how mini-batches are drawn.
type Options struct {
	Sampler string // one of Samplers
	// Size is how many training vertices make a batch; of subgraphs how many vertices
	// are drawn (saint-node), edges (saint-edge), walks begun (saint-walk), or about how
	// many vertices the clusters of a batch have together (cluster).
	Size int
	// Fanouts of the layers, from the seed vertices' on; draws per layer for fastgcn and
	// ladies.
	Fanouts []int
	// Replace and Weighted are neighbour's.
	Replace, Weighted bool
	// Clusters is how many the graph is cut into (cluster); 0: so many that ten make
	// a batch, but of at least 150 vertices.
	Clusters int
	// WalkLength is saint-walk's; 0: the model's layers.
	WalkLength int
	// Threads is how many sample at once; 0: one per core.
	Threads int

	dry int // epochs of a run whose memory is to be known, from a few batches; 0: none
}

// Samplers are the names that Options.Sampler may have.
var Samplers = []string{"neighbour", "fastgcn", "ladies", "cluster", "cluster-local", "saint-node", "saint-edge",
	"saint-walk"}

// clusterSize is about Cluster-GCN's own for Reddit, 1500 clusters.
const clusterSize = 150

// Method makes the sampler's method ready for a graph.
func (m *Options) Method(ctx context.Context, g *graph.CSR, seeds []uint32, layers int, byID bool,
	seed uint64) (sample.Method, error) {
	switch m.Sampler {
	case "neighbour":
		n := &sample.Neighbour{Graph: g, SeedVertices: seeds, Size: m.Size, Fanouts: m.Fanouts, Replace: m.Replace,
			Weighted: m.Weighted, ByID: byID, Seed: seed}
		return n.Prepare()
	case "fastgcn":
		return sample.NewFastGCN(g, seeds, m.Size, m.Fanouts, seed)
	case "ladies":
		return sample.NewLADIES(g, seeds, m.Size, m.Fanouts, seed)
	case "cluster", "cluster-local": // the part of one worker is the graph
		k := m.clusters(g.Nodes())
		return sample.NewCluster(ctx, g, seeds, k, m.clustersEach(k, g.Nodes()), seed)
	case "saint-node":
		return sample.NewSAINTNodes(g, seeds, m.Size, seed)
	case "saint-edge":
		if g.Edges() == 0 {
			return nil, errNoEdges()
		}
		return sample.NewSAINTEdges(g, seeds, m.Size, seed)
	case "saint-walk":
		length := m.walkLength(layers)
		if m.dry > 0 {
			return sample.UncountedSAINTWalks(g, seeds, m.Size, length, seed), nil
		}
		return sample.NewSAINTWalks(g, seeds, m.Size, length, seed)
	}
	return nil, fmt.Errorf("sampler %q is not one of %v", m.Sampler, Samplers)
}

func errNoEdges() error {
	return train.Mistake("sampler saint-edge draws edges, and the graph has none; use --sampler saint-node or " +
		"neighbour")
}

// layered reports whether there are fanouts for each layer.
func (m *Options) layered() bool {
	return m.Sampler == "neighbour" || m.Sampler == "fastgcn" || m.Sampler == "ladies"
}

// walkLength is that of walks for a model of so many layers.
func (m *Options) walkLength(layers int) int {
	if m.WalkLength == 0 {
		return layers
	}
	return m.WalkLength
}

// inClusters reports whether batches are clusters.
func (m *Options) inClusters() bool { return m.Sampler == "cluster" || m.Sampler == "cluster-local" }

// checkWeighs refuses samplers that make edges count differently for a model that does not look at
// that.
func (m *Options) checkWeighs(o train.Options) error {
	weighs := m.Weighted || m.Sampler != "neighbour" && !m.inClusters()
	// In a dry run the sampler stands in for cluster, which weighs nothing.
	if o.Model.Model == "gin" && o.Model.EdgeDim > 0 && weighs && m.dry == 0 {
		return train.Mistake("sampler %s makes each edge count by what it drew, and with --edge-features gin does not "+
			"weigh its edges; use --sampler neighbour without --weighted, or cluster, or --model gat", m.Sampler)
	}
	return nil
}

// threads is how many draw batches.
func (m *Options) threads() int {
	if m.Threads > 0 {
		return m.Threads
	}
	return runtime.GOMAXPROCS(0)
}

// clusters is how many a graph of n vertices is cut into.
func (m *Options) clusters(n int) int {
	if m.Clusters > 0 {
		return m.Clusters
	}
	return max(1, min(n/clusterSize, 10*n/m.Size))
}

// before says what takes a while before the first epoch.
func (m *Options) before(n int) string {
	switch m.Sampler {
	case "cluster", "cluster-local":
		return "cutting the graph into " + event.Counted(m.clusters(n), "cluster")
	case "saint-walk":
		return "counting how often walks meet vertices and edges"
	}
	return ""
}

// Run trains on mini-batches of a graph in this process: an epoch is a step for each
// batch. Batches are sampled on other cores before they are needed. Measuring goes over the
// whole graph with all neighbours, layer by layer, so that its memory does not grow with
// the number of layers.
//
// An epoch of one batch with all neighbours is an epoch of train.Full.
func Run(ctx context.Context, dev tensor.Device, data *graph.Dataset, opt train.Options, mini Options,
	events event.Listener) (*train.Result, error) {
	if events == nil {
		events = event.All()
	}
	whole := opt
	whole.Inductive = false // what is trained on is ours to choose
	s, err := train.WholeGraph(dev, data, whole)
	if err != nil {
		return nil, err
	}
	f, err := train.NewLoop(dev, s, train.Alone{}, opt, events)
	if err != nil {
		return nil, err
	}
	g := data.Graph
	if opt.Inductive {
		g = g.Subgraph(marked(g.Nodes(), data.Splits.Train))
	}
	m, err := newBatches(ctx, f, seen(g, opt), data, mini)
	if err != nil {
		return nil, err
	}
	defer m.prefetch.stop()
	f.TrainEpoch = m.epoch
	events.On(event.Started{Dataset: data.Meta.Name, Model: opt.Model.Model, Strategy: "none", Workers: 1,
		Vertices: int64(data.Graph.Nodes()), Edges: data.Graph.Edges(), Parameters: f.Model.Size(),
		FirstEpoch: f.State.Epoch, Epochs: opt.Epochs, Metric: f.Task.Name()})
	return f.Run(ctx)
}

// DryRun is the memory dry run of Run, on a few batches.
func DryRun(ctx context.Context, dev tensor.Device, data *graph.Dataset, opt train.Options, mini Options,
	events event.Listener) (*train.Needs, error) {
	mini.dry = opt.Epochs
	if mini.inClusters() { // as many vertices, without cutting the graph
		mini.Sampler = "saint-node"
	}
	r, err := Run(ctx, dev, data, train.DryOptions(opt), mini, events)
	if err != nil {
		return nil, err
	}
	return &train.Needs{Parameters: r.Parameters}, nil
}

// seen is a graph without features of edges if the model looks at none: samplers then
// need not say which edges they drew.
func seen(g *graph.CSR, opt train.Options) *graph.CSR {
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

// batches is a loop's training on mini-batches.
type batches struct {
	*train.Loop
	count    int
	few      bool  // a memory dry run: batches without seed vertices take memory as well
	joined   bool  // other workers have batches too: all take every step
	dry      bool  // the same of several workers: all buffers are filled
	held     int64 // bytes of the largest batch in a buffer, of such
	prefetch source
	on       *onBlocks
	feeder   tensor.Feeder // brings the next batch while this one is computed; nil: none does
	together *coBlocks     // of batches that workers of a server compute together
	// embeddings are learnt beside the features; nil: none.
	embeddings *embeddings
	// stepped, if set, is told of every step that is done.
	stepped func(epoch, number int)
}

func newBatches(ctx context.Context, f *train.Loop, g *graph.CSR, data *graph.Dataset, mo Options) (*batches, error) {
	convs := f.Model.Convs()
	if mo.layered() && len(mo.Fanouts) != convs {
		return nil, fmt.Errorf("%d fanouts for a model of %d graph layers; give one per layer", len(mo.Fanouts), convs)
	}
	if err := mo.checkWeighs(f.Opt); err != nil {
		return nil, err
	}
	if text := mo.before(g.Nodes()); text != "" {
		f.Events.On(event.Note{Minor: true, Text: text})
	}
	method, err := mo.Method(ctx, g, data.Splits.Train, convs, readsDirectly(f), f.Opt.Seed)
	if err != nil {
		return nil, err
	}
	return onMethod(f, method, g, data.Features, data.Labels, mo), nil
}

// onMethod has batches of a method sampled, of which a memory dry run takes a few.
func onMethod(f *train.Loop, method sample.Method, g *graph.CSR, features *graph.Features, labels *graph.Labels,
	mo Options) *batches {
	if f.Opt.RowNormalize && features.Kind() == graph.Sparse {
		features = features.RowNormalize()
	}
	on := newBlocks(f.Dev, g, f.X.Matrix)
	host := newHostSide(f, g, features, labels, on.loops)
	host.kind, host.degrees = kindOf(f), on.degrees
	m := &batches{Loop: f, count: method.Batches(), few: mo.dry > 0, on: on}
	if labels != nil {
		m.feeds(host)
	}
	if m.few {
		m.count = min(m.count, 32)
	}
	var drawers []drawer
	for range mo.threads() {
		drawers = append(drawers, localDrawer{method.Sampler()})
	}
	m.prefetch = newPrefetcher(method.Batches(), len(drawers), drawers, host, f.State, max(f.Opt.Epochs, mo.dry))
	return m
}

// readsDirectly reports whether the first layer only sums features that are the
// same in every batch: they are then read in place, not gathered.
func readsDirectly(f *train.Loop) bool {
	if f.X.Sparse != nil || f.Opt.HostFeatures { // each row goes over the bus once
		return false
	}
	t := f.Model.Traffic(false, true, true)
	return len(t) > 0 && t[0].Once > 0
}

// epoch is a step for every batch. It returns the mean loss of the seed vertices, each at
// the weights of its step.
func (m *batches) epoch(epoch int, lr float64) (float64, error) {
	sum := []float64{0, 0} // losses, and of how many seed vertices
	var late losses
	err := m.each(epoch, m.Resumed(epoch, sum), func(b *batch) error {
		if b.empty || len(b.Seeds) == 0 && !m.few && !m.joined {
			return nil
		}
		loss, err := m.trainOn(b, lr)
		if err != nil {
			return err
		}
		late = append(late, lossOf{loss, b.Scale})
		sum[1] += float64(len(b.Seeds))
		m.done(epoch, b.Number)
		if m.SavesNow() || len(late) == mostLate {
			wait := m.Span("wait")("losses")
			late = late.read(m.Dev, &sum[0])
			wait()
		}
		return m.StepDone(epoch, b.Number, sum)
	})
	if err == nil {
		late.read(m.Dev, &sum[0])
		err = m.Peers.AllReduce(epoch, 0, sum)
	}
	switch {
	case err != nil:
		return 0, err
	case sum[1] > 0:
		return sum[0] / sum[1], nil
	case !m.few:
		return 0, train.Mistake("no batch of epoch %d has a training vertex; use a larger --batch-size", epoch)
	}
	return 0, nil
}

// losses are those of steps that a device may not have done yet: it has the next step by the time the host reads them.
type losses []lossOf

type lossOf struct {
	sums  tensor.Matrix
	scale float64
}

// mostLate is how many steps the host is ahead of a device at most.
const mostLate = 32

// read adds losses to a sum, in order, and frees them.
func (l losses) read(dev tensor.Device, sum *float64) losses {
	for _, x := range l {
		*sum += nn.TakeLoss(dev, x.sums) / x.scale
	}
	return l[:0]
}

// done tells of a step.
func (m *batches) done(epoch, number int) {
	if m.stepped != nil {
		m.stepped(epoch, number)
	}
}

// each is what an epoch does: it waits for its batches from one on, one after the other.
func (m *batches) each(epoch, from int, do func(b *batch) error) error {
	count := m.count
	if m.few && epoch > 0 { // it only shows what is there beside a batch
		count = 1
	}
	var b, after *batch
	for i := range count - from {
		if b = after; b == nil {
			b = m.next()
		}
		if after = nil; m.feeder != nil && i+1 < count-from {
			after = m.next()
		}
		if b.err != nil {
			return b.err
		}
		if err := do(b); err != nil {
			return err
		}
		if m.dry {
			m.held = max(m.held, b.bytes())
		}
		b.laid = nil
		m.prefetch.release(b)
	}
	if m.few || m.dry {
		m.prefetch.fill()
	}
	return nil
}

// next waits for a batch, and has the device begin with it.
func (m *batches) next() *batch {
	wait := m.Span("wait")("batch")
	b := m.prefetch.next()
	wait()
	if m.feeder != nil {
		end := m.Span("step")("ahead")
		m.lay(b)
		end()
	}
	return b
}

// trainOn is one step. It returns the sum of the seed vertices' losses, times the batch's scale, on the device.
func (m *batches) trainOn(b *batch, lr float64) (tensor.Matrix, error) {
	return m.step(b, lr, func(_ *nn.Pass, logits tensor.Matrix) (drows, loss tensor.Matrix) {
		if l := b.laid; l != nil {
			loss = l.task.Loss(m.Dev, logits, logits, l.seeds, b.Scale)
		} else {
			loss = b.task(m.Dev).Loss(m.Dev, logits, logits, tensor.Indices(m.Dev, b.Seeds), b.Scale)
		}
		return m.over(b).weigh(logits), loss
	})
}

// over is what the layers of a batch's step go over.
func (m *batches) over(b *batch) stepAggregator {
	if b.share != nil {
		return m.together
	}
	return m.on
}

// stepAggregator is an aggregator of the batches of steps.
type stepAggregator interface {
	nn.Aggregator
	begin(b *batch)
	end()
	weigh(dlogits tensor.Matrix) tensor.Matrix
	// failed is why the rows of the step mean nothing.
	failed() error
}

// step is forward, backward and update over a batch. grad returns the gradient of
// the last layer's rows, which may be in their place, and the loss, which step returns.
func (m *batches) step(b *batch, lr float64,
	grad func(p *nn.Pass, rows tensor.Matrix) (drows, loss tensor.Matrix)) (none tensor.Matrix, err error) {
	on := m.over(b)
	on.begin(b)
	defer on.end()
	gather := m.Span("step")("gather")
	x, err := m.input(b)
	gather()
	if err != nil {
		return none, err
	}
	p := &nn.Pass{Dev: m.Dev, Agg: on, Train: true, Fewer: true, Rows: m.Opt.Rows, IDs: b.idsOn(m.Dev),
		Key: passKey(m.Opt.Seed, b.Epoch, b.Number)}
	m.Model.ZeroGrad(m.Dev)
	end := m.Span("step")("forward")
	rows := m.Model.Forward(p, x)
	end()
	drows, loss := grad(p, rows)
	if !tensor.Same(drows, rows) {
		m.Dev.Free(rows)
	}
	grads, err := m.Peers.Gradients(b.Epoch, b.Number, m.Model.Params)
	if err != nil {
		return loss, err
	}
	grads.Ready(m.Model.DecoderParams())
	p.Ready = grads.Ready
	end = m.Span("step")("backward")
	var dx tensor.Matrix
	if m.embeddings == nil {
		m.Model.Backward(p, drows)
	} else {
		dx = m.Model.BackwardInput(p, drows)
	}
	end()
	b.freeInput(m.Dev, x)
	if err := on.failed(); err != nil {
		return loss, err
	}
	end = m.Span("step")("update")
	defer end()
	if err := grads.Wait(); err != nil {
		return loss, err
	}
	if m.embeddings != nil {
		if err := m.embeddings.step(b, dx, m.Optim.Steps, lr); err != nil {
			return loss, err
		}
		m.Dev.Free(dx)
	}
	m.Optim.Step(lr)
	return loss, nil
}

// input is the rows of a batch's vertices, on the device.
func (m *batches) input(b *batch) (nn.Input, error) {
	if b.laid != nil {
		return b.laid.input, nil
	}
	if m.embeddings != nil {
		return m.embeddings.input(b, m.X)
	}
	return b.input(m.Dev, m.X, m.Opt), nil
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
