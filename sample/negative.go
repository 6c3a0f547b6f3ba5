package sample

import (
	"math"
	"slices"
	"sync"

	"starling/graph"
	"starling/rng"
)

// Negatives draws vertices that stand against an edge's end: with u kept, the pair
// (u, w) is one that should score lower than (u, v).
//
//	uniform         every vertex alike
//	by degree       P(w) ~ degree(w)^power; 0.75 is that of word2vec (Mikolov et al.,
//	                NeurIPS 2013) and of GraphSAGE. A vertex without edges is never drawn.
//
// A draw is a function of seed, epoch, batch, edge and k.
type Negatives struct {
	g        *graph.CSR
	byDegree *distribution // nil: uniform
	avoid    bool
	key      rng.Key
	free     sync.Map // by vertex that is linked with most others: those it is not, ascending
}

// tries is how often a draw that hit an edge is drawn again. A vertex that is
// linked with half of all others then fails once in 65536 times.
const tries = 16

// NewNegatives draws by degree to a power, uniformly where that is 0. With avoid no
// draw is the vertex itself or linked with it in g, as long as there is any other.
func NewNegatives(g *graph.CSR, power float64, avoid bool, seed uint64) (*Negatives, error) {
	g = ascending(g)
	n := &Negatives{g: g, avoid: avoid, key: rng.New(seed).Fold(useNegatives)}
	if power == 0 || g.Edges() == 0 {
		return n, nil
	}
	weights := make([]float64, g.Nodes())
	for v := range weights {
		if d := g.Degree(uint32(v)); d > 0 {
			weights[v] = math.Pow(float64(d), power)
		}
	}
	n.byDegree = newDistribution(weights)
	return n, nil
}

// Draw is negative k for vertex u, which an edge of a batch keeps.
func (n *Negatives) Draw(epoch, batch, edge, k int, u uint32) uint32 {
	return n.draw(n.key.Fold(uint64(epoch)).Fold(uint64(batch)).Fold(uint64(edge)).Fold(uint64(k)), u)
}

func (n *Negatives) draw(key rng.Key, u uint32) uint32 {
	w := n.any(key, 0)
	if !n.avoid {
		return w
	}
	for i := uint64(1); i < tries && n.taken(u, w); i++ {
		w = n.any(key, i)
	}
	if !n.taken(u, w) {
		return w
	}
	// Whoever is linked with nearly all others gets the next one that is free.
	free := n.freeOf(u)
	if len(free) == 0 {
		return w
	}
	at, _ := slices.BinarySearch(free, w)
	return free[at%len(free)]
}

// freeOf are the vertices that u is not linked with. They are looked for once: a hub's
// negatives would take as many steps each as there are vertices.
func (n *Negatives) freeOf(u uint32) []uint32 {
	if known, ok := n.free.Load(u); ok {
		return known.([]uint32)
	}
	var free []uint32
	for w := range uint32(n.g.Nodes()) {
		if !n.taken(u, w) {
			free = append(free, w)
		}
	}
	n.free.Store(u, free)
	return free
}

// any is draw i of a key, whatever it hits.
func (n *Negatives) any(key rng.Key, i uint64) uint32 {
	if n.byDegree != nil {
		return n.byDegree.draw(key, i)
	}
	return uint32(key.IntN(i, n.g.Nodes()))
}

func (n *Negatives) taken(u, w uint32) bool {
	return u == w || linked(n.g, u, w) || linked(n.g, w, u)
}
