package mini

import (
	"context"
	"math"
	"slices"

	"starling/exchange"
	"starling/sample"
	"starling/store"
)

// remoteSampler draws this worker's share of batches from the owners of vertices. It is used by
// one goroutine.
type remoteSampler interface {
	// sample fills b with a batch, and known with what was learned. any: some worker has a seed
	// vertex of it.
	sample(ctx context.Context, b *sample.Batch, known *store.Known, epoch, number int) (any bool, err error)
	// Drawn is what was sent and received since it was last called, Traffic that and the rows that a
	// batch will need.
	Drawn() []store.Traffic
	Traffic(b *sample.Batch) []store.Traffic
}

// joinSampler prepares the sampler that was asked for: what draws need to know of all vertices is
// shared, so that every worker draws what one with the whole graph would.
//
//	neighbour    nothing: the owner of a vertex draws its edges
//	fastgcn      norms of all vertices, once
//	ladies       nothing before training; in-edges of all destinations of a layer, per batch
//	cluster      the clusters of all vertices, once; clusters are of parts
//	saint-node   norms of all vertices, once
//	saint-edge   sums over the edges of all vertices, once
//	saint-walk   batches that are counted, and how often each vertex was in one, once
func (d *distributed) joinSampler(setup *exchange.Setup, training []uint32) (err error) {
	opt, ctx, seed := &d.opt, d.site.Ctx, d.site.Opt.Seed
	if err := d.checkData(); err != nil {
		return err
	}
	switch opt.Sampler {
	case "neighbour":
		d.newSampler = func() remoteSampler {
			return &neighbourShare{Sampler: d.store.Sampler(opt.Fanouts, seed, d.draws()), of: d, next: d.seeder()}
		}
	case "fastgcn":
		v, err := d.store.ShareNorms(ctx)
		if err != nil {
			return err
		}
		q := sample.NewDistribution(v.Columns[0])
		d.newSampler = func() remoteSampler { return &fastGCNShare{d.store.FastGCN(v, q, opt.Fanouts, seed), d} }
	case "ladies":
		d.newSampler = func() remoteSampler { return &ladiesShare{d.store.LADIES(opt.Fanouts, seed), d} }
	default:
		return d.joinSubgraphs(setup, training)
	}
	return nil
}

// checkData refuses graphs that the sampler cannot draw from.
func (d *distributed) checkData() error {
	book := d.site.Part.Book
	switch {
	case d.opt.Sampler == "saint-edge" && book.Edges == 0:
		return errNoEdges()
	case book.Weighted && slices.Contains([]string{"fastgcn", "ladies", "saint-node"}, d.opt.Sampler):
		return sample.CheckWeights(d.site.Part.In)
	}
	return nil
}

// joinSubgraphs prepares samplers whose batches are subgraphs.
func (d *distributed) joinSubgraphs(setup *exchange.Setup, training []uint32) (err error) {
	opt, ctx, seed, nodes := &d.opt, d.site.Ctx, d.site.Opt.Seed, int(d.site.Part.Book.Nodes)
	is, layers, count := marked(nodes, training), d.site.Opt.Model.GraphLayers(), 1
	scale := 1 / float64(len(training))
	var make func() *store.SubgraphSampler
	var v *store.Vertices
	switch opt.Sampler {
	case "cluster":
		var clusters int
		if v, clusters, err = d.store.ShareClusters(ctx, opt.clusters(nodes), seed); err != nil {
			return err
		}
		c := store.NewClusters(v, clusters, opt.clustersEach(clusters, nodes), seed)
		count = c.Batches()
		scale *= float64(count)
		make = func() *store.SubgraphSampler { return c.Sampler(d.store, is, layers, scale) }
	case "cluster-local":
		return d.joinOwnClusters(setup, is, len(training))
	case "saint-node":
		if v, err = d.store.ShareNorms(ctx); err != nil {
			return err
		}
		draws := sample.NewSAINTNodeDraws(v.Columns[0], opt.Size)
		count = sample.SAINTBatches(nodes, opt.Size)
		make = func() *store.SubgraphSampler { return d.store.SAINTNodes(v, draws, is, layers, scale, seed) }
	case "saint-edge":
		if v, err = d.store.ShareEdgeSums(ctx); err != nil {
			return err
		}
		draws := sample.NewSAINTEdgeDraws(v.Columns[0], v.Columns[1], opt.Size)
		count = sample.SAINTBatches(nodes, 2*opt.Size)
		make = func() *store.SubgraphSampler { return d.store.SAINTEdges(v, draws, is, layers, scale, seed) }
	case "saint-walk":
		length := opt.walkLength(layers)
		count = sample.SAINTBatches(nodes, opt.Size*(length+1))
		var counted int
		if v, counted, err = d.store.CountWalks(ctx, opt.Size, length, count, seed); err != nil {
			return err
		}
		make = func() *store.SubgraphSampler {
			return d.store.SAINTWalks(v, counted, opt.Size, length, is, layers, scale, seed)
		}
	}
	d.useSubgraphs(count, func() remoteSampler { return &subgraphShare{make(), d} })
	return nil
}

// joinOwnClusters is Cluster-GCN over each worker's part by itself: the batches of a step are as
// many as there are workers, of an even share of the vertices each, and no edge between parts is
// used.
func (d *distributed) joinOwnClusters(setup *exchange.Setup, training []bool, seeds int) error {
	opt, s, book := &d.opt, d.site, d.site.Part.Book
	own, err := d.store.OwnClusters(s.Ctx, opt.clusters(int(book.Nodes)), s.Opt.Seed)
	if err != nil {
		return err
	}
	clusters := 1
	if len(own) > 0 {
		clusters = int(slices.Max(own)) + 1
	}
	share := Options{Size: max(1, opt.Size/book.Parts)}
	c := d.store.NewOwnClusters(own, share.clustersEach(clusters, len(own)), s.Opt.Seed)
	all, err := setup.Share(float64(c.Batches()))
	if err != nil {
		return err
	}
	count := 1
	for _, n := range all {
		count = max(count, int(n[0]))
	}
	scale := float64(count) / float64(seeds)
	d.useSubgraphs(count, func() remoteSampler {
		return &subgraphShare{c.Sampler(d.store, training, s.Opt.Model.GraphLayers(), scale), nil}
	})
	return nil
}

func (d *distributed) useSubgraphs(count int, sampler func() remoteSampler) {
	d.newSampler, d.count, d.all = sampler, count, count
	if d.site.MemoryOnly {
		d.count = min(dryBatches, count)
	}
}

// clustersEach is how many clusters of a graph make a batch.
func (m *Options) clustersEach(clusters, nodes int) int {
	return int(math.Round(float64(m.Size) * float64(clusters) / float64(max(nodes, 1))))
}

// neighbourShare draws the neighbours of the worker's seed vertices.
type neighbourShare struct {
	*store.Sampler
	of   *distributed
	next func(ctx context.Context, m *store.Sampler, epoch, number int) (*seedBatch, error)
	// seeds is what the seed vertices of the last batch took, where they are drawn.
	seeds []store.Traffic
}

func (m *neighbourShare) sample(ctx context.Context, b *sample.Batch, known *store.Known, epoch, number int) (bool,
	error) {
	before := m.of.store.Traffic()
	seeds, err := m.next(ctx, m.Sampler, epoch, number)
	if err != nil {
		return false, err
	}
	m.seeds = m.of.store.Traffic()
	for q := range before {
		m.seeds[q] = m.seeds[q].Since(before[q])
	}
	if err := m.Sample(ctx, b, known, seeds.vertices, epoch, number); err != nil {
		return false, err
	}
	seeds.complete(b)
	return true, nil
}

// Traffic is with that of seed vertices. No other sampler may be at work.
func (m *neighbourShare) Traffic(b *sample.Batch) []store.Traffic { return m.add(m.Sampler.Traffic(b)) }
func (m *neighbourShare) Drawn() []store.Traffic                  { return m.add(m.Sampler.Drawn()) }

func (m *neighbourShare) add(t []store.Traffic) []store.Traffic {
	for q := range t {
		t[q].Requests, t[q].Edges = t[q].Requests+m.seeds[q].Requests, t[q].Edges+m.seeds[q].Edges
	}
	return t
}

// fastGCNShare draws for the worker's seed vertices: the sources of a layer do not depend on them.
type fastGCNShare struct {
	*store.LayerSampler
	of *distributed
}

func (m *fastGCNShare) sample(ctx context.Context, b *sample.Batch, known *store.Known, epoch, number int) (bool,
	error) {
	seeds, scale := m.of.roots.seeds(epoch, number)
	err := m.Sample(ctx, b, known, seeds, nil, epoch, number)
	b.Scale = scale
	return true, err
}

// ladiesShare draws for the global batch, and leaves what the worker's seed vertices need.
type ladiesShare struct {
	*store.LayerSampler
	of *distributed
}

func (m *ladiesShare) sample(ctx context.Context, b *sample.Batch, known *store.Known, epoch, number int) (bool,
	error) {
	all := m.of.global().order.Batch(epoch, number)
	mine, scale := m.of.roots.seeds(epoch, number)
	err := m.Sample(ctx, b, known, all, among(all, mine), epoch, number)
	b.Scale = scale
	asked, needed := m.Shared()
	m.of.shared.asked.Add(asked)
	m.of.shared.needed.Add(needed)
	return true, err
}

// among marks those of all that are mine.
func among(all, mine []uint32) []bool {
	set := make(map[uint32]bool, len(mine))
	for _, v := range mine {
		set[v] = true
	}
	out := make([]bool, len(all))
	for i, v := range all {
		out[i] = set[v]
	}
	return out
}

// subgraphShare draws the subgraph of a global batch, and leaves what the worker's seed vertices
// need.
type subgraphShare struct {
	*store.SubgraphSampler
	of *distributed // nil: all are the worker's
}

func (m *subgraphShare) sample(ctx context.Context, b *sample.Batch, known *store.Known, epoch, number int) (bool,
	error) {
	if m.of == nil {
		_, err := m.Sample(ctx, b, known, nil, epoch, number)
		return true, err
	}
	n, err := m.Sample(ctx, b, known, func(all []uint32) []bool {
		return among(all, m.of.global().divide(all, epoch, number))
	}, epoch, number)
	return n > 0, err
}
