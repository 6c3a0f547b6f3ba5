package train

import (
	"fmt"

	"starling/nn"
)

// backward plans the way back. With b the gradients of a phase's rows, f those of far
// rows, n the near sums of gradients, ↓ the chunks that come, and l gradients of
// weights, bin i of phase s is
//
//	b_s+1 → f_s → sent      b_s+1 → n_s,i      n_s,i, ↓_s,i, l_s+2 → b_s,i → l_s,i
func (g *g3) backward(p *nn.Pass) *schedule {
	s, last := &schedule{}, g.run.Phases()-1
	var after *passage // the joint that a phase comes back from
	ended := make([][]int, last+1+learnBehind)
	for phase := last; phase >= 0; phase-- {
		var next *passage
		if phase > 0 {
			next = &passage{joint: phase - 1, kind: g.run.Joint(phase - 1)}
		}
		rows := g.backwardRows(s, p, phase, after, next, ended[phase+learnBehind])
		learn := g.learn(s, p, phase, rows)
		done := [][]int{rows, learn, ended[phase+1]}
		if after != nil {
			done = append(done, after.fars)
		}
		ended[phase] = []int{s.add(urgency(urgentEnd, last-phase, 0), func() {
			g.close(phase)
			g.run.EndBackward(phase)
		}, done...)}
		if next != nil {
			next.rows = rows
			g.backwardJoint(s, p, after, next, learn)
		}
		after = next
	}
	return s
}

// backwardRows takes the gradients of bins back through a phase, once an earlier one is
// learnt from.
func (g *g3) backwardRows(s *schedule, p *nn.Pass, phase int, after, next *passage, learnt []int) []int {
	leave := next != nil && next.kind != nn.Together && g.run.GoesBack(next.joint)
	if leave {
		next.coming = arrivals(s, len(g.owned.sends))
	}
	return g.eachBin(func(b, lo, hi int) int {
		waits := [][]int{learnt}
		if after != nil {
			waits = append(waits, g.backwardWaits(after, b)...)
		}
		return s.add(urgency(urgentRows, g.run.Phases()-phase, b), func() {
			if leave && g.flows[next.joint] == nil {
				g.flows[next.joint] = g.backwardFlow(next.joint, next.coming)
			}
			end := p.Span(fmt.Sprintf("phase %d, bin %d", phase, b))
			if f := g.flows[phase]; f != nil {
				f.addTheirs(b)
			}
			g.run.Backward(phase, lo, hi)
			end()
		}, waits...)
	})
}

// backwardWaits is what the gradients of a bin wait for.
func (g *g3) backwardWaits(j *passage, b int) [][]int {
	switch {
	case j.kind == nn.Together:
		return [][]int{j.sums}
	case len(j.sums) == 0: // the first layer, of which only the weights are wanted
		return [][]int{{j.rows[b]}, {j.roots[b]}}
	case j.kind == nn.Crossed:
		return [][]int{j.sums, pick(j.coming, g.owned.sendsOf[b]), {j.roots[b]}, g.unlessEager(j.coming)}
	}
	return [][]int{{j.sums[b]}, pick(j.coming, g.owned.sendsOf[b]), {j.roots[b]}}
}

// backwardJoint goes back through a joint: far rows first, whose gradients leave.
func (g *g3) backwardJoint(s *schedule, p *nn.Pass, after, j *passage, learn []int) {
	place := g.run.Phases() - j.joint
	if j.kind == nn.Together {
		waits := [][]int{j.rows}
		if after != nil { // all workers meet here, and some may wait for those
			waits = append(waits, after.fars)
		}
		j.sums = []int{s.add(urgency(urgentSum, place, 0), func() { g.run.WholeGrad(j.joint) }, waits...)}
		return
	}
	j.roots = g.eachBin(func(b, lo, hi int) int {
		return s.add(urgency(urgentRoot, place, b), func() {
			end := p.Span(fmt.Sprintf("roots %d, bin %d", j.joint, b))
			g.run.Root(j.joint, lo, hi)
			end()
		}, []int{j.rows[b]})
	})
	switch {
	case !g.run.GoesBack(j.joint):
	case j.kind == nn.Crossed:
		id := s.add(urgency(urgentSend, place, 0), func() { g.acrossGrad(p, j.joint) }, j.rows, g.unlessEager(learn))
		j.sums, j.fars = []int{id}, []int{id}
		g.sendHome(s, j, place, func(int) []int { return []int{id} })
	default:
		g.farGrads(s, p, j, place, learn)
		j.sums = g.eachBin(func(b, lo, hi int) int {
			return s.add(urgency(urgentSum, place, b), func() {
				end := p.Span(fmt.Sprintf("near sums %d, bin %d", j.joint, b))
				sums := g.run.SumGrads(j.joint)
				g.border(0).near.SumGradRows(sums.Reduce, sums.Src, sums.Dst, lo, hi)
				end()
			}, pick(j.rows, g.bins.back[b]), g.unlessEager(j.coming), g.unlessEager(j.fars))
		})
	}
}

// farGrads computes the gradients of far rows, a chunk at a time, and sends them home.
func (g *g3) farGrads(s *schedule, p *nn.Pass, j *passage, place int, learn []int) {
	var sums []int
	for i, c := range g.owned.fars {
		sums = append(sums, s.add(urgency(urgentSend, place, g.turn(c)), func() {
			end := p.Span(fmt.Sprintf("far sums %d, bin %d of rank %d", j.joint, c.number, c.peer))
			sums, f := g.run.SumGrads(j.joint), g.flows[j.joint]
			g.owned.far.SumGradRows(sums.Reduce, f.parts[0].out, sums.Dst, c.lo, c.hi)
			end()
			if g.early && len(g.owned.passes[i]) == 0 {
				f.send(i)
			}
		}, pick(j.rows, g.owned.users[i]), g.unlessEager(learn)))
	}
	j.fars = sums
	after := func(i int) []int { return sums[i : i+1] }
	if !g.early {
		all := s.add(urgency(urgentSend, place, 0), func() { g.sendAll(j.joint) }, j.rows, sums)
		j.fars, after = append(j.fars, all), func(int) []int { return []int{all} }
	}
	g.sendHome(s, j, place, after)
}

// sendHome lets gradients of far rows that were passed on leave once those of the others
// have come, and their own are computed.
func (g *g3) sendHome(s *schedule, j *passage, place int, after func(i int) []int) {
	for i, passes := range g.owned.passes {
		if len(passes) > 0 {
			j.fars = append(j.fars, s.add(urgency(urgentSend, place, g.turn(g.owned.fars[i])), func() {
				f := g.flows[j.joint]
				f.addPassed(i)
				f.send(i)
			}, after(i), pick(j.coming, passes)))
		}
	}
}

// sendAll lets the gradients of a joint's far rows leave that wait for nobody's.
func (g *g3) sendAll(joint int) {
	for i, passes := range g.owned.passes {
		if len(passes) == 0 {
			g.flows[joint].send(i)
		}
	}
}

// acrossGrad is the way back over a layer's edges, for all rows.
func (g *g3) acrossGrad(p *nn.Pass, joint int) {
	end := p.Span(fmt.Sprintf("edges of joint %d", joint))
	op := g.run.AcrossGrad(joint)
	op.Undo(g.border(0).edges(op.Over()))
	end()
	g.sendAll(joint)
}

// learnBehind is how many phases the gradients of weights may be behind those of rows.
// Until then all is kept that they are computed from, which of a deep model is several
// times what is there at once otherwise. Two of them fill the time as well as all do.
const learnBehind = 2

// learnBins is how many bins' part in the gradients of weights is computed at a time:
// the sums are as large as the weights, whatever the rows.
const learnBins = 4

// learn adds up the gradients of a phase's weights, bins in ascending order.
func (g *g3) learn(s *schedule, p *nn.Pass, phase int, rows []int) (all []int) {
	if g.run.Roots(phase) {
		all = g.learnEach(s, p, fmt.Sprintf("roots' weights of phase %d", phase), urgency(urgentLearn, 2*(g.run.Phases()-phase), 0), rows,
			func(lo, hi int, last bool) { g.run.LearnRoots(phase, lo, hi, last) })
	}
	return append(all, g.learnEach(s, p, fmt.Sprintf("weights of phase %d", phase), urgency(urgentLearn, 2*(g.run.Phases()-phase)+1, 0), rows,
		func(lo, hi int, _ bool) { g.run.Learn(phase, lo, hi) })...)
}

func (g *g3) learnEach(s *schedule, p *nn.Pass, name string, urgency int64, rows []int, learn func(lo, hi int, last bool)) (all []int) {
	var before []int
	for b := 0; b < g.bins.count(); b += learnBins {
		end := min(b+learnBins, g.bins.count())
		id := s.add(urgency+int64(b), func() {
			done := p.Span(fmt.Sprintf("%s, bins %d to %d", name, b, end-1))
			learn(g.bins.at[b], g.bins.at[end], end == g.bins.count())
			done()
		}, rows[b:end], before)
		before = []int{id}
		all = append(all, id)
	}
	return all
}
