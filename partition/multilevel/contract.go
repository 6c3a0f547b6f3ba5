package multilevel

import "sort"

// level is a step of coarsening: the fine graph, and the coarse vertex of each of its own.
type level struct {
	fine *levelGraph
	to   []uint32 // by fine vertex: the coarse one
}

// contract makes one vertex of every cluster. It overwrites label with the numbers of
// the coarse vertices, which are ordered by the lowest fine vertex in each.
func (r *run) contract(g *levelGraph, label []uint32, sparsify bool) (*levelGraph, level) {
	n := r.renumber(label)
	var first, member []uint32
	var bound []int64 // by coarse vertex: edges of all its members
	r.both(func() { first, member = r.members(label, n) }, func() { bound = r.bounds(g, label, n) })
	c := &levelGraph{n: n, con: g.con, vw: r.sumWeights(g, label, first, n)}
	c.adj, c.w = makeUnzeroed[uint32](r.mem, int(bound[n])), makeUnzeroed[uint32](r.mem, int(bound[n]))
	c.off = makeZeroed[int64](r.mem, n+1)
	cuts := edgeRanges(bound, 1<<14)
	r.each(len(cuts)-1, 1, func(s *scratch, chunk, _, _ int) {
		at := bound[cuts[chunk]]
		for i := cuts[chunk]; i < cuts[chunk+1]; i++ {
			at = mergeEdges(s, g, c, label, member[first[i]:first[i+1]], uint32(i), at, bound[i+1]-bound[i])
		}
	})
	c.compact(r, cuts, bound)
	if sparsify {
		r.sparsify(c, bound, first)
	}
	free(r.mem, bound)
	free(r.mem, member)
	free(r.mem, first)
	return c, level{g, label}
}

// sumWeights sums vertex weights by coarse vertex.
func (r *run) sumWeights(g *levelGraph, label, first []uint32, n int) []int64 {
	sum := makeZeroed[int64](r.mem, n*g.con)
	if g.vw == nil {
		for i := range n {
			sum[i] = int64(first[i+1] - first[i])
		}
		return sum
	}
	for v, l := range label {
		for k := range g.con {
			sum[int(l)*g.con+k] += g.vw[v*g.con+k]
		}
	}
	return sum
}

// renumber turns names of clusters into 0..n-1.
func (r *run) renumber(label []uint32) int {
	id := makeZeroed[uint32](r.mem, len(label))
	var n uint32
	for v, l := range label {
		fresh := bit(id[l] == 0) // unpredictable: no branch
		n += fresh
		id[l] |= n & -fresh
		label[v] = id[l] - 1
	}
	free(r.mem, id)
	return int(n)
}

// members lists the fine vertices of every coarse one.
func (r *run) members(label []uint32, n int) (first, member []uint32) {
	first = makeZeroed[uint32](r.mem, n+2)
	for _, l := range label {
		first[l+2]++
	}
	for i := range n {
		first[i+2] += first[i+1]
	}
	member = makeZeroed[uint32](r.mem, len(label))
	for v, l := range label {
		member[first[l+1]] = uint32(v)
		first[l+1]++
	}
	return first, member
}

// bounds are prefix sums over coarse vertices of the degrees of their members.
func (r *run) bounds(g *levelGraph, label []uint32, n int) []int64 {
	bound := makeZeroed[int64](r.mem, n+1)
	for v, l := range label {
		bound[l+1] += int64(g.degree(uint32(v)))
	}
	for i := range n {
		bound[i+1] += bound[i]
	}
	return bound
}

// edgeRanges splits rows into ranges of about the given number of edges.
func edgeRanges(off []int64, size int64) []int {
	n := len(off) - 1
	cuts := []int{0}
	for at := 0; at < n; {
		want := off[at] + size
		at = max(at+1, sort.Search(n, func(i int) bool { return off[i] > want }))
		at = min(at, n)
		cuts = append(cuts, at)
	}
	return cuts
}

// mergeEdges writes the edges of coarse vertex i from position at on, and its degree
// to off[i+1]; it returns the position after them.
func mergeEdges(s *scratch, g, c *levelGraph, to, member []uint32, i uint32, at, most int64) int64 {
	if c.n < denseVertices-2 {
		return mergeDense(s, g, c, to, member, i, at)
	}
	t := &s.rating
	t.reset(int(min(most, int64(c.n))))
	for _, v := range member {
		lo, hi := g.off[v], g.off[v+1]
		keys := t.gather(g.adj[lo:hi], to)
		if g.w == nil {
			t.addUnit(keys)
		} else {
			t.addWeighted(keys, g.w[lo:hi])
		}
	}
	start := at
	for _, j := range t.used {
		slot := t.slot[j]
		t.slot[j] = 0
		if u := uint32(slot>>32) - 1; u != i {
			c.adj[at], c.w[at] = u, uint32(slot)
			at++
		}
	}
	t.used = t.used[:0]
	c.off[i+1] = at - start
	return at
}

// denseVertices is the number of vertices up to which an array over all stays in the cache.
const denseVertices = 1 << 14

// mergeDense is mergeEdges with an array over all coarse vertices. Whether an edge is new
// is unpredictable, so there is no branch: its end is always written, and kept if it is new.
func mergeDense(s *scratch, g, c *levelGraph, to, member []uint32, i uint32, at int64) int64 {
	if s.sum == nil {
		s.sum = &[denseVertices]uint32{}
	}
	const mask = denseVertices - 1
	sum, row, n := s.sum, c.adj[at:], uint64(0)
	sum[i&mask] = 1 // counts as seen
	for _, v := range member {
		lo, hi := g.off[v], g.off[v+1]
		adj := g.adj[lo:hi]
		if g.w == nil {
			for _, u := range adj {
				l := to[u]
				old := sum[l&mask]
				sum[l&mask] = old + 1
				row[n] = l
				n += (uint64(old) - 1) >> 63
			}
			continue
		}
		w := g.w[lo:hi]
		w = w[:len(adj)]
		for j, u := range adj {
			l := to[u]
			old := sum[l&mask]
			sum[l&mask] = old + w[j]
			row[n] = l
			n += (uint64(old) - 1) >> 63
		}
	}
	sum[i&mask] = 0
	w := c.w[at:][:n]
	for j, l := range row[:n] {
		w[j], sum[l&mask] = sum[l&mask], 0
	}
	c.off[i+1] = int64(n)
	return at + int64(n)
}

// compact moves the ranges together and gives back the memory behind them.
func (c *levelGraph) compact(r *run, cuts []int, bound []int64) {
	for i := range c.n {
		c.off[i+1] += c.off[i]
	}
	r.both(func() { c.adj = c.compactArray(r, c.adj, cuts, bound) },
		func() { c.w = c.compactArray(r, c.w, cuts, bound) })
}

// compactArray is compact for one array.
func (c *levelGraph) compactArray(r *run, all []uint32, cuts []int, bound []int64) []uint32 {
	for k := range len(cuts) - 1 {
		lo, hi := cuts[k], cuts[k+1]
		size := c.off[hi] - c.off[lo]
		copy(all[c.off[lo]:c.off[hi]], all[bound[lo]:bound[lo]+size])
	}
	return shrink(r.mem, all, int(c.off[c.n]))
}

// project carries a partition to the finer level and frees the level's map.
func (r *run) project(l level, coarse []uint16) []uint16 {
	part := makeZeroed[uint16](r.mem, l.fine.n)
	for v, c := range l.to {
		part[v] = coarse[c]
	}
	free(r.mem, l.to)
	return part
}
