package multilevel

// subgraph is one side of a bisected graph: its vertices that have edges inside the side,
// in members, and those edges. The side's other vertices are isolated. Edges are counted
// first: all pieces of a depth are in memory at once, and none should hold more than it
// needs.
func (r *run) subgraph(g *levelGraph, side []uint16, s uint16) (sub *levelGraph, members, isolated []uint32) {
	to := makeUnzeroed[uint32](r.mem, g.n)
	defer free(r.mem, to)
	sub = &levelGraph{con: g.con}
	edges := 0
	for v := range uint32(g.n) {
		to[v] = noCluster
		if side[v] != s {
			continue
		}
		inside, loops := g.edgesInside(v, side)
		if inside == loops {
			isolated = append(isolated, v)
			continue
		}
		to[v] = uint32(sub.n)
		sub.n++
		edges += inside
	}
	return sub, r.copyInside(sub, g, to, edges), isolated
}

// copyInside fills sub with the vertices of g that have a number in to, and the edges
// between them.
func (r *run) copyInside(sub, g *levelGraph, to []uint32, edges int) (members []uint32) {
	members = makeUnzeroed[uint32](r.mem, sub.n)[:0]
	sub.off, sub.vw = makeZeroed[int64](r.mem, sub.n+1)[:1], makeUnzeroed[int64](r.mem, sub.n*g.con)[:0]
	sub.adj, sub.w = makeUnzeroed[uint32](r.mem, edges)[:0], makeUnzeroed[uint32](r.mem, edges)[:0]
	for v := range uint32(g.n) {
		if to[v] == noCluster {
			continue
		}
		members = append(members, v)
		for c := range g.con {
			sub.vw = append(sub.vw, g.load(v, c))
		}
		for e := g.off[v]; e < g.off[v+1]; e++ {
			if u := to[g.adj[e]]; u != noCluster {
				sub.adj, sub.w = append(sub.adj, u), append(sub.w, g.edgeWeight(e))
			}
		}
		sub.off = append(sub.off, int64(len(sub.adj)))
	}
	return members
}

// edgesInside counts v's edges to vertices of its side, and how many of them are self-loops.
func (g *levelGraph) edgesInside(v uint32, side []uint16) (all, loops int) {
	own := side[v]
	for _, u := range g.adj[g.off[v]:g.off[v+1]] {
		all += int(bit(side[u] == own))
		loops += int(bit(u == v))
	}
	return all, loops
}
