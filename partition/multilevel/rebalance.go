package multilevel

// rebalance moves vertices out of overloaded parts, cheapest first, until none is
// overloaded or nothing fits anywhere. It returns the number of moves.
func (j *jet) rebalance(iteration uint8) int {
	overloaded := make([]bool, j.a.k)
	for p := range overloaded {
		overloaded[p] = j.a.overloaded(p)
	}
	var moved []uint32
	for _, m := range j.rebalanceCandidates(overloaded) {
		from := j.a.part[m.v]
		if !j.a.overloaded(int(from)) {
			continue
		}
		to := m.to
		if to == from || !j.a.fits(m.v, to) {
			if to = j.a.leastOverloaded(m.v); j.a.relief(m.v, to) <= 0 {
				continue
			}
		}
		j.a.reassign(m.v, to)
		moved = append(moved, m.v)
	}
	if len(moved) == 0 && j.a.g.con > 1 {
		moved = j.swap(overloaded, iteration)
	}
	j.r.each(len(moved), 256, func(_ *scratch, _, lo, hi int) {
		for _, v := range moved[lo:hi] {
			j.movedAt[v] = iteration
			j.markDirty(v)
		}
	})
	return len(moved)
}

// swap exchanges vertices of overloaded parts with others, for the case that every part
// below one limit is at another. It draws partners at random, a bounded number per vertex
// and in all.
func (j *jet) swap(overloaded []bool, iteration uint8) (moved []uint32) {
	const draws, tries = 200, 2000
	key := j.r.key.Fold(uint64(iteration))
	left := tries
	for _, m := range j.rebalanceCandidates(overloaded) {
		if !j.a.overloaded(int(j.a.part[m.v])) {
			continue
		}
		if left--; left < 0 || j.r.ctx.Err() != nil {
			break
		}
		for d := range uint64(draws) {
			u := uint32(key.Fold(uint64(m.v)).IntN(d, j.a.g.n))
			if from, to := j.a.part[m.v], j.a.part[u]; from != to && j.a.swapHelps(m.v, u) {
				j.a.reassign(m.v, to)
				j.a.reassign(u, from)
				moved = append(moved, m.v, u)
				break
			}
		}
	}
	return moved
}

// rebalanceCandidates lists the vertices of overloaded parts that weigh something, best
// first.
func (j *jet) rebalanceCandidates(overloaded []bool) []candidate {
	return j.r.candidates(j.a.g.n, func(s *scratch, v uint32) (candidate, bool) {
		if !overloaded[j.a.part[v]] {
			return candidate{}, false
		}
		return j.rebalanceCandidate(s, v)
	})
}

// rebalanceCandidate finds the best part that v fits into, and ranks the move by the cut
// lost per load moved. The part is v's own if v fits into none of its neighbours' parts.
func (j *jet) rebalanceCandidate(s *scratch, v uint32) (candidate, bool) {
	from := j.a.part[v]
	helps := j.a.overload(from, v, 0) - j.a.overload(from, v, -1)
	if helps <= 0 {
		return candidate{}, false
	}
	s.connect(j.a, v)
	most, to := int64(-1), from
	for _, p := range s.hit {
		if w := s.conn[p]; p != from && (w > most || w == most && p < to) && j.a.fits(v, p) {
			to, most = p, w
		}
	}
	loss := s.conn[from] - max(most, 0)
	s.clear()
	return candidate{lossRank(loss, helps), v, to}, true
}

// lossRank orders by loss per load if there is a loss, by gain times load if not.
func lossRank(loss int64, load float64) int32 {
	x := float64(loss) / load
	if loss < 0 {
		x = float64(loss) * load
	}
	return int32(max(min(x/16, 1<<30), -1<<30))
}
