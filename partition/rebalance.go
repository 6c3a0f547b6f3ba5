package partition

import (
	"cmp"
	"context"
	"slices"
)

// rebalance brings parts that exceed a limit back within it, by moves that cost the
// fewest edges, then by exchanges where a move would only overload another part. It is
// for methods that fill parts one vertex at a time. If it
// fails, the error is an Unbalanced one with the best partition found.
func rebalance(ctx context.Context, p *Problem, parts []uint32, l *loads) error {
	s := rebalancer{p: p, parts: parts, l: l, count: make([]int, p.Parts)}
	if p.Limits != nil && l.excess() > 0 {
		before := slices.Clone(parts)
		defer func() { p.Limits.Repaired += differ(before, parts) }()
	}
	for excess := l.excess(); excess > 0; {
		for c := range l.constraints {
			for k := range l.weight {
				if err := ctx.Err(); err != nil {
					return err
				}
				s.relieve(k, c)
			}
		}
		left := l.excess()
		if left >= excess {
			break
		}
		excess = left
	}
	return l.unbalanced(parts)
}

// differ counts the vertices of another part.
func differ(a, b []uint32) (n int64) {
	for v := range a {
		if a[v] != b[v] {
			n++
		}
	}
	return n
}

type rebalancer struct {
	p     *Problem
	parts []uint32
	l     *loads
	count []int

	next, tries int // of exchange
}

// candidate is a vertex that could leave, its best part, and how many neighbours it
// would gain there.
type candidate struct {
	v, to uint32
	gain  int
}

// relieve takes weight of constraint c out of part k until it is within its limit.
func (s *rebalancer) relieve(k, c int) {
	if s.l.over(k, c) == 0 {
		return
	}
	var candidates []candidate
	for v, at := range s.parts {
		if int(at) == k && s.l.constraints[c].Of(v) > 0 {
			to, gain := s.best(v)
			candidates = append(candidates, candidate{uint32(v), to, gain})
		}
	}
	slices.SortFunc(candidates, func(a, b candidate) int { return cmp.Or(b.gain-a.gain, cmp.Compare(a.v, b.v)) })
	for _, o := range candidates {
		if s.l.over(k, c) == 0 {
			return
		}
		if to, _ := s.best(int(o.v)); to != unassigned {
			s.move(int(o.v), int(to))
		}
	}
	for _, o := range candidates {
		if s.l.over(k, c) == 0 {
			return
		}
		if int(s.parts[o.v]) == k {
			s.exchange(int(o.v), c)
		}
	}
}

// best is the part that v fits into with most of its neighbours; unassigned
// if it fits nowhere.
func (s *rebalancer) best(v int) (to uint32, gain int) {
	clear(s.count)
	for _, u := range s.p.Graph.Neighbors(uint32(v)) {
		s.count[s.parts[u]]++
	}
	to = unassigned
	for k := range s.count {
		if uint32(k) == s.parts[v] || !s.l.fits(k, v) {
			continue
		}
		if to == unassigned || s.count[k] > s.count[to] ||
			s.count[k] == s.count[to] && s.l.fill(k, v) < s.l.fill(int(to), v) {
			to = uint32(k)
		}
	}
	if to != unassigned {
		gain = s.count[to] - s.count[s.parts[v]]
	}
	return to, gain
}

func (s *rebalancer) move(v, to int) {
	s.l.add(int(s.parts[v]), v, -1)
	s.l.add(to, v, 1)
	s.parts[v] = uint32(to)
}

// exchange swaps v for the next vertex whose exchange makes the excess smaller.
// The search continues where the last one stopped, and ends for good when it
// has gone round often: exchanges of two are then not enough.
func (s *rebalancer) exchange(v, c int) {
	w, from := s.l.constraints[c].Of(v), int(s.parts[v])
	for range s.parts {
		if s.tries++; s.tries > 16*len(s.parts) {
			return
		}
		u := s.next
		s.next = (s.next + 1) % len(s.parts)
		at := int(s.parts[u])
		if at == from || s.l.constraints[c].Of(u) >= w {
			continue
		}
		before := s.l.excessOf(from) + s.l.excessOf(at)
		s.move(v, at)
		s.move(u, from)
		if s.l.excessOf(from)+s.l.excessOf(at) < before {
			return
		}
		s.move(u, at)
		s.move(v, from)
	}
}
