package g3

import (
	"fmt"

	"starling/nn"
)

// A vertex is ready for the next layer when the rows of its remote neighbours have arrived,
// and those of its own worker are summed (§4.4.2, eager computation). A bin that waits for
// its last message has such vertices. They are packed, of all bins, and computed, and the bins that
// they are of have less to do later: as soon as they take more memory than half of the budget or, without
// one, a bin does, before anything that lets nothing leave; fewer when there is nothing else to do.
//
// Rows are where they are: a pack is runs of neighbouring rows, of leastRun at least, which
// begin and end at multiples of runStep in their bin, so that kernels see the blocks they
// would see of the whole bin and every bit stays the same.
const (
	runStep  = 16
	leastRun = 64
)

// needs are the vertices that need a row of each halo chunk of an order.
type needs struct {
	users [][]uint32 // by chunk
	count []int32    // chunks that a vertex needs
}

// needs of an order, from the edges of the part.
func (c *cutting) needs(o *order, haloAt []uint32) *needs {
	n := &needs{users: make([][]uint32, len(o.halos)), count: make([]int32, c.plan.Src)}
	chunkAt := o.chunkAt(len(haloAt))
	for v := range c.plan.Src {
		for _, u := range c.plan.In.Neighbors(uint32(v)) {
			if int(u) < c.plan.Src {
				continue
			}
			k := chunkAt[haloAt[int(u)-c.plan.Src]]
			if list := n.users[k]; len(list) == 0 || list[len(list)-1] != uint32(v) {
				n.users[k] = append(list, uint32(v))
				n.count[v]++
			}
		}
	}
	return n
}

// ready is which vertices may go on to the phase after a point, and which have.
type ready struct {
	needs   *needs
	missing []int32 // chunks that a vertex waits for
	done    []bool
	at      []int // bounds of bins
	able    []int // by bin, the vertices that wait for no chunk and are not done
	tried   int   // as many were there when no pack was found among them
	// local are, of each bin, the tasks that come before; ran whether all of it is through.
	local [][]int
	ran   []bool
	run   func(lo, hi int) // takes rows through the phase
	over  bool             // all are through
}

// track begins to count for a point.
func (g *g3) track(j *passage, run func(lo, hi int)) *ready {
	if j.order.needs == nil {
		j.order.needs = g.points[j.point].cut.needs(j.order, j.order.haloAt)
	}
	r := newReady(j.order.needs, g.phases[j.point+1], run)
	for b := range r.ran {
		before := []int{j.sums[b]}
		if j.self != nil {
			before = append(before, j.self[b])
		}
		r.local = append(r.local, before)
	}
	j.ready, g.waiting = r, append(g.waiting, r)
	return r
}

// newReady of vertices in bins.
func newReady(n *needs, at []int, run func(lo, hi int)) *ready {
	r := &ready{needs: n, missing: append([]int32(nil), n.count...), done: make([]bool, len(n.count)), at: at,
		able: make([]int, len(at)-1), ran: make([]bool, len(at)-1), run: run}
	for v, missing := range r.missing {
		if missing == 0 {
			r.able[binOf(at, v)]++
		}
	}
	return r
}

// end says that all rows are through.
func (r *ready) end() {
	if r != nil {
		r.over = true
	}
}

// arrived counts a chunk.
func (r *ready) arrived(chunk int) {
	if r == nil {
		return
	}
	r.tried = 0
	for _, v := range r.needs.users[chunk] {
		if r.missing[v]--; r.missing[v] == 0 {
			r.able[binOf(r.at, int(v))]++
		}
	}
}

// rest takes what is left of a bin through the phase; all of it is ready.
func (r *ready) rest(b, lo, hi int) {
	for at := lo; at < hi; {
		if r.done[at] {
			at++
			continue
		}
		end := at
		for end < hi && !r.done[end] {
			r.done[end] = true
			end++
		}
		r.run(at, end)
		at = end
	}
	r.ran[b] = true
}

// pack takes ready vertices of bins that wait through the phase, up to a number of them. It reports
// how many there were.
func (r *ready) pack(s *schedule, most int) (rows int) {
	for b := range r.ran {
		if r.ran[b] || !s.done(r.local[b]) {
			continue
		}
		for _, run := range r.runs(r.at[b], r.at[b+1]) {
			if rows >= most {
				return rows
			}
			lo, hi := run[0], min(run[1], run[0]+(most-rows+runStep-1)/runStep*runStep)
			for v := lo; v < hi; v++ {
				r.done[v] = true
			}
			r.able[b] -= hi - lo
			r.run(lo, hi)
			rows += hi - lo
		}
	}
	return rows
}

// runs are the runs of a bin's rows that are ready and have not been computed.
func (r *ready) runs(first, end int) (list [][2]int) {
	lo := first
	for at := first; ; at += runStep {
		if at >= end || !r.block(at, min(at+runStep, end)) {
			if hi := min(at, end); hi-lo >= leastRun {
				list = append(list, [2]int{lo, hi})
			}
			if lo = at + runStep; at >= end {
				return list
			}
		}
	}
}

// block reports whether all rows of a block may go on.
func (r *ready) block(lo, hi int) bool {
	for v := lo; v < hi; v++ {
		if r.done[v] || r.missing[v] > 0 {
			return false
		}
	}
	return true
}

// packReady computes vertices that are ready while their bins wait; it reports whether there
// were any.
func (g *g3) packReady(s *schedule) bool {
	for _, r := range g.waiting {
		if !r.over && r.pack(s, r.at[1]) > 0 {
			return true
		}
	}
	return false
}

// packFull is packReady once the ready vertices of a phase are as many as a bin of it may be, unless the next task is
// as urgent.
func (g *g3) packFull(s *schedule) bool {
	if kind, ok := s.next(); !ok || kind <= urgentRows {
		return false
	}
	for _, r := range g.waiting {
		if r.full(s) && r.pack(s, r.at[1]) > 0 {
			r.tried = 0
			return true
		}
	}
	return false
}

// full reports whether a pack may be found of as many vertices as fit a bin.
func (r *ready) full(s *schedule) bool {
	if r.over {
		return false
	}
	rows := 0
	for b, n := range r.able {
		if !r.ran[b] && s.done(r.local[b]) {
			rows += n
		}
	}
	if rows < r.at[1] || rows <= r.tried {
		return false
	}
	r.tried = rows
	return true
}

// forwardRun takes rows through a phase, with what of the point before it needs halo rows.
func (g *g3) forwardRun(p *nn.Pass, phase int, before *passage) func(lo, hi int) {
	return func(lo, hi int) {
		end := p.Span(fmt.Sprintf("phase %d, rows %d to %d", phase, lo, hi))
		if before != nil {
			g.complete(before, lo, hi)
		}
		g.run.Forward(phase, lo, hi)
		end()
	}
}
