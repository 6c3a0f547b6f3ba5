package multilevel

import "starling/rng"

// Two partitions of a graph seldom cut the same edges. Combining them coarsens the graph inside the blocks in which
// both agree, so that each of them is a partition of the coarsest graph too. From the better one, refinement on the way
// back then moves whole blocks, which moves of single vertices never could: it finds the better one of each region.
//
//	P. Sanders, C. Schulz: Distributed evolutionary graph partitioning, 2012

// bestOf is the best of a try with the run's seed and one with each of some others, which are combined one by one.
func (m *partitioner) bestOf(g *levelGraph, seeds []uint64) *assignment {
	best := m.orCore(m.partition(g))
	for i, seed := range seeds {
		m.progress("try", i+1, len(seeds)+1)
		m.r.key = rng.New(seed)
		other := m.orCore(m.partition(g))
		if m.r.ctx.Err() != nil {
			break
		}
		if m.better(other, best) {
			best, other = other, best
		}
		block := m.r.blocks(best.part, other.part)
		other.part = append(other.part[:0], best.part...)
		if a := m.combine(g, block, other.part); m.better(a, best) {
			best = a
		}
	}
	if len(seeds) > 0 {
		m.progress("try", len(seeds)+1, len(seeds)+1)
	}
	return best
}

// better compares two partitions of the finest graph.
func (m *partitioner) better(a, b *assignment) bool {
	return better(a.excess(), m.r.cut(a), b.excess(), m.r.cut(b))
}

// blocks numbers the sets of vertices that are in one part in both partitions.
func (r *run) blocks(a, b []uint16) []uint32 {
	block, number := makeUnzeroed[uint32](r.mem, len(a)), map[uint32]uint32{}
	for v := range a {
		pair := uint32(a[v])<<16 | uint32(b[v])
		n, known := number[pair]
		if !known {
			n = uint32(len(number))
			number[pair] = n
		}
		block[v] = n
	}
	return block
}

// combine coarsens inside blocks, and refines the partition that it starts from.
func (m *partitioner) combine(g *levelGraph, block []uint32, start []uint16) *assignment {
	var levels []level
	for m.r.ctx.Err() == nil {
		inside := m.r.inside(g, block)
		coarse, l, ok := m.coarsenLike(inside, g, len(levels))
		inside.free(m.r)
		if !ok {
			break
		}
		next, at := makeUnzeroed[uint32](m.r.mem, coarse.n), makeUnzeroed[uint16](m.r.mem, coarse.n)
		for v, c := range l.to {
			next[c], at[c] = block[v], start[v]
		}
		free(m.r.mem, block)
		if len(levels) > 0 {
			free(m.r.mem, start)
		}
		levels, g, block, start = append(levels, l), coarse, next, at
	}
	return m.refineUp(newAssignment(g, m.k, start, repeatLimits(m.limits(g), m.k)), levels)
}

// inside is a graph without the edges between blocks. It shares the weights of its vertices.
func (r *run) inside(g *levelGraph, block []uint32) *levelGraph {
	h := &levelGraph{n: g.n, con: g.con, off: makeZeroed[int64](r.mem, g.n+1)}
	h.adj = makeUnzeroed[uint32](r.mem, int(g.edges()))
	if g.w != nil {
		h.w = makeUnzeroed[uint32](r.mem, int(g.edges()))
	}
	if g.vw != nil {
		h.vw = makeUnzeroed[int64](r.mem, len(g.vw))
		copy(h.vw, g.vw)
	}
	at := int64(0)
	for v := range uint32(g.n) {
		for e := g.off[v]; e < g.off[v+1]; e++ {
			if u := g.adj[e]; block[u] == block[v] {
				h.adj[at] = u
				if h.w != nil {
					h.w[at] = g.w[e]
				}
				at++
			}
		}
		h.off[v+1] = at
	}
	return h
}
