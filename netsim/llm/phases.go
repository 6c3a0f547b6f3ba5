package llm

import (
	"maps"

	"starling/coflow"
)

// An all-to-all in sub-phases, so that no two flows meet at a receiver (§5.3.2, algorithm 3). Members of a server share
// its links, so that matchings are of servers: in a sub-phase a server sends to one other, all its members to all of
// that one's, and receives from one. What stays inside a server does not wait. A sub-phase of a pair of servers begins
// when both have ended their earlier ones, whatever other pairs do, and a member goes on when what it sends and
// receives has ended.
type phases struct {
	run     *run
	group   *group
	rest    []turn // in the order of their sub-phases
	out, in map[int]bool
}

// turn is what a server sends to another in a sub-phase.
type turn struct {
	from, to int
	flows    []flow
}

// inPhases starts an all-to-all of a group.
func (r *run) inPhases(t traits, sizes [][]int64, w *worker) {
	first := w.replica - w.replica%r.EP
	left := make([]int, r.EP) // flows of each member
	p := &phases{run: r, group: &group{traits: t, began: r.net.Now()}}
	add := func(flows []flow, i, j int, bytes int64) []flow {
		if bytes == 0 {
			return flows
		}
		left[i]++
		left[j]++
		p.group.left++
		return append(flows, flow{r.host(w.stage, first+i), r.host(w.stage, first+j), bytes, func() {
			r.ended(left, w.stage, first, i)
			r.ended(left, w.stage, first, j)
		}})
	}
	members, inside := r.members(w.stage, first), []flow(nil)
	for _, all := range members {
		for _, i := range all {
			for _, j := range all {
				inside = add(inside, i, j, sizes[i][j])
			}
		}
	}
	p.plan(sizes, members, add)
	r.wakeIdle(left, w.stage, first)
	for _, f := range inside {
		r.bytes[t.kind] += f.bytes
		r.submit(p.group, f)
	}
	p.next()
}

// members returns the members of a group, by server.
func (r *run) members(stage, first int) (all [][]int) {
	at := map[int]int{}
	for i := range r.EP {
		s := r.server(r.host(stage, first+i))
		k, ok := at[s]
		if !ok {
			k, at[s] = len(all), len(all)
			all = append(all, nil)
		}
		all[k] = append(all[k], i)
	}
	return all
}

// plan makes the sub-phases: a part of what members of a pair of servers send to each other is sent in each.
func (p *phases) plan(sizes [][]int64, members [][]int, add func(flows []flow, i, j int, bytes int64) []flow) {
	n := len(members)
	total, sent := square(n), square(n)
	for a, from := range members {
		for b, to := range members {
			for _, i := range from {
				for _, j := range to {
					if a != b {
						total[a][b] += sizes[i][j]
					}
				}
			}
		}
	}
	for _, m := range coflow.GreedyMatchings(total) {
		for a, b := range m.To {
			if b < 0 || m.Bytes[a] == 0 {
				continue
			}
			u := turn{from: a, to: b}
			before, after := sent[a][b], sent[a][b]+m.Bytes[a]
			for _, i := range members[a] {
				for _, j := range members[b] {
					part := share(sizes[i][j], after, total[a][b]) - share(sizes[i][j], before, total[a][b])
					u.flows = add(u.flows, i, j, part)
				}
			}
			sent[a][b] = after
			if len(u.flows) > 0 {
				p.rest = append(p.rest, u)
			}
		}
	}
}

// share is the part of a size that is sent when a part of a total is.
func share(size, part, total int64) int64 {
	if part == total {
		return size
	}
	return int64(float64(size) * float64(part) / float64(total))
}

// next starts what may start.
func (p *phases) next() {
	for _, u := range p.start() {
		left := len(u.flows)
		for _, f := range u.flows {
			done := f.done
			f.done = func() {
				done()
				if left--; left == 0 {
					delete(p.out, u.from)
					delete(p.in, u.to)
					p.next()
				}
			}
			p.run.bytes[p.group.kind] += f.bytes
			p.run.submit(p.group, f)
		}
	}
}

// start takes what is first of those of both its servers, which are free.
func (p *phases) start() (now []turn) {
	if p.out == nil {
		p.out, p.in = map[int]bool{}, map[int]bool{}
	}
	var later []turn
	out, in := maps.Clone(p.out), maps.Clone(p.in)
	for _, u := range p.rest {
		if out[u.from] || in[u.to] {
			later = append(later, u)
		} else {
			p.out[u.from], p.in[u.to] = true, true
			now = append(now, u)
		}
		out[u.from], in[u.to] = true, true
	}
	p.rest = later
	return now
}
