package multilevel

import "container/heap"

// Vertices without edges cut nothing wherever they are. Where they are many, as in R-MAT, they
// weigh nothing until the end: otherwise they would fill the parts, and limits would block most
// moves of the others. Then they even the parts out.

// manyIsolated is the share of isolated vertices, one in manyIsolated, from which on they are set aside.
const manyIsolated = 50

// setAsideIsolated makes vertices without edges weigh nothing if they are many, and lists them.
func (r *run) setAsideIsolated(g *levelGraph) (aside []uint32) {
	for v := range uint32(g.n) {
		if g.degree(v) == 0 {
			aside = append(aside, v)
		}
	}
	if len(aside) < g.n/manyIsolated+1 || len(aside) == g.n {
		return nil
	}
	if g.vw == nil {
		g.vw = makeZeroed[int64](r.mem, g.n)
		for v := range g.vw {
			g.vw[v] = 1
		}
	}
	for _, v := range aside {
		clear(g.vw[int(v)*g.con : (int(v)+1)*g.con])
	}
	return aside
}

// placeSetAside gives these vertices their weights again, and puts each into the emptiest part if
// it fits there, else where it exceeds limits least.
func (m *partitioner) placeSetAside(a *assignment, aside []uint32) {
	parts := partsByFullness{a: a}
	for p := range a.k {
		parts.order = append(parts.order, uint16(p))
	}
	heap.Init(&parts)
	conn := make([]int64, a.k)
	for _, v := range aside {
		for c := range a.g.con {
			a.g.vw[int(v)*a.g.con+c] = m.p.Constraints[c].of(v)
		}
		if p := parts.order[0]; a.fits(v, p) {
			a.insert(v, p)
			heap.Fix(&parts, 0)
			continue
		}
		a.insert(v, a.bestPlacement(v, conn))
		heap.Init(&parts)
	}
}

// partsByFullness is a heap of parts, the emptiest first.
type partsByFullness struct {
	a     *assignment
	order []uint16
}

func (h *partsByFullness) Len() int { return len(h.order) }
func (h *partsByFullness) Less(i, j int) bool {
	x, y := h.a.fullness(int(h.order[i])), h.a.fullness(int(h.order[j]))
	return x < y || x == y && h.order[i] < h.order[j]
}
func (h *partsByFullness) Swap(i, j int) { h.order[i], h.order[j] = h.order[j], h.order[i] }
func (h *partsByFullness) Push(any)      {}
func (h *partsByFullness) Pop() any      { return nil }
