package partition

import (
	"cmp"
	"slices"
)

// balance moves vertices out of overloaded parts, cheapest first, until those are
// no longer overloaded or nothing fits anywhere. It returns the number of moves.
func (j *mlJet) balance(iteration uint8) int {
	crowded := make([]bool, j.k)
	for p := range crowded {
		crowded[p] = j.overloaded(p)
	}
	moved := 0
	for _, m := range j.offers(crowded) {
		from := j.part[m.v]
		if !j.overloaded(int(from)) {
			continue
		}
		to := m.to
		if !j.fits(m.v, to) {
			if to = j.lightest(m.v); j.relief(m.v, to) <= 0 {
				continue
			}
		}
		j.shift(m.v, to)
		j.rest[m.v] = iteration
		j.touch(m.v)
		moved++
	}
	return moved
}

// mlOffer is a vertex that could leave an overloaded part.
type mlOffer struct {
	v    uint32
	to   uint16
	rank int32 // lower is better
}

// offers lists the vertices of crowded parts that weigh something, best first.
func (j *mlJet) offers(crowded []bool) []mlOffer {
	n := j.g.n
	lists := make([][]mlOffer, chunksOf(n, mlGrain))
	j.r.each(n, mlGrain, func(s *mlScratch, chunk, lo, hi int) {
		var list []mlOffer
		for v := uint32(lo); v < uint32(hi); v++ {
			if crowded[j.part[v]] {
				if o, ok := j.offer(s, v); ok {
					list = append(list, o)
				}
			}
		}
		lists[chunk] = list
	})
	all := slices.Concat(lists...)
	slices.SortFunc(all, func(a, b mlOffer) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.v, b.v))
	})
	return all
}

// offer finds the best part for v with room, and ranks it by the cut lost per
// load moved.
func (j *mlJet) offer(s *mlScratch, v uint32) (mlOffer, bool) {
	from := j.part[v]
	helps := j.over(from, v, 0) - j.over(from, v, -1)
	if helps <= 0 {
		return mlOffer{}, false
	}
	j.connect(s, v)
	most, to := int64(-1), from
	for _, p := range s.hit {
		if w := s.conn[p]; p != from && (w > most || w == most && p < to) && j.fits(v, p) {
			to, most = p, w
		}
	}
	loss := s.conn[from] - max(most, 0)
	s.clear()
	if to == from {
		to = j.lightest(v)
	}
	return mlOffer{v, to, mlRank(loss, helps)}, true
}

// mlRank orders by loss per load if there is a loss, by gain times load if not.
func mlRank(loss int64, load float64) int32 {
	x := float64(loss) / load
	if loss < 0 {
		x = float64(loss) * load
	}
	return int32(max(min(x/16, 1<<30), -1<<30))
}

// lightest is the part where v does least harm to the limits, the emptiest of equals.
func (s *mlState) lightest(v uint32) uint16 {
	best, bestOver, bestFill := s.part[v], 0.0, 0.0
	for p := range s.k {
		if q := uint16(p); q != s.part[v] {
			over, fill := s.over(q, v, 1)-s.over(q, v, 0), s.fill(p)
			if best == s.part[v] || over < bestOver || over == bestOver && fill < bestFill {
				best, bestOver, bestFill = q, over, fill
			}
		}
	}
	return best
}
