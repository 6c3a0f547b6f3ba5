package g3

import (
	"fmt"

	"starling/nn"
)

// backward plans the backward pass. With b the gradients of a phase's rows, f those of halo
// rows, n the local sums of gradients, ↓ the chunks that arrive, and l gradients of
// weights, bin i of phase s is
//
//	b_s+1 → f_s → sent      b_s+1 → n_s,i      n_s,i, ↓_s,i, l_s+2 → b_s,i → l_s,i
func (g *g3) backward(p *nn.Pass) *schedule {
	s, last := &schedule{}, g.run.Phases()-1
	g.waiting = g.waiting[:0]
	var after *passage // the synchronisation point that a phase comes back from
	ended := make([][]int, last+1+weightsBehind)
	for phase := last; phase >= 0; phase-- {
		var next *passage
		if phase > 0 {
			next = &passage{point: phase - 1, kind: g.run.SyncPoint(phase - 1)}
		}
		rows := g.backwardRows(s, p, phase, after, next, ended[phase+weightsBehind])
		weights := g.weights(s, p, phase, rows)
		done := [][]int{rows, weights, ended[phase+1]}
		if after != nil {
			done = append(done, after.halos)
		}
		ended[phase] = []int{s.add(urgency(urgentEnd, last-phase, 0), func() {
			g.close(phase)
			g.run.EndBackward(phase)
		}, done...)}
		if next != nil {
			next.rows = rows
			g.backwardPoint(s, p, after, next, weights)
		}
		after = next
	}
	return s
}

// backwardRows takes the gradients of bins back through a phase, once an earlier one is
// weighed from.
func (g *g3) backwardRows(s *schedule, p *nn.Pass, phase int, after, next *passage, weighed []int) []int {
	leave := next != nil && next.kind != nn.CommonPoint && g.run.GoesBack(next.point)
	if leave {
		next.coming = arrivals(s, len(g.points[next.point].owned.sends))
	}
	return g.eachBin(phase, func(b, lo, hi int) int {
		waits := [][]int{weighed}
		if after != nil {
			waits = append(waits, g.backwardWaits(after, b)...)
		}
		return s.add(urgency(urgentRows, g.run.Phases()-phase, b), func() {
			if leave && g.flows[next.point] == nil {
				g.flows[next.point] = g.backwardFlow(next.point, next.coming)
			}
			g.spill.need(phase)
			end := p.Span(fmt.Sprintf("phase %d, bin %d", phase, b))
			if f := g.flows[phase]; f != nil {
				f.addReturned(b)
			}
			g.run.Backward(phase, lo, hi)
			end()
		}, waits...)
	})
}

// backwardWaits is what the gradients of a bin wait for.
func (g *g3) backwardWaits(j *passage, b int) [][]int {
	if j.kind == nn.CommonPoint {
		return [][]int{j.sums}
	}
	c := g.points[j.point]
	self := pick(j.self, c.links.after[b])
	switch {
	case len(j.sums) == 0: // the first layer, of which only the weights are wanted
		return [][]int{pick(j.rows, c.links.after[b]), self}
	case j.kind == nn.EdgePoint:
		return [][]int{j.sums, pick(j.coming, c.owned.sendsOf[b]), self, g.unlessEager(j.coming)}
	}
	return [][]int{{j.sums[b]}, pick(j.coming, c.owned.sendsOf[b]), self}
}

// backwardPoint goes back through a synchronisation point: halo rows first, whose gradients leave.
func (g *g3) backwardPoint(s *schedule, p *nn.Pass, after, j *passage, weights []int) {
	place := g.run.Phases() - j.point
	if j.kind == nn.CommonPoint {
		waits := [][]int{j.rows}
		if after != nil { // all workers meet here, and some may wait for those
			waits = append(waits, after.halos)
		}
		j.sums = []int{s.add(urgency(urgentSum, place, 0), func() {
			g.spill.need(j.point)
			g.run.WholeGrad(j.point)
		}, waits...)}
		return
	}
	j.self = g.eachBin(j.point+1, func(b, lo, hi int) int {
		return s.add(urgency(urgentSelf, place, b), func() {
			end := p.Span(fmt.Sprintf("own rows %d, bin %d", j.point, b))
			g.run.Root(j.point, lo, hi)
			end()
		}, []int{j.rows[b]})
	})
	switch {
	case !g.run.GoesBack(j.point):
	case j.kind == nn.EdgePoint:
		id := s.add(urgency(urgentSend, place, 0), func() { g.edgeGrads(p, j.point) }, j.rows, g.unlessEager(weights))
		j.sums, j.halos = []int{id}, []int{id}
		g.sendBack(s, j, place, func(int) []int { return []int{id} })
	default:
		g.haloGrads(s, p, j, place, weights)
		j.sums = g.eachBin(j.point, func(b, lo, hi int) int {
			return s.add(urgency(urgentSum, place, b), func() {
				end := p.Span(fmt.Sprintf("local sums %d, bin %d", j.point, b))
				sums := g.run.SumGrads(j.point)
				g.halo.Local().SumGradRows(sums.Reduce, sums.Src, sums.Dst, lo, hi)
				end()
			}, pick(j.rows, g.points[j.point].links.users[b]), g.unlessEager(j.coming), g.unlessEager(j.halos))
		})
	}
}

// haloGrads computes the gradients of halo rows, a chunk or a range of small ones at a time, and returns them.
func (g *g3) haloGrads(s *schedule, p *nn.Pass, j *passage, place int, weights []int) {
	var sums []int // by chunk
	o := g.points[j.point].owned
	add := func(chunks [2]int) {
		first, last := o.halos[chunks[0]], o.halos[chunks[1]-1]
		id := s.add(urgency(urgentSend, place, g.firstTurn(o.halos, chunks)), func() {
			end := p.Span(fmt.Sprintf("halo sums %d, bin %d of rank %d", j.point, first.number, first.peer))
			sums, f := g.run.SumGrads(j.point), g.flows[j.point]
			o.remote.SumGradRows(sums.Reduce, f.parts[0].out, sums.Dst, first.lo, last.hi)
			end()
			if g.early {
				f.sendTogether(chunks, func(i int) bool { return len(o.relays[i]) == 0 })
			}
		}, pick(j.rows, o.users[chunks[0]]), g.unlessEager(weights))
		for range chunks[1] - chunks[0] {
			sums = append(sums, id)
		}
	}
	for _, chunks := range o.returning {
		add(chunks)
	}
	for i := len(sums); i < len(o.halos); i++ { // by way of others
		add([2]int{i, i + 1})
	}
	j.halos = sums
	after := func(i int) []int { return sums[i : i+1] }
	if !g.early {
		all := s.add(urgency(urgentSend, place, 0), func() { g.sendAll(j.point) }, j.rows, sums)
		j.halos, after = append(j.halos, all), func(int) []int { return []int{all} }
	}
	g.sendBack(s, j, place, after)
}

// sendBack lets gradients of halo rows that were relayed leave once those of the others
// have arrived, and their own are computed.
func (g *g3) sendBack(s *schedule, j *passage, place int, after func(i int) []int) {
	o := g.points[j.point].owned
	for i, relays := range o.relays {
		if len(relays) > 0 {
			j.halos = append(j.halos, s.add(urgency(urgentSend, place, g.turn(o.halos[i])), func() {
				f := g.flows[j.point]
				f.addRelayed(i)
				f.send(i)
			}, after(i), pick(j.coming, relays)))
		}
	}
}

// sendAll lets the gradients of a synchronisation point's halo rows leave that no relay adds to.
func (g *g3) sendAll(point int) {
	for i, relays := range g.points[point].owned.relays {
		if len(relays) == 0 {
			g.flows[point].send(i)
		}
	}
}

// edgeGrads is the backward pass over a layer's edges, for all rows.
func (g *g3) edgeGrads(p *nn.Pass, point int) {
	end := p.Span(fmt.Sprintf("edges of point %d", point))
	op := g.run.EdgewiseGrad(point)
	op.EdgeBackward(g.halo.Edges(op.Over()))
	end()
	g.sendAll(point)
}

// weightsBehind is how many phases the gradients of weights may be behind those of rows.
// Until then all is kept that they are computed from, which of a deep model is several
// times what is there at once otherwise. Two of them fill the time as well as all do.
const weightsBehind = 2

// weightBins is how many bins' part in the gradients of weights is computed at a time:
// the sums are as large as the weights, whatever the rows.
const weightBins = 4

// weights sums the gradients of a phase's weights, bins in ascending order.
func (g *g3) weights(s *schedule, p *nn.Pass, phase int, rows []int) (all []int) {
	at := g.phases[phase]
	if g.run.Roots(phase) {
		all = g.eachWeights(s, p, at, fmt.Sprintf("own rows' weights of phase %d", phase),
			urgency(urgentWeights, 2*(g.run.Phases()-phase), 0), rows,
			func(lo, hi int, last bool) { g.run.LearnRoots(phase, lo, hi, last) })
	}
	return append(all, g.eachWeights(s, p, at, fmt.Sprintf("weights of phase %d", phase),
		urgency(urgentWeights, 2*(g.run.Phases()-phase)+1, 0), rows,
		func(lo, hi int, _ bool) { g.run.WeightGrad(phase, lo, hi) })...)
}

func (g *g3) eachWeights(s *schedule, p *nn.Pass, at []int, name string, urgency int64, rows []int,
	grad func(lo, hi int, last bool)) (all []int) {
	var before []int
	for b := 0; b < len(rows); b += weightBins {
		end := min(b+weightBins, len(rows))
		id := s.add(urgency+int64(b), func() {
			done := p.Span(fmt.Sprintf("%s, bins %d to %d", name, b, end-1))
			grad(at[b], at[end], end == len(rows))
			done()
		}, rows[b:end], before)
		before = []int{id}
		all = append(all, id)
	}
	return all
}
