// Package bns is boundary node sampling.
package bns

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"starling/exchange"
	"starling/graph"
	"starling/rng"
	"starling/tensor"
	"starling/train"
	"starling/train/site"
)

// Strategy is boundary node sampling (Wan et al., "BNS-GCN", MLSys 2022, §3.2). Every
// epoch keeps each pair of a halo vertex and a part that needs it with probability p, and
// forgets the others:
//
//	z_halo = s·mask·z
//
// for all layers of the epoch, forward and backward alike. s = 1/p, so that sums and
// gradients are right on average. bns:P:shrunk has a smaller s, which is wrong on average
// and misses by less in each epoch, see shrunk. Attention weighs its rows itself: a vertex
// that is not kept takes no part in the softmax, and one that is kept is not scaled.
//
// What is kept is a function of seed, epoch, receiving part and vertex, so both ends know
// it without a message. An epoch moves a share p of halo's rows. Features that never
// change travel once, all of them, and measuring is exact. bns:P:cached is the same with a
// cache of stale rows: see cached.go.
//
// Where rows are relayed inside servers, the parts of a server keep the same vertices of
// other servers. Each pair is kept as often as before, and a row that travels serves all
// parts that need it.
var Strategy = train.Describe(train.Descriptor{
	Name: "bns", Mode: train.FullGraph, Typical: true, HaloRows: true,
	Untyped: "it scales what it keeps for what it leaves out, and a relation may be left out whole",
	Paper: &train.Paper{Title: "BNS-GCN, Wan et al., MLSys 2022", Claim: "up to 16.2x throughput, 58% less memory",
		Why: "its largest figures are over ROC and CAGNET, with GPUs, where moving rows is nearly all of an epoch; " +
			"ours is over an exchange that already overlaps, with processors that compute longer"},
	Exact:   "P = 1",
	Sends:   "a share P of the halo, drawn anew, scaled by 1/P",
	UseWhen: "slow link, a little noise does no harm",
	Check:   check,
	Overlap: train.Overlap{Rows: 0.1, Gradients: 0.3},
}, options{Keep: 0.1, RowOptions: exchange.DefaultRows}, build)

type options struct {
	Keep   float64 `json:"keep" flag:"-" main:"" exact:"1" help:"share of halo vertices kept"`
	Cached bool    `json:"cached" flag:"-" main:"" help:"vertices that are not kept count as they last came"`
	Shrunk bool    `json:"shrunk" flag:"-" main:"" omit:"default" help:"those kept are scaled by less than 1/P where vertices have few remote neighbours"`
	exchange.MeanOption
	exchange.RelayOption
	exchange.RowOptions
}

// Parse reads P, cached or shrunk, or P and one of them, as in bns:0.1:cached. Before P
// alone meant the paper's scale it was called unbiased, and may be still.
func (o *options) Parse(text string) (err error) {
	share, cut := ":"+text, false
	for _, s := range []struct {
		suffix string
		set    *bool
	}{{":cached", &o.Cached}, {":shrunk", &o.Shrunk}, {":unbiased", new(bool)}} {
		if share, cut = strings.CutSuffix(share, s.suffix); cut {
			*s.set = true
			break
		}
	}
	if share != "" {
		o.Keep, err = strconv.ParseFloat(share[1:], 64)
	}
	if err != nil {
		return fmt.Errorf("setting %q makes no sense; it is one as in bns:0.1, bns:0.1:cached or bns:0.1:shrunk",
			text)
	}
	return nil
}

// Setting writes what Parse reads.
func (o *options) Setting() string {
	text := fmt.Sprint(o.Keep)
	switch {
	case o.Cached:
		text += ":cached"
	case o.Shrunk:
		text += ":shrunk"
	}
	return text
}

func (o *options) Validate() error {
	switch {
	case !(o.Keep > 0 && o.Keep <= 1):
		return fmt.Errorf("bns keeps a share of halo vertices above 0 and at most 1, not %g", o.Keep)
	case o.Means && !o.Cached:
		return fmt.Errorf("--means corrects stale rows, and plain bns has none; use bns:%g:cached", o.Keep)
	}
	return o.RowOptions.Validate()
}

func build(s *train.Site, o options) (train.Strategy, error) {
	w := site.Worker(s, o.RowOptions, o.RelayOption)
	w.Masked = o.SparseRows && !o.Cached
	d := &draws{w: w, p: o.Keep, all: -1, key: rng.New(w.Seed).Fold(drawKey)}
	d.now.epoch, d.plan.epoch, d.now.thin = -1, -1, -1
	var policy exchange.Policy
	if o.Cached {
		policy = newCached(d, o.MeanOption)
	} else {
		policy = &sampled{Rows: exchange.NewRows(w), draws: d, weight: o.weight}
	}
	a, whole, err := exchange.OverHalo(w, policy)
	if err != nil {
		return nil, err
	}
	d.whole = whole
	return a, nil
}

// weight is what a kept row counts in a halo.
func (o *options) weight(h *exchange.HaloPlan) float64 {
	if o.Shrunk {
		return shrunk(o.Keep, remoteDegree(h))
	}
	return 1 / o.Keep
}

// shrunk is what a kept row counts where vertices have F remote neighbours. Of the
// sum of their rows, those kept and scaled by s miss, in mean squares,
//
//	(1-s·p)²·|Σz|² + s²·p·(1-p)·Σ|z|²        least at   s = 1/(p + (1-p)/r),   r = |Σz|²/Σ|z|²
//
// r is F where rows are all alike, and 1 where they have nothing in common. We take √F, halfway:
// s is 1 for a single neighbour, and near 1/p only for very many. (To make up for what does
// not come by the means of all rows, or by the rows that a vertex does have, was no better:
// see docs/strategies/bns.md.)
func shrunk(p, remote float64) float64 { return 1 / (p + (1-p)/math.Sqrt(remote)) }

// remoteDegree is how many remote neighbours a vertex has that has any, on average; 1 if
// none has.
func remoteDegree(h *exchange.HaloPlan) float64 {
	rows, edges := 0, 0
	for v := range h.In.Nodes() {
		before := edges
		for _, u := range h.In.Neighbors(uint32(v)) {
			if int(u) >= h.Src {
				edges++
			}
		}
		if edges > before {
			rows++
		}
	}
	return float64(max(edges, 1)) / float64(max(rows, 1))
}

// check refuses models that need every row.
func check(o *train.Options, _ train.Facts) error {
	c, _ := train.OptionOf[options](o.Strategy)
	if c.Cached || c.Keep == 1 {
		return nil
	}
	name := fmt.Sprintf("--strategy bns:%g", c.Keep)
	instead := fmt.Sprintf("use --strategy bns:%g:cached or %s, or one of the models gcn, sage, gat, gin", c.Keep,
		train.Default().Name)
	switch m := &o.Model; {
	case slices.Contains(needAll, m.Model):
		return graph.Apart(name, "--model "+m.Model, "it leaves out halo rows, and "+m.Model+" cannot tell that a row "+
			"is missing", instead)
	case m.Model == "gin" && m.EdgeDim > 0:
		return graph.Apart(name, "--edge-features of gin", "it leaves out halo rows, and messages would be made of "+
			"rows that are missing too", fmt.Sprintf("use --strategy bns:%g:cached or %s, or --model gat", c.Keep,
			train.Default().Name))
	}
	return nil
}

// needAll are models whose layers have no way to leave a row out: no score to lower, and
// no sum in which others could stand for it.
var needAll = []string{"gatv2", "sage-pool", "film"}

// sampled moves the rows that are kept in an epoch.
type sampled struct {
	*exchange.Rows
	draws  *draws
	weight func(*exchange.HaloPlan) float64
	scale  float64 // s, of a kept row; 0: not computed yet
}

// thins reports whether a transfer moves fewer rows than halo's.
func (m *sampled) thins(t exchange.Tag, training bool) bool {
	return training && t.Layer >= 0 && m.draws.p < 1
}

func (m *sampled) RowsTo(t exchange.Tag, h *exchange.Halo, peer, epoch int, training bool) int64 {
	if m.thins(t, training) {
		h = &m.draws.plan.draw(m.draws, epoch).Halo
	}
	return m.Rows.RowsTo(t, h, peer, epoch, training)
}

// Thinned is the halo of the rows that are kept in the epoch: the others have no place in any matrix, nor edges.
func (m *sampled) Thinned(h *exchange.Halo) *exchange.Halo {
	if !m.Training || m.draws.p >= 1 {
		return h
	}
	d := m.draws.now.draw(m.draws, m.Epoch)
	if d.thin != m.Epoch {
		d.thin = m.Epoch
		ids := slices.Clone(m.draws.whole.IDs[:h.Src])
		for _, k := range d.kept {
			ids = append(ids, m.draws.whole.IDs[h.Src+int(k)])
		}
		d.Thin(h, d.kept, tensor.Indices(m.W.Dev, ids))
	}
	return &d.Halo
}

func (m *sampled) Exchange(t exchange.Tag, h *exchange.Halo, into, src tensor.Matrix) exchange.Arrival {
	x := m.Rows.Exchange(t, h, into, src)
	if !m.thins(t, m.Training) {
		return x
	}
	return &rescaled{x, func() { m.rescale(t, into) }}
}

func (m *sampled) Reverse(t exchange.Tag, h *exchange.Halo, grads, dst tensor.Matrix) exchange.Arrival {
	if m.thins(t, m.Training) {
		m.rescale(t, grads)
	}
	return m.Rows.Reverse(t, h, grads, dst)
}

// rescale makes rows stand for those that were not kept too.
func (m *sampled) rescale(t exchange.Tag, rows tensor.Matrix) {
	if t.EdgeOp {
		return
	}
	if m.scale == 0 {
		m.scale = m.weight(m.draws.whole)
	}
	m.W.Dev.Combine(rows, m.scale, rows, 0, tensor.Matrix{})
}

// rescaled is an exchange of kept rows, which then stand for the others too.
type rescaled struct {
	exchange.Arrival
	rescale func()
}

func (s *rescaled) Wait() {
	s.Arrival.Wait()
	s.rescale()
}
