package train

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
	"starling/graph"
	"starling/nn"
	"starling/tensor"
)

// Expansion-aware sampling (Song et al., PACT 2024, §5.3) takes from beyond a server's
// border at most h hops and, for every vertex, at most f neighbours; everything inside
// the server stays. What was taken is preloaded, for all layers unless fewer are asked
// for, so that only sums of gradients travel between servers while training. After k of
// them the border rows that were taken are received from their owners, who compute them
// from what their own server has: worth it where the last layer's rows are narrow. Among a vertex's neighbours those
// with most neighbours of their own that the server does not have come first, as they
// stand for most of what is left out; ties go to the lower number. The choice is made
// once.
//
// Edges from vertices that were not taken are left out, and those that a vertex keeps
// count for them: a mean is the mean over kept neighbours, and a sum (GCN's too, which
// keeps its scale of whole-graph degrees) grows by in-edges in the whole graph over
// in-edges kept. So the rows that weights see in training are as large as those they see
// when accuracy is measured. (Degrees of the sampled graph would give GCN larger rows
// for vertices near the border than for others.) Attention needs none of this: its
// coefficients sum to one.
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
		return nil, fmt.Errorf("granndis samples HOPS,FANOUT beyond a server's border, as in 1,15; not %q", text)
	}
	return &sampling{hops, fanout}, nil
}

// sample keeps of what a hop's edges lead to what the server's workers pick.
func (s *surroundings) sample(last *hop, news []finding) ([]finding, error) {
	left := map[uint32]int64{} // neighbours that the server does not have
	for _, f := range news {
		s.links[f.v] += int64(f.need)
		left[f.v] = int64(f.degree) - s.links[f.v]
	}
	picked := s.pick.of(last.in, left)
	b, _ := binary.Append(nil, binary.LittleEndian, picked)
	in, err := s.toServer(s.first, s.last, b)
	if err != nil {
		return nil, err
	}
	taken := map[uint32]bool{}
	for _, b := range in {
		for _, v := range take[uint32](&reader{b: b}, len(b)/4) {
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
		room := p.fanout
		for _, u := range row {
			if picked[u] {
				room--
			}
		}
		for _, u := range row {
			if room > 0 && !picked[u] {
				picked[u] = true
				room--
			}
		}
	}
	return slices.Sorted(maps.Keys(picked))
}

// thin leaves out the edges from vertices that were not taken. An edge from a vertex
// that came two hops after its end or later is left out too: the layers of that vertex
// are not computed as far. weigh makes kept edges heavier; else degrees make up for what
// is lost, which costs nothing, but is no way for plain sums.
func (s *surroundings) thin(weigh bool) {
	lost := false
	for j := range s.hops {
		h := &s.hops[j]
		in := h.in
		h.in = &graph.CSR{Indptr: []int64{0}, EdgeDim: in.EdgeDim}
		for v := range in.Nodes() {
			first := len(h.in.Indices)
			for e := in.Indptr[v]; e < in.Indptr[v+1]; e++ {
				if s.keeps(j, in.Indices[e]) {
					h.in.Indices = append(h.in.Indices, in.Indices[e])
					h.in.Weights = append(h.in.Weights, weightOf(in, e))
					h.in.EdgeFeatures = append(h.in.EdgeFeatures, in.EdgeRows(e, e+1)...)
				}
			}
			share, n := 1.0, in.Degree(uint32(v))
			if kept := len(h.in.Indices) - first; kept < n {
				lost = true
				share = float64(kept) / float64(n)
			}
			for e := first; e < len(h.in.Weights) && weigh; e++ {
				h.in.Weights[e] /= float32(share)
			}
			h.kept = append(h.kept, share)
			h.in.Indptr = append(h.in.Indptr, int64(len(h.in.Indices)))
		}
	}
	for j := range s.hops {
		if !s.part.Book.Weighted && !(weigh && lost) {
			s.hops[j].in.Weights = nil
		}
		if weigh || !lost {
			s.hops[j].kept = nil
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

// keeps tells whether a vertex of hop j has an edge from u.
func (s *surroundings) keeps(j int, u uint32) bool {
	if !s.beyond(u) {
		return true
	}
	hop, ok := s.hopOf[u]
	return ok && hop <= j+1
}

// sampled trains on what was sampled and measures on everything.
type sampled struct {
	*exchanging // of the pass that goes on
	training    *recomputing
	measuring   *exchanging
}

func newSampled(s *site, layers int) (planned, error) {
	pick, err := newSampling(s.opt.Strategy.Sample)
	switch {
	case err != nil:
		return nil, err
	case layers == 0:
		return newHalo(s)
	case s.opt.Model.Model == "gin" && s.opt.Model.EdgeDim > 0:
		return nil, mistaken("granndis with sampling makes kept edges heavier, and with --edge-features gin does not weigh its edges; use --strategy granndis without sampling or halo, or --model gat")
	case s.paper:
		return nil, fmt.Errorf("granndis with sampling: %w", ErrUnplanned)
	}
	k, err := preloaded(s.opt.Strategy.Preload, layers)
	if err != nil {
		return nil, err
	}
	if k < 0 { // not by cost: what is left out follows from k, and must not from a clock
		k = layers
	}
	l := newLookup(s)
	around, err := newSurroundings(l, k, l.works(), pick)
	if err != nil {
		return nil, err
	}
	if err := around.grow(min(pick.hops, max(k, 1))); err != nil {
		return nil, err
	}
	if err := around.edgesOf(len(around.hops) - 1); err != nil {
		return nil, err
	}
	around.thin(s.opt.Model.Model == "gin")
	on, err := around.preload(k, layers)
	if err != nil {
		return nil, err
	}
	if s.end.Rank() == 0 {
		s.events.On(event.Note{Minor: true, Text: fmt.Sprintf("granndis samples at most %d hops and %d neighbours beyond a server: the first has %d vertices of others", pick.hops, pick.fanout, len(around.where))})
	}
	return &sampled{exchanging: on.exchanging, training: on, measuring: newExchanging(s, &exact{site: s}, newBorder(s.dev, haloLists(s.part)))}, nil
}

func (x *sampled) Begin(epoch int, training bool) {
	x.exchanging = x.measuring
	if training {
		x.exchanging = x.training.exchanging
	}
	x.exchanging.Begin(epoch, training)
}

func (x *sampled) Err() error { return errors.Join(x.training.Err(), x.measuring.Err()) }

func (x *sampled) Finish() error { return errors.Join(x.training.Finish(), x.measuring.Finish()) }

// Caches and kept are of training, whatever pass came last.
func (x *sampled) Caches() []nn.Tensor { return x.training.Caches() }
func (x *sampled) kept() int64         { return x.training.kept() }

// Copies are own vertices and sampled ones.
func (x *sampled) Copies() ([]uint32, *graph.Features) { return x.training.Copies() }

// Sum and Constant give measuring passes the own rows of features only.
func (x *sampled) Sum(layer int, r nn.Reduction, dst, src tensor.Matrix) {
	x.exchanging.Sum(layer, r, dst, src.Slice(0, x.border(layer).src))
}

func (x *sampled) Constant(r nn.Reduction, src tensor.Matrix) (tensor.Matrix, bool) {
	return x.exchanging.Constant(r, src.Slice(0, x.border(0).src))
}

// Plan is the training passes' of one and the measuring passes' of the other; the sum
// over features is kept for each.
func (x *sampled) Plan(model *nn.Model, task nn.Task) *Plan {
	p, m := x.training.Plan(model, task), x.measuring.Plan(model, task)
	p.Measure, p.OnceMeasured = m.Measure, m.OnceMeasured
	for k, bytes := range m.Once {
		add(p.OnceMeasured, k, bytes)
	}
	return p
}
