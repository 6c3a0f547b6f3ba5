package partition

import "sort"

// mlLevel is a step of coarsening: the fine graph, and where its vertices went.
type mlLevel struct {
	fine *mlGraph
	to   []uint32 // by fine vertex: the coarse one
}

// contract makes one vertex of every cluster. It reuses label for the numbers of
// the coarse vertices, which follow the lowest fine vertex in each.
func (r *mlRun) contract(g *mlGraph, label []uint32, trim bool) (*mlGraph, mlLevel) {
	n := r.number(label)
	var first, member []uint32
	var bound []int64 // by coarse vertex: edges of all its members
	r.both(func() { first, member = r.members(label, n) }, func() { bound = r.bounds(g, label, n) })
	c := &mlGraph{n: n, con: g.con, vw: mlMake[int64](r.mem, n*g.con)}
	if g.vw == nil {
		for i := range n {
			c.vw[i] = int64(first[i+1] - first[i])
		}
	} else {
		for v, l := range label {
			for k := range g.con {
				c.vw[int(l)*g.con+k] += g.vw[v*g.con+k]
			}
		}
	}
	c.adj, c.w = mlMakeSparse[uint32](r.mem, int(bound[n])), mlMakeSparse[uint32](r.mem, int(bound[n]))
	c.off = mlMake[int64](r.mem, n+1)
	cuts := mlCuts(bound, 1<<14)
	r.each(len(cuts)-1, 1, func(s *mlScratch, chunk, _, _ int) {
		at := bound[cuts[chunk]]
		for i := cuts[chunk]; i < cuts[chunk+1]; i++ {
			at = r.merge(s, g, c, label, member[first[i]:first[i+1]], uint32(i), at, bound[i+1]-bound[i])
		}
	})
	c.closeGaps(r, cuts, bound)
	if trim {
		r.trim(c, bound, first)
	}
	mlFree(r.mem, bound)
	mlFree(r.mem, member)
	mlFree(r.mem, first)
	return c, mlLevel{g, label}
}

// number turns names of clusters into 0..n-1.
func (r *mlRun) number(label []uint32) int {
	id := mlMake[uint32](r.mem, len(label))
	var n uint32
	for v, l := range label {
		fresh := mlOne(id[l] == 0) // who is the first of a cluster nobody can foresee: no branches
		n += fresh
		id[l] |= n & -fresh
		label[v] = id[l] - 1
	}
	mlFree(r.mem, id)
	return int(n)
}

// members lists the fine vertices of every coarse one.
func (r *mlRun) members(label []uint32, n int) (first, member []uint32) {
	first = mlMake[uint32](r.mem, n+2)
	for _, l := range label {
		first[l+2]++
	}
	for i := range n {
		first[i+2] += first[i+1]
	}
	member = mlMake[uint32](r.mem, len(label))
	for v, l := range label {
		member[first[l+1]] = uint32(v)
		first[l+1]++
	}
	return first, member
}

// bounds are where the edges of the members of every coarse vertex begin and end.
func (r *mlRun) bounds(g *mlGraph, label []uint32, n int) []int64 {
	bound := mlMake[int64](r.mem, n+1)
	for v, l := range label {
		bound[l+1] += int64(g.degree(uint32(v)))
	}
	for i := range n {
		bound[i+1] += bound[i]
	}
	return bound
}

// mlCuts splits rows into ranges of about size edges.
func mlCuts(off []int64, size int64) []int {
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

// merge writes the edges of coarse vertex i from position at on, and its degree
// to off[i+1]; it returns the position after them.
func (r *mlRun) merge(s *mlScratch, g, c *mlGraph, to, member []uint32, i uint32, at, most int64) int64 {
	if c.n < mlFewVertices-2 {
		return mergeFew(s, g, c, to, member, i, at)
	}
	t := &s.rating
	t.reset(int(min(most, int64(c.n))))
	for _, v := range member {
		lo, hi := g.off[v], g.off[v+1]
		keys := t.gather(g.adj[lo:hi], to)
		if g.w == nil {
			t.addOnes(keys)
		} else {
			t.addAll(keys, g.w[lo:hi])
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

// mlFewVertices are so few that an array over all of them stays in the cache.
const mlFewVertices = 1 << 14

// mergeFew is merge for them. Whether an edge is new nobody can foresee, so nothing may
// depend on it but numbers: its end is written in any case, and stays if it is new.
func mergeFew(s *mlScratch, g, c *mlGraph, to, member []uint32, i uint32, at int64) int64 {
	if s.sum == nil {
		s.sum = &[mlFewVertices]uint32{}
	}
	const mask = mlFewVertices - 1
	sum, row, n := s.sum, c.adj[at:], uint64(0)
	sum[i&mask] = 1 // never new
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

// closeGaps moves the ranges together and gives back what is over.
func (c *mlGraph) closeGaps(r *mlRun, cuts []int, bound []int64) {
	for i := range c.n {
		c.off[i+1] += c.off[i]
	}
	r.both(func() { c.adj = c.closeUp(r, c.adj, cuts, bound) }, func() { c.w = c.closeUp(r, c.w, cuts, bound) })
}

// closeUp is closeGaps for one array.
func (c *mlGraph) closeUp(r *mlRun, all []uint32, cuts []int, bound []int64) []uint32 {
	for k := range len(cuts) - 1 {
		lo, hi := cuts[k], cuts[k+1]
		size := c.off[hi] - c.off[lo]
		copy(all[c.off[lo]:c.off[hi]], all[bound[lo]:bound[lo]+size])
	}
	return mlShrink(r.mem, all, int(c.off[c.n]))
}

// free gives back what contract made.
func (g *mlGraph) free(r *mlRun) {
	mlFree(r.mem, g.off)
	mlFree(r.mem, g.adj)
	mlFree(r.mem, g.w)
	mlFree(r.mem, g.vw)
}
