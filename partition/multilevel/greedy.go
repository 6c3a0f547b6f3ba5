package multilevel

// greedy makes single moves that gain and fit, one after the other. It finds what Jet's
// simultaneous moves left, most of all where several limits are tight. Vertices that would
// gain are found in parallel; each is evaluated again before it moves.
func (r *run) greedy(a *assignment, rounds int) {
	for range rounds {
		moved := 0
		for _, c := range r.gainCandidates(a) {
			if to, gain := a.bestFit(r.scratch[0], c.v); gain > 0 {
				a.reassign(c.v, to)
				moved++
			}
		}
		if moved < a.g.n/500+1 || r.ctx.Err() != nil {
			return
		}
	}
}

// gainCandidates lists vertices that would gain by a move, best first.
func (r *run) gainCandidates(a *assignment) []candidate {
	return r.candidates(a.g.n, func(s *scratch, v uint32) (candidate, bool) {
		_, gain := a.bestFit(s, v)
		return candidate{v: v, rank: int32(max(-gain, -1<<30))}, gain > 0
	})
}

// bestFit is the part that v has most weight to among those it fits into, and what it
// gains there.
func (a *assignment) bestFit(s *scratch, v uint32) (to uint16, gain int64) {
	own := a.part[v]
	s.connect(a, v)
	most := s.conn[own]
	to = own
	for _, p := range s.hit {
		if c := s.conn[p]; p != own && (c > most || c == most && to != own && p < to) && a.fits(v, p) {
			to, most = p, c
		}
	}
	gain = most - s.conn[own]
	s.clear()
	return to, gain
}
