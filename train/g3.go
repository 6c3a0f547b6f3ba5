package train

import (
	"fmt"
	"slices"
	"time"

	"starling/event"
	"starling/nn"
	"starling/tensor"
	"starling/wire"
)

// g3 is exact full-graph training as a pipeline (Wan et al., "Scalable and Efficient
// Full-Graph GNN Training for Large Graphs", SIGMOD 2023). A worker's rows are cut
// into bins, those that peers need first. With z the rows a layer sends and b a bin,
//
//	y_b = A_near,b·z_own + A_far,b·z_far        z_own [own, w], z_far [far, w], y_b [bin, w]
//
// A bin goes through the dense part of a layer, and its rows leave at once for the
// peers that need them, while the next bins are computed (the intra-layer pipeline).
// A bin whose far rows are there goes on through the next layer, whatever others wait
// for (the inter-layer pipeline). Backwards the gradients of far rows are computed
// first and go home bin by bin; rows whose own gradients have come go on. Gradients
// of weights fill the time that is left, bins in ascending order: every bit is the
// same whatever came first.
//
// What is sent is what halo sends, in more messages: one a peer, layer and bin. Where
// rows are passed on inside servers (relay.go), a bin's are when they have come, and the
// gradients of passed ones are added to the passing worker's before these go home.
// Batch norm is a barrier. Attention waits for all far rows of a bin; its way back is
// computed whole, and all its gradients leave then.
type g3 struct {
	*exchanging // measuring passes, and constant features
	moves       *exact
	bins        *bins
	// How rows travel: owned always backwards, needed where that lets bins go on.
	owned, needed *order
	// early: rows leave when their bin is done, not when all are (intra); eager: bins
	// start the next layer before all rows are there (inter).
	early, eager bool

	run    *nn.Ranges
	flows  []*flow // of the joints, in the direction of the pass
	coming []comer
	// leaving are flows that are done but for what they sent.
	leaving []*flow
}

func newG3(s *site) (planned, error) {
	c := s.opt.Strategy
	if !slices.Contains([]string{"", "none", "inter", "intra", "both"}, c.Pipeline) {
		return nil, fmt.Errorf("g3's pipeline is none, inter, intra or both, not %q", c.Pipeline)
	}
	e := &exact{site: s}
	x, l, err := overHalo(s, e)
	if err != nil {
		return nil, err
	}
	g := &g3{exchanging: x, moves: e}
	g.early, g.eager = c.Pipeline != "none" && c.Pipeline != "inter", c.Pipeline != "none" && c.Pipeline != "intra"
	m := &s.opt.Model
	bytes := s.dev.RowType(s.opt.Rows).Size() * (max(m.In, m.Hidden, m.Out) + m.Hidden)
	bound := func(rows int) []int { return cutBins(rows, binRows(rows, bytes, c.Budget)) }
	g.bins = newBins(s.part, bound(s.part.Core()))
	cut := &cutting{site: s, lists: l, bins: g.bins, theirs: boundsOf(s.part, bound)}
	g.owned = cut.order(cut.byOwner())
	g.owned.far = g.border(0).far
	switch n := g.waveCount(); {
	case !g.eager:
	case n > 1:
		g.owned.waves = g.newWaves(g.owned, n)
	case s.part.Book.Symmetric:
		send, far, err := cut.byNeed(g.exchanging)
		if err != nil {
			return nil, err
		}
		g.needed = cut.order(send, far)
		g.needed.goesBackAs(g.owned)
		g.needed.far = farTopology(s, l, g.needed.farAt)
	}
	return g, nil
}

// workPerByte is the multiplications and additions for which a byte more is not worth
// computing earlier: 60 Gflop/s beside 1 Gbit/s.
const workPerByte = 500

// order is that of the rows of a joint, the same on all workers.
func (g *g3) order(joint int) *order {
	if g.needed == nil || g.run.Joint(joint) != nn.Summed {
		return g.owned
	}
	book := g.part.Book
	bytes := float64(g.run.Width(joint)*g.dev.RowType(g.opt.Rows).Size()) * float64(book.CommVolume) / float64(book.Nodes)
	if bytes*workPerByte < 2*float64(g.run.Weights(joint)) {
		return g.owned
	}
	return g.needed
}

// Forward is a training pass; measuring passes are halo's.
func (g *g3) Forward(m *nn.Model, p *nn.Pass, x nn.Input) tensor.Matrix {
	g.run = m.Ranges(p, x)
	g.flows = make([]*flow, g.run.Phases())
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

// drive runs a schedule: the most urgent task that is ready or, where there is none,
// it waits for rows.
func (g *g3) drive(s *schedule) {
	g.coming = g.coming[:0]
	for s.left > 0 {
		g.look(s)
		if !s.step() && s.left > 0 {
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

// look takes what has come.
func (g *g3) look(s *schedule) {
	g.coming = slices.DeleteFunc(g.coming, func(c comer) bool {
		for _, p := range c.pending {
			select {
			case <-p.Done():
			default:
				return false
			}
		}
		for _, p := range c.pending {
			if err := p.Err(); err != nil {
				g.moves.fail(err)
			}
		}
		c.flow.land(c)
		s.finish(c.flow.arrivals[c.i])
		return true
	})
	if g.moves.err() != nil {
		s.giveUp() // go on with rows that mean nothing, as all strategies do after a failure
	}
}

// await waits until something comes.
func (g *g3) await() {
	if len(g.coming) == 0 {
		return
	}
	start := time.Now()
	var missing []*wire.Pending
	for _, c := range g.coming {
		before := len(missing)
		for _, p := range c.pending {
			select {
			case <-p.Done():
			default:
				missing = append(missing, p)
			}
		}
		if len(missing) == before {
			return // it has come since look: others may be waiting for what it lets go on
		}
	}
	if err := wire.WaitAny(g.ctx, missing); err != nil {
		g.moves.fail(err)
	}
	g.events.On(event.Span{Name: g.coming[0].flow.t.String(), Kind: "wait", Start: start, Dur: time.Since(start)})
}

// The kinds of tasks, the most urgent first: what lets others go on, then what makes
// rows that leave, then the rest.
const (
	urgentEnd = iota
	urgentSend
	urgentRows
	urgentSum
	urgentRoot
	urgentLearn
)

// urgency orders tasks by kind, then by place in the pass, then by bin.
func urgency(kind, place, bin int) int64 { return int64(kind)<<48 | int64(place)<<24 | int64(bin) }

// eachBin makes a task a bin.
func (g *g3) eachBin(f func(b, lo, hi int) int) []int {
	out := make([]int, g.bins.count())
	for b := range out {
		out[b] = f(b, g.bins.at[b], g.bins.at[b+1])
	}
	return out
}

// arrivals are those of a flow's chunks.
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
