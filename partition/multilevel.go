package partition

import (
	"context"

	"starling/rng"
)

// Multilevel cuts a graph into parts by coarsening it, cutting the coarsest graph,
// and refining the cut level by level on the way back.
//
//	threads   multilevel_crew.go      of small graphs
//	look      multilevel_style.go     what kind of graph is it?
//	cluster   multilevel_cluster.go   size-constrained label propagation
//	          multilevel_few.go       the same for small graphs
//	contract  multilevel_contract.go
//	          multilevel_trim.go      without the lightest edges
//	cut       multilevel_bisect.go    recursive bisection, several tries
//	          multilevel_grow.go      from one side that grows
//	          multilevel_halves.go    two sides at a time
//	refine    multilevel_jet.go       large graphs: all vertices at once
//	          multilevel_polish.go    then one by one
//	          multilevel_fm.go        small graphs: with a way out of dead ends
//	          multilevel_local.go     then from place to place
//	          multilevel_volume.go    the last step, if volume is the objective
//	balance   multilevel_balance.go
//
// It is parallel in every stage that touches the large graphs, and its result is a
// function of the problem and the seed.
//
// Limits hold from above only. Where many vertices have no edges, or few, they make
// up the weight of some parts, and the dense core of the graph stays together in
// others: that is what cuts least. Who wants the edges spread must say so with a
// constraint on edges.
func Multilevel(ctx context.Context, p *Problem) ([]uint32, error) {
	n := p.Graph.Nodes()
	parts := make([]uint32, n)
	if n == 0 {
		return parts, nil
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	if p.Parts == 1 {
		return parts, nil
	}
	mem := &mlMemory{}
	defer mem.freeAll()
	m := &mlPartition{mlRun: newMLRun(ctx, rng.New(p.Seed), p.Threads, mem), p: p, k: p.Parts}
	if edges := p.Graph.Edges(); edges >= mlTiny/16 && edges <= mlTiny {
		m.hire(mlIdle()) // now: they take a while to come
		defer m.dismiss()
	}
	l := newLoads(p)
	m.limit = l.limit
	g := m.newMLGraph(p, l.constraints)
	m.style = g.style(p.Parts)
	s := m.run(g)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for v, k := range s.part {
		parts[v] = uint32(k)
	}
	for k, weight := range l.weight {
		copy(weight, s.load[k*g.con:])
	}
	return parts, settle(ctx, p, parts, l)
}

// mlPartition is one run of Multilevel.
type mlPartition struct {
	*mlRun
	p     *Problem
	k     int
	limit []int64 // by constraint
}

func (m *mlPartition) progress(stage string, done, total int) {
	if m.p.Progress != nil {
		m.p.Progress(stage, int64(done), int64(total))
	}
}

// run is the multilevel scheme. What it returns is of no use if the context has ended.
func (m *mlPartition) run(g *mlGraph) *mlState {
	var levels []mlLevel
	for m.ctx.Err() == nil {
		coarse, level, ok := m.coarsen(g, len(levels))
		if !ok {
			break
		}
		levels = append(levels, level)
		g = coarse
		m.progress("coarsen", len(levels), len(levels))
	}
	if m.ctx.Err() != nil { // the graph may be large still
		return nil
	}
	s := newMLState(g, m.k, m.initial(g, m.k, m.limits(g)), mlSpread(m.limits(g), m.k))
	m.dismiss()
	m.refine(s, nil, len(levels) == 0)
	for i := len(levels) - 1; i >= 0; i-- {
		near := m.nearby(levels[i])
		m.finer(s, levels[i])
		m.refine(s, near, i == 0)
		mlFree(m.mem, near)
		m.progress("refine", len(levels)-i, len(levels))
	}
	return s
}

// finer carries s to the finer level, where its parts weigh what they do.
func (m *mlPartition) finer(s *mlState, l mlLevel) {
	s.g.free(m.mlRun)
	fine := m.project(l, s.part)
	mlFree(m.mem, s.part)
	s.g, s.part, s.limit = l.fine, fine, mlSpread(m.limits(l.fine), m.k)
}

// coarsen makes the next level, unless the graph is small already or will not shrink.
func (m *mlPartition) coarsen(g *mlGraph, level int) (*mlGraph, mlLevel, bool) {
	if g.n <= m.coarsest() {
		return nil, mlLevel{}, false
	}
	most := make([]int64, g.con)
	for c, sum := range g.totals() {
		most[c] = max(min(m.limit[c]/20, sum*m.style.shrink/int64(g.n)), 1)
	}
	rounds := m.style.rounds
	if level == 0 {
		rounds = m.style.finest
	}
	label := m.cluster(g, most, rounds, m.style.balls, m.key.Fold(uint64(level)))
	coarse, l := m.contract(g, label, m.style.trim)
	if coarse.n > g.n*19/20 {
		coarse.free(m.mlRun)
		mlFree(m.mem, label)
		return nil, mlLevel{}, false
	}
	return coarse, l, true
}

// coarsest is how many vertices are few enough to be cut by bisection.
func (m *mlPartition) coarsest() int { return max(m.style.perPart*m.k, m.style.fewest) }

// refine improves a partition of one level.
func (m *mlPartition) refine(s *mlState, near []uint32, finest bool) {
	g := s.g
	small := g.off[g.n] <= mlSmall
	if !small {
		hold, patience := 0.75, 1
		if finest {
			hold, patience = 0.25, 2
		}
		j := m.newJet(s, hold)
		j.refine(20, patience)
		j.free()
		m.polish(s, 5)
		if g.con > 1 && g.tabled(m.k) { // most moves wait for room: their order counts
			m.fm(s, nil).refine(8, g.n/20)
		}
	}
	if small {
		f := m.fm(s, near)
		f.refine(16, mlPatience(g.n))
		if s.excess() == 0 { // local keeps limits, it does not restore them
			f.local(m.style.searches, 10, m.key.Fold(uint64(g.n)))
		}
	}
	if finest && m.p.Objective == Volume {
		m.lowerVolume(s)
	}
}

// nearby lists the vertices that can be on the boundary of a level because those they
// went to are on that of the coarser one, as its refinement knows it; nil, for all, if
// that is large.
func (m *mlPartition) nearby(l mlLevel) []uint32 {
	if l.fine.off[l.fine.n] > mlSmall {
		return nil
	}
	boundary := mlMake[bool](m.mem, m.refiner.g.n)
	for _, v := range m.refiner.boundary() {
		boundary[v] = true
	}
	near := mlMakeSparse[uint32](m.mem, l.fine.n)
	n := 0
	for v, c := range l.to {
		near[n] = uint32(v)
		if boundary[c] {
			n++
		}
	}
	mlFree(m.mem, boundary)
	return near[:n]
}

// limits are those of one level; only at the finest must they be the true ones.
//
// Coarse vertices are heavy: within the true limits hardly one could move, and the
// shape of a mesh's parts is decided there. So parts may be too heavy by three
// quarters of a vertex of the level, and what is too much is moved out on the way
// back. More helps some meshes and ruins others: a part that grew up to a bottleneck
// must be pushed back from it, and the cut there was what made it good.
//
// Where light edges were trimmed and several limits are tight it is the other way
// round. The finest level sees many edges for the first time, and full parts could
// take nobody in: coarse levels use half of the tolerance only.
func (m *mlPartition) limits(g *mlGraph) []int64 {
	if g.n == m.p.Graph.Nodes() {
		return m.limit
	}
	limit := g.totals()
	for c, sum := range limit {
		switch {
		case m.style.trim && g.con > 1:
			limit[c] = (m.limit[c] + (sum+int64(m.k)-1)/int64(m.k)) / 2
		case !m.style.trim && g.off[g.n] <= mlSmall:
			limit[c] = m.limit[c] + 3*sum/int64(4*g.n)
		default:
			limit[c] = m.limit[c]
		}
	}
	return limit
}
