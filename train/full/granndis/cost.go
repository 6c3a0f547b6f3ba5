package granndis

import (
	"fmt"
	"math"
	"slices"

	"starling/cost"
	"starling/event"
)

// growth is how a worker's share of a server grows hop by hop, counted exactly; hop 0
// are its own vertices.
type growth struct {
	rows   []int64 // vertices of a hop
	edges  []int64 // their in-edges
	remote []int64 // rows of other workers of the server that no earlier hop needs
	beyond []int64 // the same of rows that are received from other servers, as they are learnt there
	// Halo rows of own vertices: from the same server, from others, and from others by way
	// of a worker of the same.
	inside, between, relayed int64
	// In-edges of own vertices from own ones, and from replicas of hop 1.
	local, replicated int64
}

// begin counts hop 0 and the halo of the part.
func (g *growth) begin(n *neighbourhood) (err error) {
	g.rows, g.edges = []int64{int64(n.w.Part.Core())}, []int64{n.w.Part.In.Edges()}
	g.inside, g.between, g.relayed, err = n.HaloSources()
	return err
}

// add counts the hop that was found last, and the edges that led to it.
func (g *growth) add(n *neighbourhood) {
	last := len(n.hops)
	g.rows = append(g.rows, int64(len(n.hops[last-1].ids)))
	before := &n.hops[last-2]
	if last > 2 {
		g.edges = append(g.edges, before.in.Edges())
	}
	var remote, beyond int64
	for _, u := range before.in.Indices {
		if _, own := n.w.Own(u); own {
			continue
		}
		if _, seen := n.needed.At(u); !seen && n.holder(u) != n.w.End.Rank() {
			n.needed.Put(u)
			if _, here := n.at(u); n.w.Part.Book.Schema != nil && n.remote(u) && !here {
				beyond++
			} else {
				remote++
			}
		}
	}
	g.remote, g.beyond = append(g.remote, remote), append(g.beyond, beyond)
	if last == 2 {
		g.countLocal(n)
	}
}

// load is what a worker has to do in a layer of an epoch.
type load struct {
	made, taken     int64 // rows that come out and go in
	edges           int64
	inside, between int64 // rows received
}

// layer is the load of layer l if k layers are preloaded.
func (g *growth) layer(k, l int) load {
	if l >= k {
		w := load{made: g.rows[0], taken: g.rows[0], edges: upTo(g.edges, 0), inside: g.inside + g.relayed,
			between: g.between}
		if k == 0 { // halo, where all come directly
			w.inside, w.between = g.inside, g.between+g.relayed
		}
		return w
	}
	hop := k - 1 - l
	return load{made: upTo(g.rows, hop), taken: upTo(g.rows, hop+1), edges: upTo(g.edges, hop),
		inside: upTo(g.remote, hop), between: upTo(g.beyond, hop)}
}

// upTo sums hops 0 to hop; hops that are not there are empty.
func upTo(v []int64, hop int) (sum int64) {
	for _, n := range v[:min(hop+1, len(v))] {
		sum += n
	}
	return sum
}

// seconds predicts a worker's epoch with k preloaded layers, in the spirit of the
// paper's equations 1 to 7,
//
//	Σ over layers  rows·s_row + edges·s_edge + bytes_inside·s_inside + bytes_between·s_between
//
// but with what is counted instead of degrees to the power of layers, and rates that
// are measured. Transfers count in full: how much of them hides under computation
// depends on the graph, and is little where they matter.
func seconds(c *cost.Epoch, g *growth, k int, share float64) float64 {
	t := c.Fixed
	for l, at := range c.Layers {
		w := g.layer(k, l)
		w.receive(g, l-k, share)
		rows := w.made
		if at.TransformFirst {
			rows = w.taken
		}
		t += at.Row*float64(rows) + at.Edge*float64(w.edges) + float64(at.Traffic)*(c.Inside*float64(w.inside)+
			c.Between*float64(w.between))
	}
	return t
}

// memory estimates what a worker needs with k preloaded layers: features, what the
// backward pass keeps, and a graph for every layer that has one of its own.
func memory(c *cost.Epoch, g *growth, k int) (bytes int64) {
	bytes = upTo(g.rows, k) * c.Feature
	var before load
	for l, at := range c.Layers {
		w := g.layer(k, l)
		bytes += w.made * at.Kept
		if w != before {
			bytes += w.edges * cost.EdgeBytes
		}
		before = w
	}
	return bytes
}

// forecast is the predicted seconds of an epoch for each number of preloaded layers
// that was looked at, and what was made of it.
type forecast struct {
	seconds []float64 // NaN: does not fit
	best    int
	share   float64 // of the best
	memory  int64   // of the largest worker
	epochs  []float64
	// measured: this run has measured the rates. With given ones the plan that gave them has printed its prediction.
	measured bool
	// most: the largest number that fits is taken, whatever it costs (§5.1 of the paper).
	most bool
}

// verdict is prediction and measurement in one line; none without epochs.
func (f *forecast) verdict() string {
	if len(f.epochs) == 0 {
		return ""
	}
	times := f.epochs
	if len(times) > 1 {
		times = times[1:] // the first takes the memory
	}
	times = slices.Sorted(slices.Values(times))
	return fmt.Sprintf("granndis predicts %.3g s per epoch with %s (halo %.3g s); measured %.3g s",
		f.seconds[f.best], preloaded(f.best), f.seconds[0], times[len(times)/2])
}

// consider takes the prediction for one more layer: the slowest worker's. It reports
// whether it is worth looking further: not where memory has run out, nor after two
// layers in a row that made it slower.
func (f *forecast) consider(seconds, share float64, fits bool) bool {
	k := len(f.seconds)
	if !fits && k > 0 {
		f.seconds = append(f.seconds, math.NaN())
		return false
	}
	f.seconds = append(f.seconds, seconds)
	if f.most || seconds < f.seconds[f.best] {
		f.best, f.share = k, share
	}
	return k-f.best < 2
}

// choose finds hops while they promise to gain, and chooses how many layers to preload.
func (n *neighbourhood) choose(layers int, o options) (*forecast, error) {
	c, budget, err := n.costs.ToChoose(o.RatesOption, o.BudgetOption)
	if err != nil {
		return nil, err
	}
	f := &forecast{measured: o.Rates == "", most: o.Preload == "most"}
	more := true // hops: where there are none, one layer more costs nothing to look at
	for k := range layers + 1 {
		if k > 0 && more {
			if more, err = n.next(); err != nil {
				return nil, err
			}
		}
		share := 0.0
		if !f.most { // the paper's preloaded layers receive nothing
			if share, err = n.receivable(c, k); err != nil {
				return nil, err
			}
		}
		worst, fits, memory, err := n.predict(c, k, share, budget)
		if err != nil {
			return nil, err
		}
		on := f.consider(worst, share, fits)
		n.note(f, k, memory)
		if k == f.best {
			f.memory = memory
		}
		if !on && (more || !fits) {
			break
		}
	}
	return f, nil
}

// predict is the slowest worker's prediction, and whether all workers have the memory.
func (n *neighbourhood) predict(c *cost.Epoch, k int, share float64, budget int64) (worst float64, fits bool,
	most int64, err error) {
	need := memory(c, &n.grown, k)
	over := 0.0
	if budget > 0 && need > budget {
		over = 1
	}
	all, err := n.Share(seconds(c, &n.grown, k, share), over, float64(need))
	fits = true
	for _, v := range all {
		worst, fits, most = max(worst, v[0]), fits && v[1] == 0, max(most, int64(v[2]))
	}
	return worst, fits, most, err
}

// note tells what was predicted.
func (n *neighbourhood) note(f *forecast, k int, memory int64) {
	if !f.measured {
		return
	}
	if math.IsNaN(f.seconds[k]) {
		n.w.Note("granndis with %s: about %s on the largest worker, more than there is", preloaded(k),
			event.Bytes(memory))
		return
	}
	n.w.Note("granndis with %s: %.3g s per epoch, about %s on the largest worker", preloaded(k), f.seconds[k],
		event.Bytes(memory))
}

// preloaded says how many layers are.
func preloaded(k int) string { return event.Counted(k, "preloaded layer") }
