package partition

import "math/bits"

// Clustering of graphs that lie in the cache whole. What large ones need (groups that
// decide together, tables that stay small) takes longer here than the work itself:
// vertices choose and move in turn, and weights are summed in an array over all clusters.

// mlTiny edges are so few.
const mlTiny = 1 << 18

// oneByOne lets all vertices choose and move in turn.
func (c *mlClustering) oneByOne(rounds int, balls bool) {
	var order, sum []uint32
	c.r.both(func() { order, sum = c.shuffled(), mlMake[uint32](c.r.mem, c.g.n) }, c.start)
	if balls && c.g.w == nil {
		c.balls(order)
	}
	for round := range rounds {
		salt := c.key.Fold(uint64(round)).Uint32(0)
		for _, v := range order {
			if to := c.best(v, sum, (v^salt)*mlSpreader); to != c.label[v] {
				c.move(v, to)
			}
		}
	}
	open := order[:c.g.n]
	clear(open)
	c.twoHopFew(open, sum)
	mlFree(c.r.mem, sum)
	mlFree(c.r.mem, order)
}

// balls starts with clusters of a vertex and those of its neighbours that are still
// alone. In a mesh all edges are alike, and choosing among them would tell nothing;
// balls are round, fit together, and take a fraction of the time.
func (c *mlClustering) balls(order []uint32) {
	if c.g.vw == nil {
		c.equalBalls(order)
		return
	}
	for _, v := range order {
		if c.count[v] != 1 { // it has joined another, or others have joined it
			continue
		}
		for _, u := range c.g.adj[c.g.off[v]:c.g.off[v+1]] {
			if c.count[u] == 1 && u != v && c.room(u, v) {
				c.move(u, v)
			}
		}
	}
}

// equalBalls is balls where all vertices weigh one.
func (c *mlClustering) equalBalls(order []uint32) {
	label, count, most := c.label, c.count, uint32(min(c.cap[0], int64(c.g.n)))
	for _, v := range order {
		if count[v] != 1 {
			continue
		}
		count[v] = 0 // not its own neighbour
		size := uint32(1)
		for _, u := range c.g.adj[c.g.off[v]:c.g.off[v+1]] { // who is alone nobody can foresee: no branches
			joins := mlOne(count[u] == 1) & mlOne(size < most)
			label[u] ^= (label[u] ^ v) & -joins
			count[u] -= joins
			size += joins
		}
		count[v] = size
	}
}

// shuffled is the order of the visits: by the magnitude of the degree, as those with few
// edges have the least choice, and at random within one. A few dozen sweeps in
// the order of the numbers are random enough. Vertices without edges are left out.
func (c *mlClustering) shuffled() []uint32 {
	const sweeps, magnitudes = 32, 6
	n := c.g.n
	slot := mlMake[uint8](c.r.mem, n)
	var next [sweeps*magnitudes + 1]uint32
	salt := c.key.Fold(1 << 32).Uint32(0)
	for v := range uint32(n) {
		h := (v ^ salt) * mlSpreader
		h = (h ^ h>>15) * 0x85ebca6b
		slot[v] = uint8(min(bits.Len(uint(c.g.degree(v))), magnitudes-1)*sweeps) + uint8(h>>27)
		next[slot[v]+1]++
	}
	for i := range len(next) - 1 {
		next[i+1] += next[i]
	}
	lone := next[sweeps]
	order := mlMake[uint32](c.r.mem, n)
	for v := range uint32(n) {
		i := slot[v]
		order[next[i]] = v
		next[i]++
	}
	mlFree(c.r.mem, slot)
	copy(order, order[lone:])
	return order[:uint32(n)-lone]
}

// best is the cluster v has most weight to among those with room, its own if none has
// more than that. Equals are told apart by salt. All of sum is zero before and after.
// Which neighbour wins nobody can foresee: ranks are compared without branches.
func (c *mlClustering) best(v uint32, sum []uint32, salt uint32) uint32 {
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
		count, room := c.count, c.cap[0]
		for _, u := range adj {
			l := label[u]
			rank := uint64(sum[l])<<32 | uint64(l^salt)
			sum[l] = 0
			most = max(most, rank&-(uint64(int64(count[l])-room)>>63)) // zero if there is no room
		}
	case c.g.con == 1:
		load, room := c.load, c.cap[0]-c.g.vw[v]+1
		for _, u := range adj {
			l := label[u]
			rank := uint64(sum[l])<<32 | uint64(l^salt)
			sum[l] = 0
			most = max(most, rank&-(uint64(load[l]-room)>>63))
		}
	default:
		for _, u := range adj {
			l := label[u]
			rank := uint64(sum[l])<<32 | uint64(l^salt)
			sum[l] = 0
			if rank > most && c.room(v, l) {
				most = rank
			}
		}
	}
	if most == stay {
		return own
	}
	return uint32(most) ^ salt
}

// twoHopFew is twoHop, in turn. All of open and sum is zero.
func (c *mlClustering) twoHopFew(open, sum []uint32) {
	loose := mlNone
	for v, l := range c.label {
		if c.count[l] > 1 {
			continue
		}
		if c.g.degree(uint32(v)) == 0 {
			loose = c.join(uint32(v), loose)
			continue
		}
		f := c.favouriteFew(uint32(v), sum)
		open[f] = c.join(uint32(v), open[f]-1) + 1
	}
}

// favouriteFew is favourite with an array for the sums, which are zero before and after.
func (c *mlClustering) favouriteFew(v uint32, sum []uint32) uint32 {
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
