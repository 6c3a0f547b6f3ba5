package train

import (
	"cmp"
	"fmt"
	"slices"

	"starling/event"
	"starling/graph"
	"starling/nn"
)

// NeutronStar (Wang et al., "NeutronStar: Distributed GNN Training with Hybrid
// Dependency Management", SIGMOD 2022, §3) decides for every border vertex and layer
// whether its row is received, as halo does, or recomputed here from copies of what it
// depends on. With u a border vertex and h_u its input of layer l,
//
//	receive     bytes of h_u and of its gradient · seconds a byte from u's owner
//	recompute   Σ over what h_u depends on and is not here yet:
//	            seconds of a row + in-edges · seconds of an edge, for every layer up to l
//
// Each worker goes through the layers from the first and recomputes, cheapest first,
// what costs less than it saves, while there is memory; what one vertex made available
// is free for the next. A vertex whose row is received in one layer is received in all
// later ones, where recomputing it would cost more still.
//
// Exact. An epoch sends the rows that are received, forwards, and their gradients back.
// Features and edges of copies travel once, before.
func newNeutronStar(s *site) (planned, error) {
	layers := graphLayers(s.opt.Model)
	switch {
	case layers == 0:
		return newHalo(s)
	case s.paper:
		return nil, fmt.Errorf("neutronstar: %w", ErrUnplanned)
	}
	l := newLookup(s)
	model := nn.New(s.dev, s.opt.Model, s.opt.Seed)
	c, err := l.measure(model)
	l.release(model)
	if err != nil {
		return nil, err
	}
	return newHybrid(l, c)
}

// newHybrid is NeutronStar with given costs.
func newHybrid(l *lookup, c *costs) (planned, error) {
	own := func(v uint32) bool { _, ok := l.own(v); return ok }
	h := &hybrid{lookup: l, dependencies: newDependencies(c, own, l.budget()), marks: map[uint32]mark{}}
	if err := h.choose(); err != nil {
		return nil, err
	}
	copied := h.copies()
	if l.relays() {
		copied.first, copied.last = l.server()
	}
	borders, err := copied.borders(len(c.layers), func(_ int, v uint32) int { return l.part.Book.Owner(v) })
	if err != nil {
		return nil, err
	}
	if err := h.tell(len(copied.ids)); err != nil {
		return nil, err
	}
	return copied.strategy(borders)
}

// hybrid is a worker that chooses.
type hybrid struct {
	*lookup
	*dependencies
	marks map[uint32]mark
}

// choose goes through the layers, until none has anything to recompute on any worker.
func (h *hybrid) choose() error {
	for layer := range len(h.layers) {
		candidates := h.candidates(layer)
		if err := h.learn(candidates, layer); err != nil {
			return err
		}
		taken := h.greedy(candidates, layer)
		all, err := h.agree(float64(taken))
		if err != nil {
			return err
		}
		if layer > 0 && !slices.ContainsFunc(all, func(n []float64) bool { return n[0] > 0 }) {
			return nil
		}
	}
	return nil
}

// candidates are the border vertices that may pay in a layer, as far as is known, with
// what it costs to receive a row of theirs.
func (h *hybrid) candidates(layer int) (out []candidate) {
	for i, v := range h.part.Halo {
		if layer > 1 && h.depthOf(v) < layer-1 {
			continue
		}
		h.degree[v] = int64(h.part.Degrees[h.part.Core()+i])
		c := candidate{v: v, byteSeconds: h.between}
		if h.part.Book.Server(h.part.Book.Owner(v)) == h.part.Book.Server(h.end.Rank()) {
			c.byteSeconds = h.inside
		}
		if r := h.raise(v, layer); r.seconds < h.saves(c, layer) {
			out = append(out, c)
		}
	}
	return out
}

// learn looks up the in-edges that recomputing candidates needs, and the degrees of
// the vertices they come from.
func (h *hybrid) learn(candidates []candidate, layer int) error {
	missing := map[uint32]bool{}
	for _, c := range candidates {
		for _, v := range h.raise(c.v, layer).missing {
			missing[v] = true
		}
	}
	ids := sorted(missing)
	in, err := h.inEdges(ids)
	if err != nil {
		return err
	}
	unknown := map[uint32]bool{}
	for i, v := range ids {
		h.in[v] = in.Neighbors(uint32(i))
		if in.Weights != nil {
			h.weights[v] = in.Weights[in.Indptr[i]:in.Indptr[i+1]]
		}
		h.edgeFeatures[v] = in.EdgeRows(in.Indptr[i], in.Indptr[i+1])
		for _, u := range h.in[v] {
			if _, ok := h.degree[u]; !ok && !h.isOwn(u) {
				unknown[u] = true
			}
		}
	}
	ids = sorted(unknown)
	marks, err := h.lookup.marks(ids)
	for i, m := range marks {
		h.marks[ids[i]], h.degree[ids[i]] = m, int64(m.degree)
	}
	return err
}

// copies are what was chosen, in the order that borders want.
func (h *hybrid) copies() *copies {
	part := h.part.In
	c := &copies{lookup: h.lookup, marks: h.marks, in: &graph.CSR{Indptr: slices.Clone(part.Indptr), Weights: slices.Clone(part.Weights),
		EdgeDim: part.EdgeDim, EdgeFeatures: slices.Clone(part.EdgeFeatures)}}
	for _, u := range h.part.In.Indices {
		c.in.Indices = append(c.in.Indices, h.global(u))
	}
	for v := range h.depth {
		c.ids = append(c.ids, v)
	}
	slices.SortFunc(c.ids, func(a, b uint32) int { return cmp.Or(cmp.Compare(h.depth[b], h.depth[a]), cmp.Compare(a, b)) })
	for _, v := range c.ids {
		c.depth = append(c.depth, h.depth[v])
		if h.depth[v] > 0 {
			c.in.Indices, c.in.Weights = append(c.in.Indices, h.in[v]...), append(c.in.Weights, h.weights[v]...)
			c.in.EdgeFeatures = append(c.in.EdgeFeatures, h.edgeFeatures[v]...)
			c.in.Indptr = append(c.in.Indptr, int64(len(c.in.Indices)))
		}
	}
	return c
}

// tell says what was chosen, of all workers together.
func (h *hybrid) tell(copied int) error {
	mine := make([]float64, 0, len(h.layers)+3)
	for layer := range h.layers {
		n := 0.0
		for _, v := range h.part.Halo {
			if h.depthOf(v) >= layer {
				n++
			}
		}
		mine = append(mine, n)
	}
	all, err := h.agree(append(mine, float64(h.part.Meta.Halo), float64(copied), float64(h.bytes))...)
	if err != nil || h.end.Rank() != 0 {
		return err
	}
	n := len(h.layers)
	sum := make([]int64, n+2)
	var most int64
	for _, v := range all {
		for i := range sum {
			sum[i] += int64(v[i])
		}
		most = max(most, int64(v[n+2]))
	}
	h.events.On(event.Note{Minor: true, Text: fmt.Sprintf("neutronstar: of %d border rows a layer, %v (by layer) are not received; %d copies, at most %s for them on a worker",
		sum[n], sum[:n], sum[n+1], event.Bytes(most))})
	return nil
}
