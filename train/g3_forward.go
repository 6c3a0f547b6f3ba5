package train

import (
	"fmt"

	"starling/nn"
)

// forward plans the way through all phases. With r the rows of a phase, n the near sums
// of the joint after it, and ↓ the chunks that come for it, bin b of phase s+1 is
//
//	r_s → n_s,b      n_s,b, ↓_s,b → r_s+1,b → sent
//
// What of r_s+1,b needs no neighbours fills the time until these have come.
func (g *g3) forward(p *nn.Pass) *schedule {
	s, last := &schedule{}, g.run.Phases()-1
	var before *passage
	for phase := range last + 1 {
		var next *passage
		if phase < last {
			next = &passage{joint: phase, kind: g.run.Joint(phase)}
		}
		rows := g.forwardRows(s, p, phase, before, next)
		done := [][]int{rows}
		if before != nil {
			done = append(done, before.passed)
		}
		s.add(urgency(urgentEnd, phase, 0), func() {
			g.run.EndForward(phase)
			if phase > 0 {
				g.close(phase - 1)
			}
		}, done...)
		if next != nil {
			next.rows = rows
			g.forwardJoint(s, p, next)
		}
		before = next
	}
	return s
}

// passage is a joint in a plan: the tasks of the rows on its near side, of its sums,
// and the chunks that come.
type passage struct {
	joint              int
	order              *order
	kind               nn.Joint
	rows, sums, coming []int
	fars               []int // backwards: the sums of far rows
	roots              []int
	passed             []int // forwards: the chunks that are passed on
}

// forwardRows takes the bins through a phase, and lets their rows leave.
func (g *g3) forwardRows(s *schedule, p *nn.Pass, phase int, before, next *passage) []int {
	leave := next != nil && next.kind != nn.Together
	if leave {
		next.order = g.order(phase)
		next.coming = arrivals(s, len(next.order.fars))
	}
	rows := g.eachBin(func(b, lo, hi int) int {
		var waits [][]int
		if before != nil {
			waits = g.forwardWaits(before, b)
		}
		return s.add(urgency(urgentRows, phase, b), func() {
			if leave && g.flows[phase] == nil {
				g.flows[phase] = g.forwardFlow(phase, next.coming)
			}
			end := p.Span(fmt.Sprintf("phase %d, bin %d", phase, b))
			if before != nil {
				g.complete(before, b, lo, hi)
			}
			g.run.Forward(phase, lo, hi)
			end()
		}, waits...)
	})
	if leave {
		for i, c := range next.order.sends {
			if c.owner >= 0 {
				continue
			}
			after := rows
			if g.early {
				after = pick(rows, next.order.makers[i])
			}
			s.add(urgency(urgentSend, phase, g.turn(c)), func() { g.flows[phase].send(i) }, after)
		}
		next.passed = g.passOn(s, phase, next)
	}
	return rows
}

// passOn passes the rows of a chunk on when it has come.
func (g *g3) passOn(s *schedule, phase int, j *passage) (tasks []int) {
	for i, chunks := range j.order.passes {
		for _, k := range chunks {
			tasks = append(tasks, s.add(urgency(urgentSend, phase, g.turn(j.order.sends[k])), func() {
				if f := g.flows[phase]; f != nil { // there is one, unless all was given up
					f.pass(k)
				}
			}, j.coming[i:i+1]))
		}
	}
	return tasks
}

// forwardWaits is what a bin waits for after a joint.
func (g *g3) forwardWaits(j *passage, b int) [][]int {
	switch j.kind {
	case nn.Summed:
		waits := [][]int{{j.sums[b]}}
		if j.roots != nil {
			waits = append(waits, []int{j.roots[b]})
		}
		if j.order.waves == nil {
			waits = append(waits, pick(j.coming, j.order.farsOf[b]))
		}
		return waits
	case nn.Crossed:
		return [][]int{pick(j.rows, g.bins.near[b]), pick(j.coming, j.order.farsOf[b]), g.unlessEager(j.coming)}
	}
	return [][]int{j.sums}
}

// complete does what of a joint needs far rows, for a bin.
func (g *g3) complete(j *passage, b, lo, hi int) {
	switch {
	case j.kind == nn.Summed && j.order.waves == nil && len(j.order.farsOf[b]) > 0:
		sums := g.run.Sums(j.joint)
		j.order.far.SumRows(sums.Reduce, sums.Dst, g.flows[j.joint].parts[0].in, lo, hi, true)
	case j.kind == nn.Crossed:
		op := g.run.Across(j.joint)
		op.Do(g.border(0).edges(op.Over()), lo, hi)
	}
}

// forwardJoint does what of a joint needs no far rows.
func (g *g3) forwardJoint(s *schedule, p *nn.Pass, j *passage) {
	switch j.kind {
	case nn.Summed:
		j.sums = g.eachBin(func(b, lo, hi int) int {
			return s.add(urgency(urgentSum, j.joint, b), func() {
				end := p.Span(fmt.Sprintf("near sums %d, bin %d", j.joint, b))
				sums := g.run.Sums(j.joint)
				g.border(0).near.SumRows(sums.Reduce, sums.Dst, sums.Src, lo, hi, false)
				end()
			}, pick(j.rows, g.bins.near[b]), g.unlessEager(j.coming))
		})
		if g.run.HasEarly(j.joint) {
			j.roots = g.eachBin(func(b, lo, hi int) int {
				return s.add(urgency(urgentRoot, j.joint, b), func() {
					end := p.Span(fmt.Sprintf("roots %d, bin %d", j.joint, b))
					g.run.Early(j.joint, lo, hi)
					end()
				}, []int{j.rows[b]}, g.unlessEager(j.coming))
			})
		}
		if j.order.waves != nil {
			j.sums = g.addWaves(s, p, j, j.sums)
		}
	case nn.Together:
		j.sums = []int{s.add(urgency(urgentSum, j.joint, 0), func() { g.run.Whole(j.joint) }, j.rows)}
	}
}

// turn orders chunks by number, those of a number from the next rank on, so that not
// all send to rank 0 first. What is passed on has another way to go and is first.
func (g *g3) turn(c chunk) int {
	n := g.end.Size()
	if c.owner >= 0 {
		return c.number * n
	}
	return c.number*n + (c.peer-g.end.Rank()+n)%n
}

// close is done with the flow of a joint, if it has one. What it sent may still be
// leaving; only gradients across edges, which leave from where they were computed, are
// waited for.
func (g *g3) close(joint int) {
	f := g.flows[joint]
	if f == nil {
		return
	}
	g.flows[joint] = nil
	if f.t.across && f.t.backward {
		f.close()
		return
	}
	g.leaving = append(g.leaving, f)
}
