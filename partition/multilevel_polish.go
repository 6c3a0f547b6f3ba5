package partition

// polish makes moves that gain and fit, one after the other: what is left to do
// after moves made all at once, most of all when several limits are tight. The
// vertices that would gain are found in parallel; each then counts again before it goes.
func (r *mlRun) polish(s *mlState, rounds int) {
	for range rounds {
		moved := 0
		for _, o := range r.gainOffers(s) {
			w := r.scratch[0]
			if to, gain := s.bestFit(w, o.v); gain > 0 {
				s.shift(o.v, to)
				moved++
			}
		}
		if moved < s.g.n/500+1 || r.ctx.Err() != nil {
			return
		}
	}
}

// gainOffers lists vertices that would gain by a move, best first.
func (r *mlRun) gainOffers(s *mlState) []mlOffer {
	lists := make([][]mlOffer, mlChunks(s.g.n, mlGrain))
	r.each(s.g.n, mlGrain, func(w *mlScratch, chunk, lo, hi int) {
		var list []mlOffer
		for v := uint32(lo); v < uint32(hi); v++ {
			if _, gain := s.bestFit(w, v); gain > 0 {
				list = append(list, mlOffer{v: v, rank: int32(max(-gain, -1<<30))})
			}
		}
		lists[chunk] = list
	})
	return r.sorted(lists)
}

// bestFit is the part with room that v has most weight to, and what it gains there.
func (s *mlState) bestFit(w *mlScratch, v uint32) (to uint16, gain int64) {
	own := s.part[v]
	w.connect(s, v)
	most := w.conn[own]
	to = own
	for _, p := range w.hit {
		if c := w.conn[p]; p != own && (c > most || c == most && to != own && p < to) && s.fits(v, p) {
			to, most = p, c
		}
	}
	gain = most - w.conn[own]
	w.clear()
	return to, gain
}
