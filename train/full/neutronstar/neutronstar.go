// Package neutronstar is NeutronStar: each halo row is received or recomputed.
package neutronstar

import (
	"cmp"
	"slices"

	"starling/cost"
	"starling/event"
	"starling/exchange"
	"starling/graph"
	"starling/train"
	"starling/train/site"
)

// Strategy is NeutronStar (Wang et al., "NeutronStar: Distributed GNN Training with Hybrid
// Dependency Management", SIGMOD 2022, §3), which decides for every halo vertex and layer
// whether its row is received, as halo does, or recomputed here from replicas of what it
// depends on. With u a halo vertex and h_u its input of layer l,
//
//	receive     bytes of h_u and of its gradient · seconds per byte from u's owner
//	recompute   Σ over what h_u depends on and is not here yet:
//	            seconds of a row + in-edges · seconds of an edge, for every layer up to l
//
// Each worker goes through the layers from the first and recomputes, cheapest first, what
// costs less than it saves, while there is memory; what one vertex made available is free
// for the next. A vertex whose row is received in one layer is received in all later ones,
// where recomputing it would cost more still.
//
// Exact. An epoch sends the rows that are received, forward, and their gradients back.
// Features and edges of replicas travel once, before.
var Strategy = train.Describe(train.Descriptor{
	Name: "neutronstar", Mode: train.FullGraph,
	Paper: &train.Paper{Title: "NeutronStar, Wang et al., SIGMOD 2022", Claim: "1.81x to 14.25x over DistDGL and ROC",
		Why: "those are other systems; our baseline differs in nothing but the choice between receiving and " +
			"recomputing"},
	Exact:   "yes",
	Sends:   "halo rows that cost more to recompute than to receive",
	UseWhen: "sparse graph or halo, slow link",
	Overlap: train.Overlap{Rows: 0.1, Gradients: 0.3},
	ReplicaBytes: func(c train.Choice, workers int) int64 {
		o, _ := train.OptionOf[options](c)
		return o.BudgetOption.ReplicaBytes(workers)
	},
}, options{RowOptions: exchange.DefaultRows}, build)

type options struct {
	cost.RatesOption
	exchange.BudgetOption
	exchange.RelayOption
	exchange.RowOptions
}

func (o *options) Validate() error {
	if err := o.RatesOption.Validate(); err != nil {
		return err
	}
	if err := o.BudgetOption.Validate(); err != nil {
		return err
	}
	return o.RowOptions.Validate()
}

func build(s *train.Site, o options) (train.Strategy, error) {
	w := site.Worker(s, o.RowOptions, o.RelayOption)
	w.Masked = o.SparseRows
	switch {
	case w.Model.GraphLayers() == 0:
		return site.Halo(w)
	case w.Alone:
		return nil, train.Unplanned("neutronstar")
	}
	l := exchange.NewSetup(w)
	c, budget, err := site.NewCosts(s, l).ToChoose(o.RatesOption, o.BudgetOption)
	if err != nil {
		return nil, err
	}
	return newHybrid(l, c, budget)
}

// newHybrid is NeutronStar with given costs.
func newHybrid(l *exchange.Setup, c *cost.Epoch, budget int64) (train.Strategy, error) {
	own := func(v uint32) bool { _, ok := l.W.Own(v); return ok }
	owners, err := exchange.NewLookup(l, "neutronstar")
	if err != nil {
		return nil, err
	}
	h := &hybrid{Lookup: owners, w: l.W, dependencies: newDependencies(c, own, budget)}
	for i, v := range l.W.Part.Halo {
		if l.W.Learnt(l.W.Part.IDs[l.W.Part.Core()+i]) {
			h.learnt[v] = 0
		}
	}
	if err := h.choose(); err != nil {
		return nil, err
	}
	r := h.replicas()
	if l.W.Relays() {
		r.First, r.Last = l.W.Server()
	}
	halos, err := r.Halos(len(c.Layers), func(_ int, v uint32) int { return l.W.Part.Book.Owner(v) })
	if err != nil {
		return nil, err
	}
	if err := h.tell(len(r.IDs)); err != nil {
		return nil, err
	}
	a, err := r.Aggregator(halos)
	if err != nil {
		return nil, err
	}
	return a, nil
}

// hybrid is a worker that chooses.
type hybrid struct {
	*exchange.Lookup
	*dependencies
	w     *exchange.Worker
	known exchange.Vertices
}

// choose goes through the layers, until none has anything to recompute on any worker.
func (h *hybrid) choose() error {
	for layer := range len(h.costs.Layers) {
		candidates := h.candidates(layer)
		if err := h.lookUp(candidates, layer); err != nil {
			return err
		}
		taken := h.greedy(candidates, layer)
		all, err := h.Share(float64(taken))
		if err != nil {
			return err
		}
		if layer > 0 && !slices.ContainsFunc(all, func(n []float64) bool { return n[0] > 0 }) {
			return nil
		}
	}
	return nil
}

// candidates are the halo vertices that may gain in a layer, as far as is known, with
// what it costs to receive a row of theirs.
func (h *hybrid) candidates(layer int) (out []candidate) {
	for i, v := range h.w.Part.Halo {
		if _, learnt := h.learnt[v]; learnt || layer > 1 && h.depthOf(v) < layer-1 {
			continue
		}
		h.degree[v] = int64(h.w.Part.Degrees[h.w.Part.Core()+i])
		c := candidate{v: v, byteSeconds: h.costs.Between}
		if h.w.Part.Book.Server(h.w.Part.Book.Owner(v)) == h.w.Part.Book.Server(h.w.End.Rank()) {
			c.byteSeconds = h.costs.Inside
		}
		if h.seconds(v, layer) < h.saves(c, layer) {
			out = append(out, c)
		}
	}
	return out
}

// lookUp looks up the in-edges that recomputing candidates needs, and the degrees of
// the vertices they come from.
func (h *hybrid) lookUp(candidates []candidate, layer int) error {
	missing := map[uint32]bool{}
	for _, c := range candidates {
		for _, v := range h.raise(c.v, layer).missing {
			missing[v] = true
		}
	}
	ids := sorted(missing)
	in, err := h.InEdges(ids)
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
		if in.Relations != nil {
			h.relations[v] = in.Relations[in.Indptr[i]:in.Indptr[i+1]]
		}
		for _, u := range h.in[v] {
			if _, ok := h.degree[u]; !ok && !h.isOwn(u) {
				unknown[u] = true
			}
		}
	}
	ids = sorted(unknown)
	vertices, err := h.Vertices(ids)
	for i, m := range vertices {
		h.known.Know(ids[i], m)
		h.degree[ids[i]] = int64(m.Degree)
		if h.w.Learnt(m.ID) {
			h.learnt[ids[i]] = h.costs.Between
		}
	}
	return err
}

// replicas are what was chosen, in the order that halos want.
func (h *hybrid) replicas() *exchange.Replicas {
	part := h.w.Part.In
	c := &exchange.Replicas{Setup: h.Setup, Owners: h.Lookup, Known: &h.known,
		In: &graph.CSR{Indptr: slices.Clone(part.Indptr), Weights: slices.Clone(part.Weights),
			Relations: slices.Clone(part.Relations),
			EdgeDim:   part.EdgeDim, EdgeFeatures: slices.Clone(part.EdgeFeatures)}}
	for _, u := range h.w.Part.In.Indices {
		c.In.Indices = append(c.In.Indices, h.w.Global(u))
	}
	for v := range h.depth {
		c.IDs = append(c.IDs, v)
	}
	slices.SortFunc(c.IDs, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(h.depth[b], h.depth[a]),
			cmp.Compare(a, b))
	})
	for _, v := range c.IDs {
		c.Depth = append(c.Depth, h.depth[v])
		if h.depth[v] > 0 {
			c.In.Indices, c.In.Weights = append(c.In.Indices, h.in[v]...), append(c.In.Weights, h.weights[v]...)
			c.In.EdgeFeatures = append(c.In.EdgeFeatures, h.edgeFeatures[v]...)
			c.In.Relations = append(c.In.Relations, h.relations[v]...)
			c.In.Indptr = append(c.In.Indptr, int64(len(c.In.Indices)))
		}
	}
	return c
}

// tell says what was chosen, of all workers together.
func (h *hybrid) tell(replicas int) error {
	mine := make([]float64, 0, len(h.costs.Layers)+3)
	for layer := range h.costs.Layers {
		n := 0.0
		for _, v := range h.w.Part.Halo {
			if h.depthOf(v) >= layer {
				n++
			}
		}
		mine = append(mine, n)
	}
	all, err := h.Share(append(mine, float64(h.w.Part.Meta.Halo), float64(replicas), float64(h.bytes))...)
	if err != nil {
		return err
	}
	n := len(h.costs.Layers)
	sum := make([]int64, n+2)
	var most int64
	for _, v := range all {
		for i := range sum {
			sum[i] += int64(v[i])
		}
		most = max(most, int64(v[n+2]))
	}
	h.w.Note("neutronstar: of %s per layer, %v (by layer) are not received; %s, at most %s for "+
		"them on a worker",
		event.Counted(sum[n], "halo row"), sum[:n], event.Counted(sum[n+1], "replica"), event.Bytes(most))
	return nil
}
