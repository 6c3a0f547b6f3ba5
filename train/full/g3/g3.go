// Package g3 is G3: full-graph training as a pipeline of bins.
package g3

import (
	"fmt"
	"slices"

	"starling/event"
	"starling/exchange"
	"starling/nn"
	"starling/partition"
	"starling/tensor"
	"starling/train"
	"starling/train/site"
	"starling/wire"
)

// Strategy is exact full-graph training as a pipeline (Wan et al., "Scalable and Efficient
// Full-Graph GNN Training for Large Graphs", SIGMOD 2023). A worker's rows are cut into
// bins, those that peers need first. With z the rows a layer sends and b a bin,
//
//	y_b = A_local,b·z_local + A_halo,b·z_halo    z_local [own, w], z_halo [halo, w], y_b [bin, w]
//
// A bin goes through the dense part of a layer, and its rows leave at once for the peers
// that need them, while the next bins are computed (the intra-layer pipeline). A bin whose
// halo rows are there goes on through the next layer, whatever others wait for (the
// inter-layer pipeline). Backward the gradients of halo rows are computed first and return
// bin by bin; rows whose own gradients have arrived go on. Gradients of weights fill the
// time that is left, bins in ascending order: every bit is the same whatever came first.
//
// What is sent is what halo sends, in more messages: one per peer, layer and bin. Where
// rows are relayed inside servers, a bin's are when they have arrived, and the gradients of
// relayed ones are added to the relaying worker's before these return. Batch norm is a
// barrier. Attention waits for all halo rows of a bin; its backward pass is computed whole,
// and all its gradients leave then.
var Strategy = train.Describe(train.Descriptor{
	Name: "g3", Mode: train.FullGraph, Typical: true, HaloRows: true,
	Paper: &train.Paper{Title: "G3, Wan et al., SIGMOD 2023",
		Claim: "1.08x to 2.24x over BNS-GCN (p=1) and NeutronStar; the pipeline alone up to 11.7x",
		Why: "its baseline waits at every layer; halo here already computes local sums while halo rows travel, so " +
			"less is left to hide"},
	Exact:   "yes",
	Sends:   "`halo`'s rows in bins, each as soon as it is computed",
	UseWhen: "computing and sending take about as long",
	Overlap: train.Overlap{Rows: 0.3, Gradients: 0.3},
}, options{Pipeline: "both", RowOptions: exchange.DefaultRows}, build)

type options struct {
	Pipeline string `json:"g3_pipeline" main:"" values:"none,inter,intra,both" resume:"free" help:"what overlaps: none, inter (layers), intra (a layer), or both"`
	Spill    string `json:"spill" resume:"free" omit:"default" help:"folder to which finished rows leave until the backward pass, where they take more than --memory-budget; from a GPU, to the host's memory first"`
	exchange.BudgetOption
	exchange.RelayOption
	exchange.RowOptions
}

// Messages is one per bin of rows.
func (o *options) Messages(b *partition.Book, row int) float64 {
	rows := int(b.Nodes) / b.Parts
	return float64(len(cutBins(rows, binRows(rows, rowBytes{2 * row, row}, perPeer(b), 0))) - 1)
}

func (o *options) Validate() error {
	if err := o.BudgetOption.Validate(); err != nil {
		return err
	}
	if o.Spill != "" && o.Bytes() == 0 {
		return fmt.Errorf("--spill %s has no effect without --memory-budget, beyond which rows leave", o.Spill)
	}
	return o.RowOptions.Validate()
}

// g3 is a worker's pipeline.
type g3 struct {
	*exchange.Aggregator // measuring passes, and constant features
	rows                 *exchange.Rows
	halo                 *exchange.Halo
	*layout
	// early: rows leave when their bin is done, not when all are (intra); eager: bins
	// start the next layer before all rows are there (inter).
	early, eager bool
	relays       bool // rows leave as soon as they have arrived

	spill *spill // nil: all stays
	run   *nn.Ranges
	flows []*flow // of the synchronisation points, in the direction of the pass
	// waiting are the points of which vertices may be ready before their bins.
	waiting []*ready
	coming  []arriving
	// leaving are flows that are done but for what they sent.
	leaving []*flow
}

func build(s *train.Site, o options) (train.Strategy, error) {
	w := site.Worker(s, o.RowOptions, o.RelayOption)
	w.Masked = o.SparseRows
	rows := exchange.NewRows(w)
	a, plan, err := exchange.OverHalo(w, rows)
	if err != nil {
		return nil, err
	}
	g := &g3{Aggregator: a, rows: rows, halo: a.Halo(0)}
	g.early, g.eager = o.Pipeline != "none" && o.Pipeline != "inter", o.Pipeline != "none" && o.Pipeline != "intra"
	if g.spill, err = newSpill(w.Dev, o.Spill, o.Bytes(), rows.Fail); err != nil {
		return nil, err
	}
	g.relays = plan.Relay != nil && len(plan.Relay.Send) > 0
	g.layout = &layout{g: g, plan: plan, size: w.Dev.RowType(w.Rows).Size(), budget: o.Bytes(),
		peer: perPeer(w.Part.Book), made: map[string]*crossing{}}
	return g, g.layout.begin()
}

// workPerByte is the multiplications and additions for which a byte more is not worth
// computing earlier: 60 Gflop/s beside 1 Gbit/s.
const workPerByte = 500

// order is the order of rows at a synchronisation point, the same on all workers.
func (g *g3) order(point int) *order {
	c := g.points[point]
	if c.needed == nil || g.run.SyncPoint(point) != nn.SumPoint {
		return c.owned
	}
	book := g.W.Part.Book
	row := float64(g.run.Width(point) * g.size)
	bytes := row * float64(book.CommVolume) / float64(book.Nodes)
	if bytes*workPerByte < 2*float64(g.run.Weights(point)) {
		return c.owned
	}
	return c.needed
}

// Forward is a training pass; measuring passes are halo's.
func (g *g3) Forward(m *nn.Model, p *nn.Pass, x nn.Input) tensor.Matrix {
	g.run = m.Ranges(p, x)
	g.lay(g.run)
	g.flows = make([]*flow, g.run.Phases())
	g.spill.begin(g.run.Phases())
	g.drive(g.forward(p))
	return g.run.Logits()
}

// Backward goes back through the pass that Forward made.
func (g *g3) Backward(_ *nn.Model, p *nn.Pass, dlogits tensor.Matrix) {
	g.flows = make([]*flow, g.run.Phases())
	g.run.BeginGrad(dlogits)
	g.drive(g.backward(p))
	g.run = nil
}

// Finish says what left memory.
func (g *g3) Finish() error {
	g.spill.close(g.W.Note)
	return g.Aggregator.Finish()
}

// drive runs a schedule: the most urgent task that is ready or, where there is none,
// it waits for rows.
func (g *g3) drive(s *schedule) {
	g.coming = g.coming[:0]
	for s.left > 0 {
		if g.relays || !s.sendsNext() {
			g.look(s)
		}
		if !g.packFull(s) && !s.step() && s.left > 0 && !g.packReady(s) {
			g.await()
		}
		g.leaving = slices.DeleteFunc(g.leaving, func(f *flow) bool {
			left := f.left()
			if left {
				f.close()
			}
			return left
		})
	}
	for _, f := range g.leaving {
		f.close()
	}
	g.leaving = g.leaving[:0]
}

// look takes what has arrived.
func (g *g3) look(s *schedule) {
	g.coming = slices.DeleteFunc(g.coming, func(c arriving) bool {
		if slices.ContainsFunc(c.pending, func(p *wire.Pending) bool { return !p.IsDone() }) {
			return false
		}
		for _, p := range c.pending {
			if err := p.Err(); err != nil {
				g.rows.Fail(err)
			}
		}
		c.flow.land(c)
		s.finish(c.flow.arrivals[c.i])
		return true
	})
	if g.rows.Err() != nil {
		s.giveUp() // go on with rows that mean nothing, as all strategies do after a failure
	}
}

// await waits until something arrives.
func (g *g3) await() {
	if len(g.coming) == 0 {
		return
	}
	start := g.W.Now()
	var missing []*wire.Pending
	for _, c := range g.coming {
		before := len(missing)
		for _, p := range c.pending {
			if !p.IsDone() {
				missing = append(missing, p)
			}
		}
		if len(missing) == before {
			return // it has arrived since look: others may be waiting for what it lets go on
		}
	}
	if err := wire.WaitAny(g.W.Ctx, missing); err != nil {
		g.rows.Fail(err)
	}
	g.W.Events.On(event.Span{Name: g.coming[0].flow.t.String(), Kind: "wait", Start: start, Dur: g.W.Now().Sub(start)})
}

// The kinds of tasks, the most urgent first: what lets others go on, then what makes
// rows that leave, then the rest.
const (
	urgentEnd = iota
	urgentSend
	urgentRows
	urgentSum
	urgentSelf
	urgentWeights
)

// urgency orders tasks by kind, then by place in the pass, then by bin.
func urgency(kind, place, bin int) int64 { return int64(kind)<<48 | int64(place)<<24 | int64(bin) }

// eachBin makes one task per bin of a phase.
func (g *g3) eachBin(phase int, f func(b, lo, hi int) int) []int {
	at := g.phases[phase]
	out := make([]int, len(at)-1)
	for b := range out {
		out[b] = f(b, at[b], at[b+1])
	}
	return out
}

// arrivals are the arrivals of a flow's chunks.
func arrivals(s *schedule, chunks int) []int {
	out := make([]int, chunks)
	for i := range out {
		out[i] = s.arrival()
	}
	return out
}

// pick are the tasks at some places of a list.
func pick(tasks []int, at []int) []int {
	out := make([]int, len(at))
	for i, j := range at {
		out[i] = tasks[j]
	}
	return out
}

// unlessEager are the tasks that the next layer waits for where it may not start early.
func (g *g3) unlessEager(tasks []int) []int {
	if g.eager {
		return nil
	}
	return tasks
}
