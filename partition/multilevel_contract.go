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
	first, member := r.members(label, n)
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
	bound := mlMake[int64](r.mem, n+1) // by coarse vertex: edges of all its members
	for i := range n {
		b := bound[i]
		for _, v := range member[first[i]:first[i+1]] {
			b += int64(g.degree(v))
		}
		bound[i+1] = b
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
		if id[l] == 0 {
			n++
			id[l] = n
		}
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

// mergeFew is merge for them. The row is put together aside, with i's own place first:
// whether an edge is new nobody can foresee, so nothing may depend on it but numbers.
func mergeFew(s *mlScratch, g, c *mlGraph, to, member []uint32, i uint32, at int64) int64 {
	if s.row == nil {
		s.row = &mlRow{}
	}
	place, slot := &s.row.place, &s.row.slot
	const mask = mlFewVertices - 1
	place[i&mask] = 1
	n := uint64(2)
	for _, v := range member {
		lo, hi := g.off[v], g.off[v+1]
		adj := g.adj[lo:hi]
		if g.w == nil {
			for _, u := range adj {
				l := to[u]
				p := uint64(place[l&mask])
				fresh := (p - 1) >> 63
				p += n & -fresh
				n += fresh
				place[l&mask] = uint16(p)
				slot[p&mask] = uint64(l)<<32 | uint64(uint32(slot[p&mask])+1)
			}
			continue
		}
		w := g.w[lo:hi]
		w = w[:len(adj)]
		for j, u := range adj {
			l := to[u]
			p := uint64(place[l&mask])
			fresh := (p - 1) >> 63
			p += n & -fresh
			n += fresh
			place[l&mask] = uint16(p)
			slot[p&mask] = uint64(l)<<32 | uint64(uint32(slot[p&mask])+w[j])
		}
	}
	place[i&mask], slot[1] = 0, 0
	row := slot[2:n]
	adj, w := c.adj[at:][:len(row)], c.w[at:][:len(row)]
	for j, x := range row {
		adj[j], w[j] = uint32(x>>32), uint32(x)
		place[x>>32&mask], row[j] = 0, 0
	}
	c.off[i+1] = int64(len(row))
	return at + int64(len(row))
}

// closeGaps moves the ranges together and gives back what is over.
func (c *mlGraph) closeGaps(r *mlRun, cuts []int, bound []int64) {
	for k := range len(cuts) - 1 {
		lo, hi := cuts[k], cuts[k+1]
		to := c.off[lo]
		for i := lo; i < hi; i++ {
			c.off[i+1] += c.off[i]
		}
		size := c.off[hi] - to
		copy(c.adj[to:to+size], c.adj[bound[lo]:bound[lo]+size])
		copy(c.w[to:to+size], c.w[bound[lo]:bound[lo]+size])
	}
	c.adj = mlShrink(r.mem, c.adj, int(c.off[c.n]))
	c.w = mlShrink(r.mem, c.w, int(c.off[c.n]))
}

// free gives back what contract made.
func (g *mlGraph) free(r *mlRun) {
	mlFree(r.mem, g.off)
	mlFree(r.mem, g.adj)
	mlFree(r.mem, g.w)
	mlFree(r.mem, g.vw)
}
