package multilevel

import (
	"context"

	"starling/graph"
	"starling/rng"
)

// Problem is a graph to partition.
type Problem struct {
	Graph *graph.CSR // seen as undirected
	// Symmetric says that every edge is known to have its reverse. If it is false, all edges
	// are checked, and a graph that is not symmetric is copied with its reverse edges.
	Symmetric bool
	Parts     int // from 2 to 65536, and at most one per vertex
	Seed      uint64
	Others    []uint64 // seeds of more tries, which are combined with the first
	Threads   int      // 0: all cores
	// Constraints are to be met at once; at least one.
	Constraints []Constraint
	// Volume makes the communication volume the objective instead of the edge cut.
	Volume bool
	// Progress, if set, is called with the number of levels of a stage that are done.
	Progress func(stage string, done, total int64)
}

// Constraint bounds what a part weighs.
type Constraint struct {
	Weight []uint32 // of each vertex; nil: one each
	Limit  int64    // the most a part may weigh
}

// Partition returns the part of each vertex, and what each part weighs by part and
// constraint. Limits that cannot be met are exceeded as little as the search found. The
// only error is the context's.
func Partition(ctx context.Context, p *Problem) (parts []uint32, load []int64, err error) {
	mem := &memory{}
	defer mem.freeAll()
	r, g, aside := begin(ctx, p, mem)
	defer r.stopPool()
	m := newPartitioner(r, p)
	a := m.bestOf(g, p.Others)
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	parts, load = m.finished(a, aside)
	return parts, load, nil
}

// begin makes the finest graph, and sets vertices without edges aside.
func begin(ctx context.Context, p *Problem, mem *memory) (r *run, g *levelGraph, aside []uint32) {
	r = newRun(ctx, rng.New(p.Seed), p.Threads, mem)
	if edges := p.Graph.Edges(); edges >= cacheSized/16 && edges <= cacheSized {
		r.startPool(idleCores()) // first: the threads need a while to start
	}
	g = r.finestGraph(p)
	r.tuning = g.tuningFor(p.Parts)
	return r, g, r.setAsideIsolated(g)
}

// finished are the parts of all vertices, also of those that were set aside, and what parts weigh.
func (m *partitioner) finished(a *assignment, aside []uint32) (parts []uint32, load []int64) {
	m.placeSetAside(a, aside)
	parts = make([]uint32, a.g.n)
	for v, k := range a.part {
		parts[v] = uint32(k)
	}
	return parts, a.load
}

// partitioner is the multilevel scheme for one problem.
type partitioner struct {
	r     *run
	p     *Problem
	k     int
	limit []int64 // by constraint
}

func newPartitioner(r *run, p *Problem) *partitioner {
	m := &partitioner{r: r, p: p, k: p.Parts}
	for _, c := range p.Constraints {
		m.limit = append(m.limit, c.Limit)
	}
	return m
}

func (m *partitioner) progress(stage string, done, total int) {
	if m.p.Progress != nil {
		m.p.Progress(stage, int64(done), int64(total))
	}
}

// partition coarsens, partitions the coarsest graph and refines. The result is of no use
// if the context has ended.
func (m *partitioner) partition(g *levelGraph) *assignment {
	var levels []level
	for m.r.ctx.Err() == nil {
		coarse, l, ok := m.coarsen(g, len(levels))
		if !ok {
			break
		}
		levels = append(levels, l)
		g = coarse
		m.progress("coarsen", len(levels), len(levels))
	}
	if m.r.ctx.Err() != nil { // the graph may still be large
		return nil
	}
	a := newAssignment(g, m.k, m.r.initialPartition(g, m.k, m.limits(g)), repeatLimits(m.limits(g), m.k))
	m.r.stopPool()
	return m.refineUp(a, levels)
}

// refineUp refines a partition of the coarsest graph, level by level.
func (m *partitioner) refineUp(a *assignment, levels []level) *assignment {
	m.refine(a, nil, len(levels) == 0)
	for i := len(levels) - 1; i >= 0; i-- {
		hint := m.boundaryHint(levels[i])
		m.uncoarsen(a, levels[i])
		m.refine(a, hint, i == 0)
		free(m.r.mem, hint)
		m.progress("refine", len(levels)-i, len(levels))
	}
	return a
}

// uncoarsen projects a to the finer level. The loads of its parts stay the same.
func (m *partitioner) uncoarsen(a *assignment, l level) {
	a.g.free(m.r)
	fine := m.r.project(l, a.part)
	free(m.r.mem, a.part)
	a.g, a.part, a.limit = l.fine, fine, repeatLimits(m.limits(l.fine), m.k)
}

// coarsen makes the next level; not ok if the graph is small enough or does not shrink.
func (m *partitioner) coarsen(g *levelGraph, depth int) (*levelGraph, level, bool) {
	return m.coarsenLike(g, g, depth)
}

// coarsenLike makes clusters of another graph of the same vertices.
func (m *partitioner) coarsenLike(like, g *levelGraph, depth int) (*levelGraph, level, bool) {
	if g.n <= m.coarsest() {
		return nil, level{}, false
	}
	tuning := m.r.tuning
	most := make([]int64, g.con)
	for c, sum := range g.totals() {
		most[c] = max(min(m.limit[c]/20, sum*tuning.maxCluster/int64(g.n)), 1)
	}
	rounds := tuning.rounds
	if depth == 0 {
		rounds = tuning.finestRounds
	}
	label := m.r.cluster(like, most, rounds, tuning.balls, m.r.key.Fold(uint64(depth)))
	coarse, l := m.r.contract(g, label, tuning.sparsify && like == g)
	if coarse.n > g.n*19/20 {
		coarse.free(m.r)
		free(m.r.mem, label)
		return nil, level{}, false
	}
	return coarse, l, true
}

// coarsest is the number of vertices at which coarsening stops.
func (m *partitioner) coarsest() int { return max(m.r.tuning.coarsestPerPart*m.k, m.r.tuning.coarsest) }

// sequentialEdges is the number of edges up to which a level is refined by sequential FM.
const sequentialEdges = 1 << 20

// refine improves the partition of one level. Only vertices in hint can be on the boundary
// if it is not nil.
func (m *partitioner) refine(a *assignment, hint []uint32, finest bool) {
	if a.g.edges() > sequentialEdges {
		m.refineLarge(a, finest)
	} else {
		m.refineSmall(a, hint)
	}
	if finest && m.p.Volume {
		m.r.lowerVolume(a)
	}
}

func (m *partitioner) refineLarge(a *assignment, finest bool) {
	ratio, patience := 0.75, 1
	if finest {
		ratio, patience = 0.25, 2
	}
	j := m.r.newJet(a, ratio)
	j.refine(20, patience)
	j.free()
	m.r.greedy(a, 5)
	if a.g.con > 1 && a.g.wantsTable(m.k, m.r.tuning.hubs) { // limits block most moves: their order matters
		m.r.newKwayFM(a, nil).refine(8, a.g.n/20)
	}
}

func (m *partitioner) refineSmall(a *assignment, hint []uint32) {
	f := m.r.newKwayFM(a, hint)
	f.refine(16, patienceFor(a.g.n))
	if a.excess() == 0 { // localized searches keep limits, they do not restore them
		f.localized(m.r.tuning.localRounds, 10, m.r.key.Fold(uint64(a.g.n)))
	}
}

// boundaryHint lists the vertices of a level that can be on the boundary because their
// cluster is, as the refinement of the coarser level left it; nil, for all, if the level
// is large.
func (m *partitioner) boundaryHint(l level) []uint32 {
	if l.fine.edges() > sequentialEdges {
		return nil
	}
	boundary := makeZeroed[bool](m.r.mem, m.r.kway.a.g.n)
	for _, v := range m.r.kway.boundary() {
		boundary[v] = true
	}
	hint := makeUnzeroed[uint32](m.r.mem, l.fine.n)
	n := 0
	for v, c := range l.to {
		hint[n] = uint32(v)
		if boundary[c] {
			n++
		}
	}
	free(m.r.mem, boundary)
	return hint[:n]
}

// limits returns the limits of one level; only at the finest must they be the true ones.
//
// Coarse vertices are heavy: within the true limits hardly one could move, and the
// shape of a mesh's parts is decided there. So parts may exceed them by three quarters
// of a mean vertex of the level, and finer levels move the excess out. More than that
// helps some meshes and ruins others: a part that grew up to a bottleneck must be pushed
// back from it, and the cut there was what made it good.
//
// Where light edges were dropped and several limits are tight, coarse levels use half of
// the tolerance only: the finest level sees many edges for the first time, and could not
// move anything into full parts.
func (m *partitioner) limits(g *levelGraph) []int64 {
	if g.n == m.p.Graph.Nodes() {
		return m.limit
	}
	limit := g.totals()
	for c, sum := range limit {
		switch sparsify := m.r.tuning.sparsify; {
		case sparsify && g.con > 1:
			limit[c] = (m.limit[c] + (sum+int64(m.k)-1)/int64(m.k)) / 2
		case !sparsify && g.edges() <= sequentialEdges:
			limit[c] = m.limit[c] + 3*sum/int64(4*g.n)
		default:
			limit[c] = m.limit[c]
		}
	}
	return limit
}
