// Package granndis is GraNNDIS: a server is one large worker.
package granndis

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"starling/cost"
	"starling/event"
	"starling/exchange"
	"starling/graph"
	"starling/train"
	"starling/train/site"
)

// Strategy is GraNNDIS (Song et al., "GraNNDIS: Fast Distributed Graph Neural Network
// Training Framework for Multi-Server Clusters", PACT 2024, §5.1 and §6), which takes a
// server for one large worker, because inside it bytes are cheap. With k preloaded layers a
// server has the features of the vertices up to k hops beyond its own and computes their
// rows itself:
//
//	layer l < k     makes rows of own vertices and of hops 1 to k-1-l,
//	                out of own ones and hops 1 to k-l
//	layer l >= k    rows of own vertices, halo rows received
//
// Each of those vertices is computed once per server, by the worker that needs it most
// (within a balance of edges); inside the server its row travels as any halo row does.
// Between servers travel, in an epoch, the halo rows of layers k and up, each once to a
// server (exchange.Relay), and the sums of parameters' gradients; with k of all layers only
// the latter. The features travel once, before.
//
// Exact for every k; k = 0 is halo. With sampling (sample.go) it is not exact.
var Strategy = train.Describe(train.Descriptor{
	Name: "granndis", Mode: train.FullGraph,
	Paper: &train.Paper{Title: "GraNNDIS, Song et al., PACT 2024",
		Claim: "1.1x to 3.0x (preloading), 1.9x to 3.6x (with sampling), up to 44x on 1 GbE",
		Why: "recomputing is nearly free on idle GPUs; here it takes time from the same cores, so the gain starts " +
			"at slower links"},
	Exact:   "yes; not with `eas`",
	Sends:   "nothing between servers in K layers, computed twice",
	UseWhen: "slow between servers, idle cores",
	Check:   check,
	Overlap: train.Overlap{Rows: 0.1, Gradients: 0.3},
	ReplicaBytes: func(c train.Choice, workers int) int64 {
		o, _ := train.OptionOf[options](c)
		if !o.chooses() || o.EAS != "" {
			return 0
		}
		return o.BudgetOption.ReplicaBytes(workers)
	},
}, options{Preload: "auto", BatchOption: train.BatchOption{Batch: "full"}, RowOptions: exchange.DefaultRows}, build)

type options struct {
	Preload string `json:"preload" main:"" try:"1,2" resume:"free" help:"layers whose remote vertices a server computes itself: a number, auto: by cost, within --memory-budget, or most: as many as fit --memory-budget, as in the paper; with --eas both are all"`
	EAS     string `json:"eas" main:"" exact:"-" help:"expansion-aware sampling beyond a server's own vertices, as HOPS,FANOUT; none: all"`
	Plain   bool   `json:"eas_plain" main:"" omit:"default" help:"edges that --eas keeps count as they are, as in the paper; else they count for those that their vertex has lost too"`
	train.BatchOption
	cost.RatesOption
	exchange.BudgetOption
	exchange.RowOptions
}

const defaultEAS = "1,15" // of the paper

// Parse reads K, eas or easH,F, or both, as in granndis:2:eas1,15, and plain after eas.
func (o *options) Parse(text string) error {
	text, o.Plain = strings.CutSuffix(text, ":plain")
	preload, sample, sampled := strings.Cut(":"+text, ":eas")
	if preload != "" {
		o.Preload = preload[1:]
	}
	if sampled {
		o.EAS = cmp.Or(sample, defaultEAS)
	}
	return nil
}

// Setting writes what Parse reads.
func (o *options) Setting() string {
	sampled := "eas" + o.EAS
	if o.Plain {
		sampled += ":plain"
	}
	switch {
	case o.EAS == "":
		return o.Preload
	case o.Preload == "auto":
		return sampled
	}
	return o.Preload + ":" + sampled
}

func (o *options) Validate() error {
	if o.Plain && o.EAS == "" {
		return train.Mistake("--eas-plain has no effect without --eas; give --eas 1,15, or leave it out")
	}
	if o.EAS != "" {
		if _, err := newSampling(o.EAS); err != nil {
			return err
		}
	}
	if _, err := o.layers(1); err != nil {
		return err
	}
	if err := o.RatesOption.Validate(); err != nil {
		return err
	}
	if err := o.BudgetOption.Validate(); err != nil {
		return err
	}
	return o.RowOptions.Validate()
}

// check refuses models that cannot weigh the edges that sampling keeps.
func check(o *train.Options, _ train.Facts) error {
	c, _ := train.OptionOf[options](o.Strategy)
	switch {
	case c.EAS != "" && o.Model.Typed != nil:
		return graph.Apart("--eas", "a typed graph", "sampling may leave out a relation of a vertex whole, and "+
			"nothing that it keeps could count for it", "leave out --eas")
	case c.EAS == "" || c.Plain || o.Model.Model != "gin" || o.Model.EdgeDim == 0:
		return nil
	}
	return graph.Apart("--eas", "--edge-features of gin",
		"sampling makes kept edges heavier, and gin with features of edges does not weigh them",
		"leave out --eas, use --eas-plain, or --model gat")
}

// chooses reports whether how many layers to preload is found out in the run.
func (o *options) chooses() bool { return o.Preload == "auto" || o.Preload == "most" }

// layers is how many of a model's layers to preload; -1: to be chosen.
func (o *options) layers(of int) (int, error) {
	if o.chooses() {
		if of == 0 {
			return 0, nil
		}
		return -1, nil
	}
	k, err := strconv.Atoi(o.Preload)
	if err != nil || k < 0 {
		return 0, fmt.Errorf("granndis preloads auto, most or a number of layers, not %q", o.Preload)
	}
	return min(k, of), nil
}

func build(s *train.Site, o options) (train.Strategy, error) {
	w := site.Worker(s, o.RowOptions, exchange.RelayOption{})
	w.Masked = o.SparseRows
	layers := w.Model.GraphLayers()
	k, err := o.layers(layers)
	if err != nil {
		return nil, err
	}
	if o.EAS != "" {
		return newSampled(s, w, o, k, layers)
	}
	switch {
	case k == 0 || w.Part.Book.Servers < 2 && !w.Alone:
		if k != 0 {
			w.Note("granndis: one server has nothing to preload; give --servers")
		}
		return site.Halo(w)
	case w.Alone:
		return nil, train.Unplanned("granndis")
	}
	return newPreloading(s, w, o, k, layers)
}

// preloading is what was built, and what was predicted of it.
type preloading struct {
	*exchange.Replicating
	forecast *forecast // nil: k was given
}

func newPreloading(s *train.Site, w *exchange.Worker, o options, k, layers int) (train.Strategy, error) {
	l := exchange.NewSetup(w)
	n, err := newNeighbourhood(l, site.NewCosts(s, l), k, nil)
	if err != nil {
		return nil, err
	}
	p := &preloading{}
	if k < 0 {
		if p.forecast, err = n.choose(layers, o); err != nil {
			return nil, err
		}
		k = p.forecast.best
		n.receive(p.forecast.share)
	} else if err := n.grow(k); err != nil {
		return nil, err
	}
	p.Replicating, err = n.preload(k, layers, o.Bytes())
	if err != nil {
		return nil, err
	}
	return p, nil
}

// grow finds k hops, or all hops if there are fewer.
func (n *neighbourhood) grow(k int) error {
	for range k {
		if more, err := n.next(); err != nil || !more {
			return err
		}
	}
	return nil
}

// preload makes the halos of k preloaded layers and of the others.
func (n *neighbourhood) preload(k, layers int, budget int64) (*exchange.Replicating, error) {
	c := n.replicas(k)
	if k == 0 { // halo: rows come directly
		c.First, c.Last = 0, 0
	}
	need := n.memory(k)
	if budget > 0 && need > budget && k > 0 {
		return nil, train.Mistake("granndis: %s need about %s on worker %d, over the "+
			"--memory-budget of %s; --preload fewer, or most", preloaded(k), event.Bytes(need), n.w.End.Rank(),
			event.Bytes(budget))
	}
	n.w.Note("%s: worker 0 has %s and %s, about %s", n.decided(k, layers), event.Counted(n.w.Part.Core(), "own vertex"),
		event.Counted(len(c.IDs), "replica"), event.Bytes(need))
	halos, err := c.Halos(layers, func(layer int, v uint32) int {
		if layer >= k || layer == k-1 && layer > 0 && n.receives(v) {
			return n.w.Part.Book.Owner(v)
		}
		return n.holder(v)
	})
	if err != nil {
		return nil, err
	}
	return c.Aggregator(halos)
}

// decided says where the rows of other servers come from, in one sentence.
func (n *neighbourhood) decided(k, layers int) string {
	text := fmt.Sprintf("granndis preloads %d of %d layers", k, layers)
	if k == 0 {
		return text + " and receives the rows of other servers in all of them"
	}
	text += ", in which rows of other servers are computed on replicas"
	switch {
	case n.share > 0.995:
		text += fmt.Sprintf(" (layer %d receives them while it sums over local rows)", k)
	case n.share > 0:
		text += fmt.Sprintf(" (layer %d receives %.0f%% of them while it sums over local rows)", k, 100*n.share)
	}
	return text
}

// On hears how long epochs take.
func (p *preloading) On(e event.Event) {
	if e, ok := e.(event.Epoch); ok && p.forecast != nil {
		p.forecast.epochs = append(p.forecast.epochs, e.Seconds)
	}
}

// Finish says what the epochs took beside what was predicted.
func (p *preloading) Finish() error {
	if p.forecast != nil && p.forecast.measured {
		if text := p.forecast.verdict(); text != "" {
			p.W.Note("%s", text)
		}
	}
	return p.Replicating.Finish()
}

// memory is what this worker needs with k preloaded layers.
func (n *neighbourhood) memory(k int) int64 { return memory(n.costs.Unmeasured(), &n.grown, k) }
