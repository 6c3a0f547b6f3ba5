package multilevel

import "math/bits"

// Label propagation on graphs that fit into the cache. What large graphs need (groups,
// small tables) would take longer than the work itself: vertices choose and move one after
// the other, and weights are summed in an array over all clusters.

// cacheSized is the number of edges up to which a graph fits into the cache.
const cacheSized = 1 << 18

// sequential lets vertices choose and move one after the other.
func (c *labelPropagation) sequential(rounds int, balls bool) {
	var order, sum []uint32
	c.r.both(func() { order, sum = c.visitOrder(), makeZeroed[uint32](c.r.mem, c.g.n) }, c.start)
	if balls && c.g.w == nil {
		c.balls(order)
	}
	for round := range rounds {
		salt := c.key.Fold(uint64(round)).Uint32(0)
		for _, v := range order {
			if to := c.best(v, sum, (v^salt)*golden); to != c.label[v] {
				c.move(v, to)
			}
		}
	}
	open := order[:c.g.n]
	clear(open)
	c.twoHopSmall(open, sum)
	free(c.r.mem, sum)
	free(c.r.mem, order)
}

// balls starts with clusters of a vertex and those of its neighbours that are still single.
// In a mesh all edges are alike, and choosing among them is arbitrary; balls are compact
// and take a fraction of the time.
func (c *labelPropagation) balls(order []uint32) {
	if c.g.vw == nil {
		c.equalBalls(order)
		return
	}
	for _, v := range order {
		if c.count[v] != 1 { // it has joined another, or others have joined it
			continue
		}
		for _, u := range c.g.adj[c.g.off[v]:c.g.off[v+1]] {
			if c.count[u] == 1 && u != v && c.fits(u, v) {
				c.move(u, v)
			}
		}
	}
}

// equalBalls is balls where all vertices weigh one.
func (c *labelPropagation) equalBalls(order []uint32) {
	label, count, most := c.label, c.count, uint32(min(c.cap[0], int64(c.g.n)))
	for _, v := range order {
		if count[v] != 1 {
			continue
		}
		count[v] = 0 // not its own neighbour
		size := uint32(1)
		for _, u := range c.g.adj[c.g.off[v]:c.g.off[v+1]] { // no branches: they are unpredictable
			joins := bit(count[u] == 1) & bit(size < most)
			label[u] ^= (label[u] ^ v) & -joins
			count[u] -= joins
			size += joins
		}
		count[v] = size
	}
}

// visitOrder sorts vertices by the power of two of the degree, as those with few edges have
// the least choice, and at random within one: 32 sweeps in ascending order are random
// enough. Vertices without edges are left out.
func (c *labelPropagation) visitOrder() []uint32 {
	const sweeps, magnitudes = 32, 6
	n := c.g.n
	slot := makeZeroed[uint8](c.r.mem, n)
	var next [sweeps*magnitudes + 1]uint32
	salt := c.key.Fold(1 << 32).Uint32(0)
	for v := range uint32(n) {
		h := (v ^ salt) * golden
		h = (h ^ h>>15) * 0x85ebca6b
		slot[v] = uint8(min(bits.Len(uint(c.g.degree(v))), magnitudes-1)*sweeps) + uint8(h>>27)
		next[slot[v]+1]++
	}
	for i := range len(next) - 1 {
		next[i+1] += next[i]
	}
	edgeless := next[sweeps]
	order := makeZeroed[uint32](c.r.mem, n)
	for v := range uint32(n) {
		i := slot[v]
		order[next[i]] = v
		next[i]++
	}
	free(c.r.mem, slot)
	copy(order, order[edgeless:])
	return order[:uint32(n)-edgeless]
}

// best is the cluster v has most weight to among those it fits into; its own if no other
// has more. Ties are broken by salt. All of sum is zero before and after. Which neighbour
// wins is unpredictable: ranks are compared without branches.
func (c *labelPropagation) best(v uint32, sum []uint32, salt uint32) uint32 {
	label := c.label
	own := label[v]
	lo, hi := c.g.off[v], c.g.off[v+1]
	adj := c.g.adj[lo:hi]
	if c.g.w == nil {
		for _, u := range adj {
			sum[label[u]]++
		}
	} else {
		w := c.g.w[lo:hi]
		for i, u := range adj {
			sum[label[u]] += w[i]
		}
	}
	stay := uint64(sum[own])<<32 | uint64(^uint32(0))
	sum[own] = 0
	most := stay
	switch {
	case c.g.vw == nil:
		count, space := c.count, c.cap[0]
		for _, u := range adj {
			l := label[u]
			rank := uint64(sum[l])<<32 | uint64(l^salt)
			sum[l] = 0
			most = max(most, rank&-(uint64(int64(count[l])-space)>>63)) // zero if v does not fit
		}
	case c.g.con == 1:
		load, space := c.load, c.cap[0]-c.g.vw[v]+1
		for _, u := range adj {
			l := label[u]
			rank := uint64(sum[l])<<32 | uint64(l^salt)
			sum[l] = 0
			most = max(most, rank&-(uint64(load[l]-space)>>63))
		}
	default:
		for _, u := range adj {
			l := label[u]
			rank := uint64(sum[l])<<32 | uint64(l^salt)
			sum[l] = 0
			if rank > most && c.fits(v, l) {
				most = rank
			}
		}
	}
	if most == stay {
		return own
	}
	return uint32(most) ^ salt
}

// twoHopSmall is twoHop, sequential. All of open and sum is zero.
func (c *labelPropagation) twoHopSmall(open, sum []uint32) {
	edgeless := noCluster
	for v, l := range c.label {
		if c.count[l] > 1 {
			continue
		}
		if c.g.degree(uint32(v)) == 0 {
			edgeless = c.join(uint32(v), edgeless)
			continue
		}
		f := c.favouriteSmall(uint32(v), sum)
		open[f] = c.join(uint32(v), open[f]-1) + 1
	}
}

// favouriteSmall is favourite with an array for the sums, which are zero before and after.
func (c *labelPropagation) favouriteSmall(v uint32, sum []uint32) uint32 {
	label, own := c.label, c.label[v]
	lo, hi := c.g.off[v], c.g.off[v+1]
	adj := c.g.adj[lo:hi]
	for i, u := range adj {
		sum[label[u]] += c.g.edgeWeight(lo + int64(i))
	}
	sum[own] = 0
	most := uint64(^own)
	for _, u := range adj {
		l := label[u]
		most = max(most, uint64(sum[l])<<32|uint64(^l))
		sum[l] = 0
	}
	return ^uint32(most)
}
