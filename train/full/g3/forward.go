package g3

import (
	"fmt"

	"starling/nn"
)

// forward plans the forward pass. With r the rows of a phase, n the local sums
// of the synchronisation point after it, and ↓ the chunks that arrive for it, bin b of phase s+1 is
//
//	r_s → n_s,b      n_s,b, ↓_s,b → r_s+1,b → sent
//
// What of r_s+1,b needs no neighbours fills the time until these have arrived.
func (g *g3) forward(p *nn.Pass) *schedule {
	s, last := &schedule{}, g.run.Phases()-1
	g.waiting = g.waiting[:0]
	var before *passage
	for phase := range last + 1 {
		var next *passage
		if phase < last {
			next = &passage{point: phase, kind: g.run.SyncPoint(phase)}
		}
		rows := g.forwardRows(s, p, phase, before, next)
		done := [][]int{rows}
		if before != nil {
			done = append(done, before.relayed)
		}
		prior := before
		s.add(urgency(urgentEnd, phase, 0), func() {
			g.run.EndForward(phase)
			if phase > 0 {
				g.close(phase - 1)
				prior.ready.end()
			}
			g.spill.ended(g.run, phase)
		}, done...)
		if next != nil {
			next.rows = rows
			g.forwardPoint(s, p, next)
		}
		before = next
	}
	return s
}

// passage is a synchronisation point in a schedule: the tasks of the rows before it, of its
// sums, and the chunks that arrive.
type passage struct {
	point              int
	order              *order
	kind               nn.SyncPoint
	rows, sums, coming []int
	halos              []int // backward: the gradients of halo rows
	self               []int // what needs a bin's own rows only
	relayed            []int // forward: the chunks that are relayed
	ready              *ready
}

// forwardRows takes the bins through a phase, and lets their rows leave.
func (g *g3) forwardRows(s *schedule, p *nn.Pass, phase int, before, next *passage) []int {
	leave := next != nil && next.kind != nn.CommonPoint
	if leave {
		next.order = g.order(phase)
		next.coming = arrivals(s, len(next.order.halos))
	}
	run := g.forwardRun(p, phase, before)
	begin := func(lo, hi int) {
		if leave && g.flows[phase] == nil {
			g.flows[phase] = g.forwardFlow(phase, next.coming)
			g.flows[phase].ready = next.ready
		}
		run(lo, hi)
	}
	var r *ready
	if before != nil && before.kind == nn.SumPoint && before.order.waves == nil && g.eager {
		r = g.track(before, begin)
	}
	rows := g.eachBin(phase, func(b, lo, hi int) int {
		var waits [][]int
		if before != nil {
			waits = g.forwardWaits(before, b)
		}
		return s.add(urgency(urgentRows, phase, b), func() {
			if r == nil {
				begin(lo, hi)
				return
			}
			r.rest(b, lo, hi)
		}, waits...)
	})
	if leave {
		for _, chunks := range next.order.together {
			after := rows
			if g.early {
				after = pick(rows, next.order.makers[chunks[0]])
			}
			s.add(urgency(urgentSend, phase, g.firstTurn(next.order.sends, chunks)), func() {
				g.flows[phase].sendTogether(chunks, func(int) bool { return true })
			}, after)
		}
		next.relayed = g.relayChunks(s, phase, next)
	}
	return rows
}

// relayChunks relays the rows of a chunk when it has arrived.
func (g *g3) relayChunks(s *schedule, phase int, j *passage) (tasks []int) {
	for i, chunks := range j.order.relays {
		for _, k := range chunks {
			tasks = append(tasks, s.add(urgency(urgentSend, phase, g.turn(j.order.sends[k])), func() {
				if f := g.flows[phase]; f != nil { // there is one, unless all was given up
					f.relay(k)
				}
			}, j.coming[i:i+1]))
		}
	}
	return tasks
}

// forwardWaits is what a bin waits for after a synchronisation point.
func (g *g3) forwardWaits(j *passage, b int) [][]int {
	switch j.kind {
	case nn.SumPoint:
		waits := [][]int{{j.sums[b]}}
		if j.self != nil {
			waits = append(waits, []int{j.self[b]})
		}
		if j.order.waves == nil {
			waits = append(waits, pick(j.coming, j.order.halosOf[b]))
		}
		return waits
	case nn.EdgePoint:
		return [][]int{pick(j.rows, g.points[j.point].links.sources[b]), pick(j.coming, j.order.halosOf[b]),
			g.unlessEager(j.coming)}
	}
	return [][]int{j.sums}
}

// complete does what of a synchronisation point needs halo rows, for rows of a bin.
func (g *g3) complete(j *passage, lo, hi int) {
	switch {
	case j.kind == nn.SumPoint && j.order.waves == nil && len(j.order.halosOf[binOf(g.phases[j.point+1], lo)]) > 0:
		sums := g.run.Sums(j.point)
		j.order.remote.SumRows(sums.Reduce, sums.Dst, g.flows[j.point].parts[0].in, lo, hi, true)
	case j.kind == nn.EdgePoint:
		op := g.run.Edgewise(j.point)
		op.EdgeForward(g.halo.Edges(op.Over()), lo, hi)
	}
}

// forwardPoint does what of a synchronisation point needs no halo rows.
func (g *g3) forwardPoint(s *schedule, p *nn.Pass, j *passage) {
	switch j.kind {
	case nn.SumPoint:
		j.sums = g.eachBin(j.point+1, func(b, lo, hi int) int {
			return s.add(urgency(urgentSum, j.point, b), func() {
				end := p.Span(fmt.Sprintf("local sums %d, bin %d", j.point, b))
				sums := g.run.Sums(j.point)
				g.halo.Local().SumRows(sums.Reduce, sums.Dst, sums.Src, lo, hi, false)
				end()
			}, pick(j.rows, g.points[j.point].links.sources[b]), g.unlessEager(j.coming))
		})
		if g.run.HasEarly(j.point) {
			j.self = g.eachBin(j.point+1, func(b, lo, hi int) int {
				return s.add(urgency(urgentSelf, j.point, b), func() {
					end := p.Span(fmt.Sprintf("own rows %d, bin %d", j.point, b))
					g.run.Early(j.point, lo, hi)
					end()
				}, pick(j.rows, g.points[j.point].links.before[b]), g.unlessEager(j.coming))
			})
		}
		if j.order.waves != nil {
			j.sums = g.addWaves(s, p, j, j.sums)
		}
	case nn.CommonPoint:
		j.sums = []int{s.add(urgency(urgentSum, j.point, 0), func() { g.run.Whole(j.point) }, j.rows)}
	}
}

// turn orders chunks by number, those of a number from the next rank on, so that not
// all send to rank 0 first. What is relayed has another way to go and is first.
func (g *g3) turn(c chunk) int {
	n := g.W.End.Size()
	if c.owner >= 0 {
		return c.number * n
	}
	return c.number*n + (c.peer-g.W.End.Rank()+n)%n
}

// firstTurn is the first turn of a range of chunks.
func (g *g3) firstTurn(list []chunk, chunks [2]int) int {
	first := g.turn(list[chunks[0]])
	for _, c := range list[chunks[0]:chunks[1]] {
		first = min(first, g.turn(c))
	}
	return first
}

// close is done with the flow of a synchronisation point, if it has one. What it sent may still be
// leaving; only gradients across edges, which leave from where they were computed, are
// waited for.
func (g *g3) close(point int) {
	f := g.flows[point]
	if f == nil {
		return
	}
	g.flows[point] = nil
	if f.t.EdgeOp && f.t.Backward {
		f.close()
		return
	}
	g.leaving = append(g.leaving, f)
}
