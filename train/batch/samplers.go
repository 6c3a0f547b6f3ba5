package batch

import (
	"context"
	"slices"

	"starling/partition"
	"starling/sample"
	"starling/store"
)

// Sampler draws this worker's share of batches from the owners of vertices. It is used by
// one goroutine.
type Sampler interface {
	// Fill fills b with a batch, and known with what was learned. any: some worker has a seed
	// vertex of it.
	Fill(ctx context.Context, b *sample.Batch, known *store.Known, epoch, number int) (any bool, err error)
	// Drawn is what was sent and received since it was last called, Traffic that and the rows that a
	// batch will need.
	Drawn() []store.Traffic
	Traffic(b *sample.Batch) []store.Traffic
}

// samplersOf prepares the sampler that was asked for: what draws need to know of all vertices is
// shared, so that every worker draws what one with the whole graph would.
//
//	neighbour    nothing: the owner of a vertex draws its edges
//	pinsage      ids and degrees of all vertices, once; owners follow walks
//	fastgcn      norms of all vertices, once
//	ladies       nothing before training; in-edges of all destinations of a layer, per batch
//	cluster      the clusters of all vertices, once; clusters are of parts
//	saint-node   norms of all vertices, once
//	saint-edge   sums over the edges of all vertices, once
//	saint-walk   batches that are counted, and how often each vertex was in one, once
//
// It returns what makes samplers, and the number of batches in an epoch where that does not depend on seeds.
func samplersOf(p *Pipeline) (newSampler func(Seeds) Sampler, batches int, err error) {
	opt, ctx, seed := &p.Options, p.Site.Ctx, p.Site.Opt.Seed
	if err := checkData(p.Site.Part, opt.Sampler); err != nil {
		return nil, 0, err
	}
	switch opt.Sampler {
	case "neighbour", "pinsage":
		if opt.Sampler == "pinsage" {
			if p.visits, err = p.Store.ShareVisits(ctx, opt.visits()); err != nil {
				return nil, 0, err
			}
		}
		if opt.Temporal != "" {
			return func(s Seeds) Sampler {
				return &temporalShare{TemporalSampler: p.temporal(), of: s,
					times: p.times}
			}, 0, nil
		}
		return func(s Seeds) Sampler {
			return &neighbourShare{Sampler: p.Neighbours(), store: p.Store, seeder: p.Seeder(s)}
		}, 0, nil
	case "fastgcn":
		v, err := p.Store.ShareNorms(ctx)
		if err != nil {
			return nil, 0, err
		}
		q := sample.NewDistribution(v.Columns[0])
		return func(s Seeds) Sampler { return &fastGCNShare{p.Store.FastGCN(v, q, opt.Fanouts, seed), s} }, 0, nil
	case "ladies":
		return func(s Seeds) Sampler { return &ladiesShare{p.Store.LADIES(opt.Fanouts, seed), p, s} }, 0, nil
	case "cluster-local":
		return ownClusters(p)
	}
	return subgraphsOf(p)
}

// checkData refuses graphs that the sampler cannot draw from.
func checkData(part *partition.Part, sampler string) error {
	switch {
	case sampler == "saint-edge" && part.Book.Edges == 0:
		return errNoEdges()
	case part.Book.Weighted && slices.Contains([]string{"fastgcn", "ladies", "saint-node"}, sampler):
		return sample.CheckWeights(part.In)
	}
	return nil
}

// subgraphsOf prepares samplers whose batches are subgraphs.
func subgraphsOf(p *Pipeline) (newSampler func(Seeds) Sampler, count int, err error) {
	opt, ctx, seed, nodes := &p.Options, p.Site.Ctx, p.Site.Opt.Seed, int(p.Site.Part.Book.Nodes)
	is, layers := marked(nodes, p.training), p.Site.Opt.Model.GraphLayers()
	scale := 1 / float64(len(p.training))
	var make func() *store.SubgraphSampler
	var v *store.Vertices
	switch opt.Sampler {
	case "cluster":
		var clusters int
		if v, clusters, err = p.Store.ShareClusters(ctx, opt.clusters(nodes), seed); err != nil {
			return nil, 0, err
		}
		c := store.NewClusters(v, clusters, opt.clustersEach(clusters, nodes), seed)
		count = c.Batches()
		scale *= float64(count)
		make = func() *store.SubgraphSampler { return c.Sampler(p.Store, is, layers, scale) }
	case "saint-node":
		if v, err = p.Store.ShareNorms(ctx); err != nil {
			return nil, 0, err
		}
		draws := sample.NewSAINTNodeDraws(v.Columns[0], opt.Size)
		count = sample.SAINTBatches(nodes, opt.Size)
		make = func() *store.SubgraphSampler { return p.Store.SAINTNodes(v, draws, is, layers, scale, seed) }
	case "saint-edge":
		if v, err = p.Store.ShareEdgeSums(ctx); err != nil {
			return nil, 0, err
		}
		draws := sample.NewSAINTEdgeDraws(v.Columns[0], v.Columns[1], opt.Size)
		count = sample.SAINTBatches(nodes, 2*opt.Size)
		make = func() *store.SubgraphSampler { return p.Store.SAINTEdges(v, draws, is, layers, scale, seed) }
	case "saint-walk":
		length := opt.walkLength(layers)
		count = sample.SAINTBatches(nodes, opt.Size*(length+1))
		var counted int
		if v, counted, err = p.Store.CountWalks(ctx, opt.Size, length, count, seed); err != nil {
			return nil, 0, err
		}
		make = func() *store.SubgraphSampler {
			return p.Store.SAINTWalks(v, counted, opt.Size, length, is, layers, scale, seed)
		}
	}
	return func(s Seeds) Sampler { return &subgraphShare{make(), s} }, count, nil
}

// ownClusters is Cluster-GCN over each worker's part by itself: a step has one batch per
// worker, of an even share of the vertices, and no edge between parts is used.
func ownClusters(p *Pipeline) (newSampler func(Seeds) Sampler, count int, err error) {
	opt, s, book := &p.Options, p.Site, p.Site.Part.Book
	own, err := p.Store.OwnClusters(s.Ctx, opt.clusters(int(book.Nodes)), s.Opt.Seed)
	if err != nil {
		return nil, 0, err
	}
	clusters := 1
	if len(own) > 0 {
		clusters = int(slices.Max(own)) + 1
	}
	share := Options{Size: max(1, opt.Size/book.Parts)}
	c := p.Store.NewOwnClusters(own, share.clustersEach(clusters, len(own)), s.Opt.Seed)
	all, err := p.Setup.Share(float64(c.Batches()))
	if err != nil {
		return nil, 0, err
	}
	count = 1
	for _, n := range all {
		count = max(count, int(n[0]))
	}
	scale := float64(count) / float64(len(p.training))
	training := marked(int(book.Nodes), p.training)
	return func(Seeds) Sampler {
		return &subgraphShare{c.Sampler(p.Store, training, s.Opt.Model.GraphLayers(), scale), nil}
	}, count, nil
}

// neighbourShare draws the neighbours of the worker's seed vertices.
type neighbourShare struct {
	*store.Sampler
	store  *store.Store
	seeder Seeder
	// seeds is what the seed vertices of the last batch took, where they are drawn.
	seeds []store.Traffic
}

func (m *neighbourShare) Fill(ctx context.Context, b *sample.Batch, known *store.Known, epoch, number int) (bool,
	error) {
	before := m.store.Traffic()
	seeds, err := m.seeder.Next(ctx, m.Sampler, epoch, number)
	if err != nil {
		return false, err
	}
	m.seeds = m.store.Traffic()
	for q := range before {
		m.seeds[q] = m.seeds[q].Since(before[q])
	}
	if err := m.Sample(ctx, b, known, seeds.Vertices, epoch, number); err != nil {
		return false, err
	}
	seeds.Complete(b)
	return !seeds.Empty, nil
}

// Traffic is with that of seed vertices. No other sampler may be at work.
func (m *neighbourShare) Traffic(b *sample.Batch) []store.Traffic {
	return withSeeds(m.Sampler.Traffic(b), m.seeds)
}
func (m *neighbourShare) Drawn() []store.Traffic { return withSeeds(m.Sampler.Drawn(), m.seeds) }

func withSeeds(t, seeds []store.Traffic) []store.Traffic {
	for q := range t {
		t[q].Requests, t[q].Edges = t[q].Requests+seeds[q].Requests, t[q].Edges+seeds[q].Edges
	}
	return t
}

// chunkShare is neighbourShare for strategies that draw hops in chunks and seed vertices in branches.
type chunkShare struct {
	*store.Chunks
	store  *store.Store
	seeder Seeder
	seeds  []store.Traffic
}

// ByChunks is a sampler of the neighbours of seeds that sends what Chunks and InBranches do.
func (p *Pipeline) ByChunks(s Seeds) Sampler {
	return &chunkShare{Chunks: p.Chunks(), store: p.Store, seeder: p.Seeder(s)}
}

func (m *chunkShare) Fill(ctx context.Context, b *sample.Batch, known *store.Known, epoch, number int) (bool, error) {
	before := m.store.Traffic()
	m.Begin(b, known, epoch, number)
	var branches [][]uint32
	seeds, err := InBranches(ctx, m.seeder, m.Sampler, epoch, number,
		func(branch []uint32) { branches = append(branches, branch) })
	if err != nil {
		return false, err
	}
	m.seeds = m.store.Traffic()
	for q := range before {
		m.seeds[q] = m.seeds[q].Since(before[q])
	}
	if err := m.Sample(ctx, branches...); err != nil {
		return false, err
	}
	seeds.Complete(b)
	return !seeds.Empty, nil
}

func (m *chunkShare) Traffic(b *sample.Batch) []store.Traffic {
	return withSeeds(m.Chunks.Traffic(b), m.seeds)
}
func (m *chunkShare) Drawn() []store.Traffic { return withSeeds(m.Chunks.Drawn(), m.seeds) }

// fastGCNShare draws for the worker's seed vertices: the sources of a layer do not depend on them.
type fastGCNShare struct {
	*store.LayerSampler
	of Seeds
}

func (m *fastGCNShare) Fill(ctx context.Context, b *sample.Batch, known *store.Known, epoch, number int) (bool,
	error) {
	err := m.Sample(ctx, b, known, m.of.Seeds(epoch, number), nil, epoch, number)
	b.Scale = m.of.Scale()
	return true, err
}

// ladiesShare draws for the global batch, and leaves what the worker's seed vertices need.
type ladiesShare struct {
	*store.LayerSampler
	p  *Pipeline
	of Seeds
}

func (m *ladiesShare) Fill(ctx context.Context, b *sample.Batch, known *store.Known, epoch, number int) (bool,
	error) {
	all := m.of.Whole(epoch, number)
	err := m.Sample(ctx, b, known, all, among(all, m.of.Seeds(epoch, number)), epoch, number)
	b.Scale = m.of.Scale()
	asked, needed := m.Shared()
	m.p.shared.asked.Add(asked)
	m.p.shared.needed.Add(needed)
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
	of Seeds // nil: all are the worker's
}

func (m *subgraphShare) Fill(ctx context.Context, b *sample.Batch, known *store.Known, epoch, number int) (bool,
	error) {
	n, err := m.Sample(ctx, b, known, m.divide(epoch, number), epoch, number)
	return n > 0 || m.of == nil, err
}

// Subgraph is what draws, and how the seeds of a batch are divided; nil: all are the worker's.
func (m *subgraphShare) Subgraph() (s *store.SubgraphSampler,
	divide func(epoch, number int) func(all []uint32) []bool) {
	return m.SubgraphSampler, m.divide
}

func (m *subgraphShare) divide(epoch, number int) func(all []uint32) []bool {
	if m.of == nil {
		return nil
	}
	return func(all []uint32) []bool { return among(all, m.of.Divide(all, epoch, number)) }
}

// Learns reports whether a batch has a training vertex, if that is known without drawing its edges.
func (m *subgraphShare) Learns(epoch, number int) (learns, known bool) {
	if m.of == nil {
		return true, true
	}
	return m.HasSeeds(epoch, number)
}
