package sample

import (
	"math"
	"sync"

	"starling/graph"
	"starling/rng"
)

// Negatives draws vertices w that replace the end v of an edge (u, v): the pair
// (u, w) should score lower than (u, v).
//
//	uniform         all vertices equally likely
//	by degree       P(w) ~ degree(w)^power; word2vec (Mikolov et al., NeurIPS
//	                2013) and GraphSAGE have 0.75. A vertex without edges is never drawn.
//
// With edges to avoid a draw that hits one is drawn again. After some tries it is drawn from a list of
// the free vertices, so that those of a hub are as likely as the formula says too.
//
// A draw is a function of seed, epoch, batch, edge and k.
type Negatives struct {
	nodes    int
	byDegree *Distribution          // nil: uniform
	taken    func(u, w uint32) bool // nil: nothing is avoided
	key      rng.Key
	free     sync.Map // by vertex that is linked with most others: the remaining ones
}

// tries is how often a draw that hit an edge is drawn again. A vertex that is
// linked with half of all others then fails once in 65536 times.
const tries = 16

// NewNegatives draws by degree to a power, uniformly if it is 0. With avoid no
// draw is the vertex itself or linked with it in g, as long as there are others.
func NewNegatives(g *graph.CSR, power float64, avoid bool, seed uint64) (*Negatives, error) {
	g = ascending(g)
	var taken func(u, w uint32) bool
	if avoid {
		taken = func(u, w uint32) bool { return u == w || linked(g, u, w) || linked(g, w, u) }
	}
	if g.Edges() == 0 {
		power = 0
	}
	return NegativesOf(g.Nodes(), power, func(v uint32) int { return g.Degree(v) }, taken, seed), nil
}

// NegativesOf draws of n vertices with the given degrees, which only a power above 0 needs. It
// avoids what is taken; nil: nothing.
func NegativesOf(n int, power float64, degree func(v uint32) int, taken func(u, w uint32) bool, seed uint64) *Negatives {
	out := &Negatives{nodes: n, taken: taken, key: rng.New(seed).Fold(useNegatives)}
	if power == 0 {
		return out
	}
	weights := make([]float64, n)
	for v := range weights {
		if d := degree(uint32(v)); d > 0 {
			weights[v] = math.Pow(float64(d), power)
		}
	}
	out.byDegree = NewDistribution(weights)
	return out
}

// Draw is negative k for vertex u, which an edge of a batch keeps.
func (n *Negatives) Draw(epoch, batch, edge, k int, u uint32) uint32 {
	return n.ByKey(n.Key(epoch, batch, edge).Fold(uint64(k)), u)
}

// Key returns the key of an edge's negatives; folded with k it is the key of negative k.
func (n *Negatives) Key(epoch, batch, edge int) rng.Key {
	return n.key.Fold(uint64(epoch)).Fold(uint64(batch)).Fold(uint64(edge))
}

// Avoids reports whether draws depend on the edges of the vertex that they are for.
func (n *Negatives) Avoids() bool { return n.taken != nil }

// ByKey is the draw of a key for vertex u.
func (n *Negatives) ByKey(key rng.Key, u uint32) uint32 {
	w := n.any(key, 0)
	if n.taken == nil {
		return w
	}
	for i := uint64(1); i < tries && n.taken(u, w); i++ {
		w = n.any(key, i)
	}
	if !n.taken(u, w) {
		return w
	}
	return n.freeOf(u).draw(key, w)
}

// free are the vertices that are no neighbours of a vertex, ascending.
type free struct {
	ids      []uint32
	byDegree *Distribution // nil: uniform, as where none of ids has a degree
}

// draw is a free vertex, drawn as if tries went on without end; w, the last of them, if there is none.
func (f *free) draw(key rng.Key, w uint32) uint32 {
	switch {
	case len(f.ids) == 0:
		return w
	case f.byDegree != nil:
		return f.ids[f.byDegree.Draw(key, tries)]
	}
	return f.ids[key.IntN(tries, len(f.ids))]
}

// freeOf is what u is not linked with. It is computed once: each of a hub's
// negatives would take as many steps as there are vertices.
func (n *Negatives) freeOf(u uint32) *free {
	if known, ok := n.free.Load(u); ok {
		return known.(*free)
	}
	f := &free{}
	for w := range uint32(n.nodes) {
		if !n.taken(u, w) {
			f.ids = append(f.ids, w)
		}
	}
	if n.byDegree != nil {
		f.byDegree = n.byDegree.among(f.ids)
	}
	n.free.Store(u, f)
	return f
}

// any is draw i of a key, linked or not.
func (n *Negatives) any(key rng.Key, i uint64) uint32 {
	if n.byDegree != nil {
		return n.byDegree.Draw(key, i)
	}
	return uint32(key.IntN(i, n.nodes))
}
