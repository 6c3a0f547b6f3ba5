package store

import (
	"context"
	"errors"
	"math"
	"slices"

	"starling/coflow"
	"starling/sample"
)

// SubgraphSampler draws batches as sample.Cluster and sample.SAINT do, from owners wherever they are:
// vertices, and all edges between them, one block for every layer. Every worker draws the vertices
// of the global batch and asks their owners for the edges between them; of these it keeps what its
// own seeds need, within one hop per layer. It is used by one goroutine.
type SubgraphSampler struct {
	Layers int
	Scale  float64 // of the batches' losses

	vertices vertexDraws
	training []bool // by number
	draws    draws
	follow   followers
	rows     rowTable
	restrict restriction
	apart    []int32 // of the block's edges, what walks counted

	// The batch at hand.
	batch  *sample.Batch
	known  *Known
	chunks []*Chunk
	of     []*Chunk // each vertex draws in
}

// vertexDraws is a way to draw the vertices of a batch.
type vertexDraws interface {
	// draw calls take for every vertex drawn, by number, perhaps several times.
	draw(ctx context.Context, m *SubgraphSampler, epoch, number int, take func(v uint32)) error
	// weigh changes what the edges of a batch's block count.
	weigh(m *SubgraphSampler, x *sample.Block, known *Known)
	// seed is what the loss of a vertex counts, by id; 0: one for all.
	seed(id uint32) float64
	// counted: it needs to know what walks counted at edges.
	counted() bool
}

func (s *Store) subgraph(v vertexDraws, training []bool, layers int, scale float64) *SubgraphSampler {
	m := &SubgraphSampler{Layers: layers, Scale: scale, vertices: v, training: training, draws: newDraws(s, Options{})}
	m.follow = newFollowers(&m.draws)
	return m
}

// Sample fills b with a batch, and known with what was learned. divide marks the seeds, by number,
// that are kept; nil: all are. It returns the number of all seeds.
func (m *SubgraphSampler) Sample(ctx context.Context, b *sample.Batch, known *Known, divide func(seeds []uint32) []bool,
	epoch, number int) (seeds int, err error) {
	if err := m.Begin(ctx, b, known, epoch, number); err != nil {
		return 0, err
	}
	if err := drawAll(ctx, m.Cut(len(b.Vertices))); err != nil {
		return 0, err
	}
	return m.Finish(divide), nil
}

// drawAll has chunks draw: all are asked, and then waited for.
func drawAll(ctx context.Context, chunks []*Chunk) (err error) {
	for i, x := range chunks {
		if err = x.Ask(); err != nil {
			chunks = chunks[:i+1]
			break
		}
	}
	for _, x := range chunks {
		if err = errors.Join(err, x.Wait(ctx)); err == nil {
			err = x.Take()
		}
	}
	return err
}

// Begin draws the vertices of a batch. Cut, of whose chunks each is asked and taken, and Finish follow.
func (m *SubgraphSampler) Begin(ctx context.Context, b *sample.Batch, known *Known, epoch, number int) error {
	m.batch, m.known = b, known
	b.Reset(epoch, number, 1)
	known.begin(1)
	m.rows.begin()
	take := func(v uint32) { _, b.Vertices = m.rows.add(b.Vertices, v) }
	if err := m.vertices.draw(ctx, m, epoch, number, take); err != nil {
		return err
	}
	known.grow(len(b.Vertices))
	return nil
}

// Cut has the edges between the batch's vertices found in chunks, which may be at work side by side: the first is of
// those whose owners are elsewhere, so that each is asked once, the others have most vertices at most.
func (m *SubgraphSampler) Cut(most int) []*Chunk {
	b, s := m.batch, m.draws.s
	only, counted := append([]uint32{}, b.Vertices...), m.vertices.counted()
	n := 0
	begin := func() *Chunk {
		if n == len(m.chunks) {
			m.chunks = append(m.chunks, &Chunk{draws: newDraws(s, m.draws.opt)})
		}
		x := m.chunks[n]
		n++
		x.id = coflow.ID{Epoch: uint32(b.Epoch), Batch: uint32(b.Number), Layer: 0, Type: coflow.Inputs}
		x.query = &query{fanout: sample.All, seeds: true, only: only, counted: counted}
		x.Vertices = x.Vertices[:0]
		return x
	}
	remote := begin()
	here, own := s.drawnHere(remote.query), (*Chunk)(nil)
	m.of = m.of[:0]
	for _, v := range b.Vertices {
		x := remote
		if here(s.Book.Owner(v)) {
			if own == nil || len(own.Vertices) >= most {
				own = begin()
			}
			x = own
		}
		x.Vertices = append(x.Vertices, v)
		m.of = append(m.of, x)
	}
	for _, x := range m.chunks[:n] {
		x.Cost = neighbours(s, x.Vertices, nil)
	}
	return m.chunks[:n]
}

// Finish makes the batch of what the chunks drew, see Sample.
func (m *SubgraphSampler) Finish(divide func(seeds []uint32) []bool) (seeds int) {
	b, known, dim := m.batch, m.known, m.draws.s.Part.In.EdgeDim
	m.apart = m.apart[:0]
	for _, x := range m.chunks {
		clear(x.draws.next)
	}
	known.induced(b, dim, m.visit, &m.rows, func(d *drawn, at int) {
		if m.vertices.counted() {
			m.apart = append(m.apart, d.apart[d.Indptr[at]:d.Indptr[at+1]]...)
		}
	})
	m.vertices.weigh(m, &b.Blocks[0], known)
	all := m.seeds(b, known)
	if divide != nil {
		m.restrict.restrict(b, known, divide(all), m.Layers, dim)
	}
	b.Scale = m.Scale
	return len(all)
}

// visit goes through what the batch's vertices drew, in their order.
func (m *SubgraphSampler) visit(f func(i int, d *drawn, at int)) {
	for i, v := range m.batch.Vertices {
		w := &m.of[i].draws
		q := w.partOf(v)
		f(i, &w.parts[q], w.next[q])
		w.next[q]++
	}
}

// HasSeeds reports whether a batch has a training vertex, if that is known without asking owners.
func (m *SubgraphSampler) HasSeeds(epoch, number int) (has, known bool) {
	d, ok := m.vertices.(interface {
		any(epoch, number int, is func(v uint32) bool) bool
	})
	return !ok || d.any(epoch, number, func(v uint32) bool { return m.training[v] }), ok
}

// seeds finds the training vertices of a batch.
func (m *SubgraphSampler) seeds(b *sample.Batch, known *Known) (all []uint32) {
	for i, v := range b.Vertices {
		if !m.training[v] {
			continue
		}
		b.Seeds, all = append(b.Seeds, uint32(i)), append(all, v)
		if w := m.vertices.seed(known.IDs[i]); w > 0 {
			b.SeedWeights = append(b.SeedWeights, float32(w))
		}
	}
	return all
}

// Clusters is Cluster-GCN over clusters that were shared.
type Clusters struct {
	members [][]uint32 // by number
	each    int
	seed    uint64
}

// NewClusters has the clusters of ShareClusters, of which each make a batch.
func NewClusters(v *Vertices, clusters, each int, seed uint64) *Clusters {
	c := &Clusters{members: make([][]uint32, clusters), each: max(1, min(each, clusters)), seed: seed}
	for id, k := range v.Columns[0] {
		c.members[int(k)] = append(c.members[int(k)], v.Number[id])
	}
	return c
}

// NewOwnClusters has the clusters of OwnClusters: a worker's part by itself.
func (s *Store) NewOwnClusters(of []uint32, each int, seed uint64) *Clusters {
	clusters := 1
	if len(of) > 0 {
		clusters = int(slices.Max(of)) + 1
	}
	c := &Clusters{members: make([][]uint32, clusters), each: max(1, min(each, clusters)), seed: seed}
	first := uint32(s.Book.Offsets[s.Part.Meta.Part])
	for v, k := range of {
		c.members[k] = append(c.members[k], first+uint32(v))
	}
	return c
}

// Batches is how many an epoch has.
func (c *Clusters) Batches() int { return (len(c.members) + c.each - 1) / c.each }

// Sampler draws batches of clusters; training is by number.
func (c *Clusters) Sampler(s *Store, training []bool, layers int, scale float64) *SubgraphSampler {
	return s.subgraph(&clusterDraws{of: c, epoch: -1}, training, layers, scale)
}

type clusterDraws struct {
	of    *Clusters
	epoch int
	order []uint32
}

func (d *clusterDraws) draw(_ context.Context, _ *SubgraphSampler, epoch, number int, take func(uint32)) error {
	for _, k := range d.clusters(epoch, number) {
		for _, v := range d.of.members[k] {
			take(v)
		}
	}
	return nil
}

func (d *clusterDraws) any(epoch, number int, is func(uint32) bool) bool {
	return slices.ContainsFunc(d.clusters(epoch, number), func(k uint32) bool {
		return slices.ContainsFunc(d.of.members[k], is)
	})
}

// clusters are the numbers of a batch's clusters.
func (d *clusterDraws) clusters(epoch, number int) []uint32 {
	if d.epoch != epoch {
		d.epoch, d.order = epoch, sample.ClusterOrder(d.of.seed, epoch, len(d.of.members))
	}
	return d.order[min(number*d.of.each, len(d.order)):min((number+1)*d.of.each, len(d.order))]
}

func (d *clusterDraws) weigh(_ *SubgraphSampler, x *sample.Block, _ *Known) { x.OwnDegrees = true }
func (d *clusterDraws) seed(uint32) float64                                 { return 0 }
func (d *clusterDraws) counted() bool                                       { return false }

// nodeDraws is GraphSAINT's node sampler over norms that were shared.
type nodeDraws struct {
	*sample.SAINTNodeDraws
	numbers []uint32
	seedKey uint64
}

// SAINTNodes draws batches by norms that ShareNorms has shared.
func (s *Store) SAINTNodes(v *Vertices, draws *sample.SAINTNodeDraws, training []bool, layers int, scale float64,
	seed uint64) *SubgraphSampler {
	return s.subgraph(&nodeDraws{draws, v.Number, seed}, training, layers, scale)
}

func (d *nodeDraws) draw(_ context.Context, _ *SubgraphSampler, epoch, number int, take func(uint32)) error {
	d.Vertices(sample.BatchKey(d.seedKey, epoch, number), func(id uint32) { take(d.numbers[id]) })
	return nil
}

func (d *nodeDraws) any(epoch, number int, is func(uint32) bool) bool {
	return d.Any(sample.BatchKey(d.seedKey, epoch, number), func(id uint32) bool { return is(d.numbers[id]) })
}

func (d *nodeDraws) weigh(_ *SubgraphSampler, x *sample.Block, known *Known) {
	eachEdge(x, known, func(u, v uint32, _, _ int, _ int64) float64 { return d.Vertex(v) / d.Edge(u, v, 0) })
}

func (d *nodeDraws) seed(id uint32) float64 { return 1 / d.Vertex(id) }
func (d *nodeDraws) counted() bool          { return false }

// eachEdge multiplies what edges count with what count says, of edges that are no loops: of the ids
// and the rows of their ends, and their places.
func eachEdge(x *sample.Block, known *Known, count func(u, v uint32, from, to int, e int64) float64) {
	unweighted := len(x.Weights) == 0
	for i := range x.Dst {
		for e := x.Indptr[i]; e < x.Indptr[i+1]; e++ {
			from, w := int(x.Indices[e]), 1.0
			if !unweighted {
				w = float64(x.Weights[e])
			}
			c := 1.0
			if from != i {
				c = count(known.IDs[from], known.IDs[i], from, i, e)
			}
			if unweighted {
				x.Weights = append(x.Weights, float32(c*w))
			} else {
				x.Weights[e] = float32(c * w)
			}
		}
	}
}

// edgeDraws is GraphSAINT's edge sampler over sums that were shared.
type edgeDraws struct {
	*sample.SAINTEdgeDraws
	numbers []uint32
	degrees []float64 // by id
	seedKey uint64

	between between
}

// SAINTEdges draws batches by sums that ShareEdgeSums has shared.
func (s *Store) SAINTEdges(v *Vertices, draws *sample.SAINTEdgeDraws, training []bool, layers int, scale float64,
	seed uint64) *SubgraphSampler {
	return s.subgraph(&edgeDraws{SAINTEdgeDraws: draws, numbers: v.Number, degrees: v.Columns[2], seedKey: seed,
		between: between{}}, training, layers, scale)
}

func (d *edgeDraws) draw(ctx context.Context, m *SubgraphSampler, epoch, number int, take func(uint32)) error {
	key, n := sample.BatchKey(d.seedKey, epoch, number), d.Draws()
	ends, by := make([]uint32, n), make([]uint64, n)
	for i := range ends {
		v, x := d.Draw(key, uint64(i))
		ends[i], by[i] = d.numbers[v], math.Float64bits(x)
	}
	sources := slices.Clone(ends)
	id := coflow.ID{Epoch: uint32(epoch), Batch: uint32(number), Layer: 0, Type: coflow.Inputs}
	if err := m.follow.follow(ctx, id, byWeight, 0, sources, by); err != nil {
		return err
	}
	for i, v := range ends {
		take(v)
		take(sources[i])
	}
	return nil
}

// between is how many edges go from a row to another.
type between map[[2]int]int

func (b between) count(x *sample.Block) {
	clear(b)
	for i := range x.Dst {
		for _, u := range x.Indices[x.Indptr[i]:x.Indptr[i+1]] {
			b[[2]int{int(u), i}]++
		}
	}
}

func (d *edgeDraws) weigh(_ *SubgraphSampler, x *sample.Block, known *Known) {
	d.between.count(x)
	eachEdge(x, known, func(u, v uint32, from, to int, _ int64) float64 {
		joining := float64(d.between[[2]int{from, to}] + d.between[[2]int{to, from}])
		w := sample.EdgeWeight(int(d.degrees[u]), int(d.degrees[v]))
		return d.Vertex(v) / d.Both(u, v, joining*w)
	})
}

func (d *edgeDraws) seed(id uint32) float64 { return 1 / d.Vertex(id) }
func (d *edgeDraws) counted() bool          { return false }

// walkDraws is GraphSAINT's walk sampler over counts that were shared.
type walkDraws struct {
	sample.SAINTWalkDraws
	numbers []uint32
	degrees []float64 // by id
	seedKey uint64
	between between
}

// SAINTWalks draws batches of walks, by what CountWalks has shared and the walks that it counted.
func (s *Store) SAINTWalks(v *Vertices, counted, walks, length int, training []bool, layers int, scale float64,
	seed uint64) *SubgraphSampler {
	draws := sample.SAINTWalkDraws{Walks: walks, Length: length, Visited: v.Columns[0], Steps: v.Columns[1],
		Counted: float64(counted)}
	return s.subgraph(&walkDraws{draws, v.Number, v.Columns[2], seed, between{}}, training, layers, scale)
}

func (d *walkDraws) draw(ctx context.Context, m *SubgraphSampler, epoch, number int, take func(uint32)) error {
	key := sample.BatchKey(d.seedKey, epoch, number)
	begin, keys := make([]uint32, d.Walks), make([]uint64, d.Walks)
	for i := range begin {
		walk, v := sample.WalkBegins(key, uint64(i), len(d.numbers))
		begin[i], keys[i] = d.numbers[v], uint64(walk)
	}
	id := coflow.ID{Epoch: uint32(epoch), Batch: uint32(number), Layer: 0, Type: coflow.Inputs}
	paths, err := m.follow.paths(ctx, id, begin, keys, d.Length)
	for _, path := range paths {
		for _, v := range path {
			take(v)
		}
	}
	return err
}

func (d *walkDraws) weigh(m *SubgraphSampler, x *sample.Block, known *Known) {
	d.between.count(x)
	eachEdge(x, known, func(u, v uint32, from, to int, e int64) float64 {
		return d.Vertex(v) / d.Both(u, v, sample.Between{There: d.between[[2]int{from, to}],
			Back: d.between[[2]int{to, from}], DU: int(d.degrees[u]), DV: int(d.degrees[v]), Apart: m.apart[e]})
	})
}

func (d *walkDraws) seed(id uint32) float64 { return 1 / d.Vertex(id) }
func (d *walkDraws) counted() bool          { return true }
