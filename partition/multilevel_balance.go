package partition

// balance moves vertices out of overloaded parts, cheapest first, until those are
// no longer overloaded or nothing fits anywhere. It returns the number of moves.
func (j *mlJet) balance(iteration uint8) int {
	crowded := make([]bool, j.k)
	for p := range crowded {
		crowded[p] = j.overloaded(p)
	}
	var moved []uint32
	for _, m := range j.offers(crowded) {
		from := j.part[m.v]
		if !j.overloaded(int(from)) {
			continue
		}
		to := m.to
		if to == from || !j.fits(m.v, to) {
			if to = j.lightest(m.v); j.relief(m.v, to) <= 0 {
				continue
			}
		}
		j.shift(m.v, to)
		moved = append(moved, m.v)
	}
	if len(moved) == 0 && j.g.con > 1 {
		moved = j.exchange(crowded, iteration)
	}
	j.r.each(len(moved), 256, func(_ *mlScratch, _, lo, hi int) {
		for _, v := range moved[lo:hi] {
			j.rest[v] = iteration
			j.touch(v)
		}
	})
	return len(moved)
}

// exchange swaps vertices of overloaded parts with others, for when every part
// with room for one thing is full of another. It draws partners at random, and
// gives up on a vertex after some.
func (j *mlJet) exchange(crowded []bool, iteration uint8) (moved []uint32) {
	const draws, tries = 200, 2000
	key := j.r.key.Fold(uint64(iteration))
	left := tries
	for _, m := range j.offers(crowded) {
		if !j.overloaded(int(j.part[m.v])) {
			continue
		}
		if left--; left < 0 || j.r.ctx.Err() != nil {
			break
		}
		for d := range uint64(draws) {
			u := uint32(key.Fold(uint64(m.v)).IntN(d, j.g.n))
			if from, to := j.part[m.v], j.part[u]; from != to && j.swapHelps(m.v, u) {
				j.shift(m.v, to)
				j.shift(u, from)
				moved = append(moved, m.v, u)
				break
			}
		}
	}
	return moved
}

// swapHelps tells whether the limits are broken less after v and u change places.
func (s *mlState) swapHelps(v, u uint32) bool {
	before := s.over(s.part[v], v, 0) + s.over(s.part[u], u, 0)
	after := 0.0
	for c := range s.g.con {
		d := s.g.load(v, c) - s.g.load(u, c)
		from, to := int(s.part[v])*s.g.con+c, int(s.part[u])*s.g.con+c
		after += float64(max(s.load[from]-d-s.limit[from], 0)+max(s.load[to]+d-s.limit[to], 0)) * s.unit[c]
	}
	return after < before-1e-12
}

// offers lists the vertices of crowded parts that weigh something, best first.
func (j *mlJet) offers(crowded []bool) []mlOffer {
	n := j.g.n
	lists := make([][]mlOffer, mlChunks(n, mlGrain))
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
	return j.r.sorted(lists)
}

// offer finds the best part for v with room, and ranks it by the cut lost per
// load moved.
func (j *mlJet) offer(s *mlScratch, v uint32) (mlOffer, bool) {
	from := j.part[v]
	helps := j.over(from, v, 0) - j.over(from, v, -1)
	if helps <= 0 {
		return mlOffer{}, false
	}
	s.connect(j.mlState, v)
	most, to := int64(-1), from // its own part if no neighbouring one has room
	for _, p := range s.hit {
		if w := s.conn[p]; p != from && (w > most || w == most && p < to) && j.fits(v, p) {
			to, most = p, w
		}
	}
	loss := s.conn[from] - max(most, 0)
	s.clear()
	return mlOffer{mlRank(loss, helps), v, to}, true
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
