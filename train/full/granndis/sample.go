package granndis

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"starling/event"
	"starling/exchange"
	"starling/graph"
	"starling/nn"
	"starling/tensor"
	"starling/train"
	"starling/train/site"
	"starling/wire"
)

// Expansion-aware sampling (Song et al., PACT 2024, §5.3) takes of other servers' vertices
// at most h hops and, for every vertex, at most f neighbours; everything inside the server
// stays. What was taken is preloaded, for all layers unless fewer are asked for, so that
// only sums of gradients travel between servers while training. After k of them the halo
// rows that were taken are received from their owners, who compute them from what their own
// server has: worth it where the last layer's rows are narrow. Among a vertex's neighbours
// those with most neighbours of their own that the server does not have come first, as they
// stand for most of what is left out; ties go to the lower number. The choice is made once.
//
// Edges from vertices that were not taken are left out, and those that a vertex keeps
// count for them: a mean is the mean over kept neighbours, and a sum (GCN's too, which
// keeps its scale of whole-graph degrees) grows by in-edges in the whole graph over
// in-edges kept. So the rows that weights see in training are as large as those they see
// when accuracy is measured. (Degrees of the sampled graph would give GCN larger rows
// for vertices with remote neighbours than for others.) Attention needs none of this: its
// coefficients sum to one. The paper has kept edges count as they are, which --eas-plain does:
// sums are smaller then, and means too, since they are over the in-edges in the whole graph.
//
// Accuracy is measured on the whole graph, as halo does. With f over all degrees and h
// the number of layers nothing is left out.
type sampling struct{ hops, fanout int }

// newSampling reads HOPS,FANOUT.
func newSampling(text string) (*sampling, error) {
	h, f, ok := strings.Cut(text, ",")
	hops, err := strconv.Atoi(strings.TrimSpace(h))
	fanout, err2 := strconv.Atoi(strings.TrimSpace(f))
	if !ok || err != nil || err2 != nil || hops < 0 || fanout < 0 {
		return nil, fmt.Errorf("granndis samples HOPS,FANOUT beyond a server's own vertices, as in 1,15; not %q", text)
	}
	return &sampling{hops, fanout}, nil
}

// sample keeps of what a hop's edges lead to what the server's workers pick.
func (n *neighbourhood) sample(last *hop, news []finding) ([]finding, error) {
	left := map[uint32]int64{} // neighbours that the server does not have
	for _, f := range news {
		n.links[f.v] += int64(f.need)
		left[f.v] = int64(f.Degree) - n.links[f.v]
	}
	picked := n.pick.of(last.in, left)
	b, _ := binary.Append(nil, binary.LittleEndian, picked)
	in, err := n.TellServer(n.first, n.last, b)
	if err != nil {
		return nil, err
	}
	taken := map[uint32]bool{}
	for _, b := range in {
		for _, v := range exchange.Numbers(b) {
			taken[v] = true
		}
	}
	return slices.DeleteFunc(news, func(f finding) bool { return !taken[f.v] }), nil
}

// of lists the candidates that some row picks, ascending: of each row's in-neighbours
// those with most left, until with those that rows before it picked there are as many
// as the fanout.
func (p *sampling) of(in *graph.CSR, left map[uint32]int64) []uint32 {
	picked := map[uint32]bool{}
	var row []uint32
	for v := range in.Nodes() {
		row = row[:0]
		for _, u := range in.Neighbors(uint32(v)) {
			if _, ok := left[u]; ok {
				row = append(row, u)
			}
		}
		slices.SortFunc(row, func(a, b uint32) int { return cmp.Or(cmp.Compare(left[b], left[a]), cmp.Compare(a, b)) })
		row = slices.Compact(row)
		left := p.fanout
		for _, u := range row {
			if picked[u] {
				left--
			}
		}
		for _, u := range row {
			if left > 0 && !picked[u] {
				picked[u] = true
				left--
			}
		}
	}
	return slices.Sorted(maps.Keys(picked))
}

// thin leaves out the edges from vertices that were not taken. An edge from a vertex
// that came two hops after its end or later is left out too: the layers of that vertex
// are not computed as far. weigh makes kept edges heavier; else degrees make up for what
// is lost, which costs nothing, but is no way for plain sums. plain: nothing makes up for it.
func (n *neighbourhood) thin(weigh, plain bool) {
	lost := false
	for j := range n.hops {
		h := &n.hops[j]
		in := h.in
		h.in = &graph.CSR{Indptr: []int64{0}, EdgeDim: in.EdgeDim}
		for v := range in.Nodes() {
			first := len(h.in.Indices)
			for e := in.Indptr[v]; e < in.Indptr[v+1]; e++ {
				if n.keeps(j, in.Indices[e]) {
					h.in.Indices = append(h.in.Indices, in.Indices[e])
					h.in.Weights = append(h.in.Weights, weightOf(in, e))
					h.in.EdgeFeatures = append(h.in.EdgeFeatures, in.EdgeRows(e, e+1)...)
				}
			}
			share, degree := 1.0, in.Degree(uint32(v))
			if kept := len(h.in.Indices) - first; kept < degree {
				lost = true
				share = float64(kept) / float64(degree)
			}
			for e := first; e < len(h.in.Weights) && weigh && !plain; e++ {
				h.in.Weights[e] /= float32(share)
			}
			h.kept = append(h.kept, share)
			h.in.Indptr = append(h.in.Indptr, int64(len(h.in.Indices)))
		}
	}
	for j := range n.hops {
		if !n.w.Part.Book.Weighted && (plain || !(weigh && lost)) {
			n.hops[j].in.Weights = nil
		}
		if plain || weigh || !lost {
			n.hops[j].kept = nil
		}
	}
}

// weightOf is 1 in graphs without weights.
func weightOf(g *graph.CSR, e int64) float32 {
	if g.Weights == nil {
		return 1
	}
	return g.Weights[e]
}

// keeps reports whether a vertex of hop j has an edge from u.
func (n *neighbourhood) keeps(j int, u uint32) bool {
	if !n.remote(u) {
		return true
	}
	at, ok := n.at(u)
	return ok && int(at.hop) <= j+1
}

// sampled trains on what was sampled and measures on everything.
type sampled struct {
	*exchange.Aggregator // of the pass that is under way
	training             *exchange.Replicating
	measuring            *exchange.Aggregator
}

func newSampled(s *train.Site, w *exchange.Worker, o options, k, layers int) (train.Strategy, error) {
	pick, err := newSampling(o.EAS)
	switch {
	case err != nil:
		return nil, err
	case layers == 0:
		return site.Halo(w)
	case w.Alone:
		return nil, train.Unplanned("granndis with sampling")
	}
	if k < 0 { // not by cost: what is left out follows from k, and must not from a clock
		k = layers
	}
	l := exchange.NewSetup(w)
	n, err := newNeighbourhood(l, site.NewCosts(s, l), k, pick)
	if err != nil {
		return nil, err
	}
	if err := n.grow(min(pick.hops, max(k, 1))); err != nil {
		return nil, err
	}
	if err := n.edgesOf(len(n.hops) - 1); err != nil {
		return nil, err
	}
	n.thin(w.Model.Model == "gin", o.Plain)
	on, err := n.preload(k, layers, o.Bytes())
	if err != nil {
		return nil, err
	}
	w.Note("granndis samples at most %s and %s beyond a server: the first has %s of others",
		event.Counted(pick.hops, "hop"), event.Counted(pick.fanout, "neighbour"),
		event.Counted(len(n.placed), "vertex"))
	measuring := exchange.NewAggregator(w, exchange.NewRows(w), exchange.NewHalo(w.Dev, exchange.PartHalo(w.Part)))
	return &sampled{Aggregator: on.Aggregator, training: on, measuring: measuring}, nil
}

func (x *sampled) Begin(epoch, batch int, training bool) {
	x.Aggregator = x.measuring
	if training {
		x.Aggregator = x.training.Aggregator
	}
	x.Aggregator.Begin(epoch, batch, training)
}

func (x *sampled) Err() error { return errors.Join(x.training.Err(), x.measuring.Err()) }

func (x *sampled) Finish() error { return errors.Join(x.training.Finish(), x.measuring.Finish()) }

// Caches and Kept are of training, whatever pass came last.
func (x *sampled) Caches() []nn.Tensor { return x.training.Caches() }
func (x *sampled) Kept() int64         { return x.training.Kept() }

// Replicas are own vertices and sampled ones.
func (x *sampled) Replicas() ([]uint32, *graph.Features, []*graph.Features) {
	return x.training.Replicas()
}

// Sum and Constant give measuring passes the own rows of features only.
func (x *sampled) Sum(layer int, r nn.Reduction, dst, src tensor.Matrix) {
	x.Aggregator.Sum(layer, r, dst, src.Slice(0, x.Halo(layer).Src))
}

func (x *sampled) Constant(r nn.Reduction, src tensor.Matrix) (tensor.Matrix, bool) {
	return x.Aggregator.Constant(r, src.Slice(0, x.Halo(0).Src))
}

// Redrawn is of training passes alone.
func (x *sampled) Redrawn(r nn.Reduction, dropped tensor.Matrix, d *nn.Drawn) (tensor.Matrix, bool) {
	n := x.Halo(0).Src
	return x.Aggregator.Redrawn(r, dropped.Slice(0, n), &nn.Drawn{Features: d.Features.Slice(0, n), Dropout: d.Dropout})
}

// Plan is the training passes' of one and the measuring passes' of the other; the sum over
// features is kept for each.
func (x *sampled) Plan(model *nn.Model) *wire.Plan {
	p, m := x.training.Plan(model), x.measuring.Plan(model)
	p.Measure, p.OnceMeasured, p.Shared = m.Measure, m.OnceMeasured, false
	p.OnceMeasured.AddAll(m.Once, 1)
	return p
}
