package multilevel

import "starling/graph"

// levelGraph is the graph of one level: undirected, every edge stored at both ends.
// Parallel edges and self-loops may occur at the finest level, where the arrays are
// the caller's; they are harmless, and merging them would need a copy.
type levelGraph struct {
	n   int
	off []int64
	adj []uint32
	w   []uint32 // edge weights; nil: one each
	con int      // number of constraints
	vw  []int64  // con weights per vertex; nil: one each (then con is 1)
}

func (g *levelGraph) degree(v uint32) int { return int(g.off[v+1] - g.off[v]) }

// edges counts an undirected edge twice.
func (g *levelGraph) edges() int64 { return g.off[g.n] }

// load is weight c of vertex v.
func (g *levelGraph) load(v uint32, c int) int64 {
	if g.vw == nil {
		return 1
	}
	return g.vw[int(v)*g.con+c]
}

// totals sums every constraint over all vertices.
func (g *levelGraph) totals() []int64 {
	sum := make([]int64, g.con)
	if g.vw == nil {
		sum[0] = int64(g.n)
		return sum
	}
	for i, w := range g.vw {
		sum[i%g.con] += w
	}
	return sum
}

// edgeWeight is the weight of the edge at position e.
func (g *levelGraph) edgeWeight(e int64) uint32 {
	if g.w == nil {
		return 1
	}
	return g.w[e]
}

// free gives back the memory of a graph that contract or subgraph made.
func (g *levelGraph) free(r *run) {
	free(r.mem, g.off)
	free(r.mem, g.adj)
	free(r.mem, g.w)
	free(r.mem, g.vw)
}

// finestGraph is the finest level. The arrays of a symmetric graph are used in place. Any
// other graph is copied with both directions of every edge, so that an edge weighs one for
// each direction it is stored in.
func (r *run) finestGraph(p *Problem) *levelGraph {
	g := &levelGraph{n: p.Graph.Nodes(), con: len(p.Constraints)}
	if p.Symmetric || p.Graph.Symmetric() {
		g.off, g.adj = p.Graph.Indptr, p.Graph.Indices
	} else {
		r.addReverse(p.Graph, g)
	}
	if len(p.Constraints) == 1 && p.Constraints[0].Weight == nil {
		return g
	}
	g.vw = makeZeroed[int64](r.mem, g.n*g.con)
	for c := range p.Constraints {
		p.Constraints[c].copyTo(g.vw[c:], g.con, g.n)
	}
	return g
}

// copyTo writes the weights of n vertices, stride apart.
func (c *Constraint) copyTo(to []int64, stride, n int) {
	for v := range n {
		to[v*stride] = c.of(uint32(v))
	}
}

// of is the weight of a vertex.
func (c *Constraint) of(v uint32) int64 {
	if c.Weight == nil {
		return 1
	}
	return int64(c.Weight[v])
}

// addReverse fills g with the edges of in and their reverses.
func (r *run) addReverse(in *graph.CSR, g *levelGraph) {
	g.off = makeZeroed[int64](r.mem, g.n+1)
	for _, u := range in.Indices {
		g.off[u+1]++
	}
	for v := range g.n {
		g.off[v+1] += g.off[v] + int64(in.Degree(uint32(v)))
	}
	next := makeZeroed[int64](r.mem, g.n)
	copy(next, g.off)
	g.adj = makeZeroed[uint32](r.mem, int(g.edges()))
	for v := range uint32(g.n) {
		row := in.Neighbors(v)
		copy(g.adj[next[v]:], row)
		next[v] += int64(len(row))
	}
	for v := range uint32(g.n) {
		for _, u := range in.Neighbors(v) {
			g.adj[next[u]] = v
			next[u]++
		}
	}
	free(r.mem, next)
}
