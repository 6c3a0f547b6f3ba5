package partition

// When communication volume is the objective, the cut is optimised all the same,
// since it leads to about the same place and is much cheaper to follow; the last
// refinement of the finest level then makes every move that lowers the volume.
//
// A vertex costs one for every other part it has a neighbour in. Moving v from a
// to b changes its own cost, and that of a neighbour for which v is the last in a,
// or the first in b.

// mlVolumeRounds is how often all vertices are asked at most; later rounds find little.
const mlVolumeRounds = 3

// lowerVolume moves vertices while that lowers the volume.
func (r *mlRun) lowerVolume(s *mlState) {
	for range mlVolumeRounds {
		moved := 0
		for _, o := range r.volumeOffers(s) {
			// Others have moved meanwhile: count again.
			if s.fits(o.v, o.to) && s.volumeGain(o.v, o.to, int64(s.g.degree(o.v))) > 0 {
				s.shift(o.v, o.to)
				moved++
			}
		}
		if moved < s.g.n/200+1 || r.ctx.Err() != nil {
			return
		}
	}
}

// volumeOffers lists moves that would lower the volume, best first.
func (r *mlRun) volumeOffers(s *mlState) []mlOffer {
	lists := make([][]mlOffer, mlChunks(s.g.n, mlGrain))
	r.each(s.g.n, mlGrain, func(w *mlScratch, chunk, lo, hi int) {
		var list []mlOffer
		for v := uint32(lo); v < uint32(hi); v++ {
			if o, ok := s.volumeOffer(w, v); ok {
				list = append(list, o)
			}
		}
		lists[chunk] = list
	})
	return r.sorted(lists)
}

// volumeOffer tries the two parts v has most edges to.
func (s *mlState) volumeOffer(w *mlScratch, v uint32) (mlOffer, bool) {
	own := s.part[v]
	w.connect(s, v)
	best, second := own, own
	for _, p := range w.hit {
		switch {
		case p == own || !s.fits(v, p):
		case best == own || w.conn[p] > w.conn[best]:
			best, second = p, best
		case second == own || w.conn[p] > w.conn[second]:
			second = p
		}
	}
	out := int64(s.g.degree(v)) - w.conn[own]
	w.clear()
	o := mlOffer{v: v}
	for _, p := range []uint16{best, second} {
		if p != own {
			if gain := s.volumeGain(v, p, out); int32(-gain) < o.rank {
				o.to, o.rank = p, int32(-gain)
			}
		}
	}
	return o, o.rank < 0
}

// volumeGain is how much lower the volume is after v goes to part b, or anything
// not above zero if that becomes certain early. Of v's neighbours, out are outside
// its part: only those can bring a gain.
func (s *mlState) volumeGain(v uint32, b uint16, out int64) (gain int64) {
	a := s.part[v]
	inA, inB := false, false
	for _, u := range s.g.adj[s.g.off[v]:s.g.off[v+1]] {
		if u == v {
			continue
		}
		c := s.part[u]
		inA, inB = inA || c == a, inB || c == b
		otherA, otherB := s.touches(u, v, a, b)
		if c != a {
			out--
			if !otherA {
				gain++
			}
		}
		if c != b && !otherB {
			gain--
		}
		if gain+out+1 <= 0 {
			return 0
		}
	}
	if inB {
		gain++
	}
	if inA {
		gain--
	}
	return gain
}

// touches tells whether u has neighbours other than v in parts a and b. It ends
// as soon as both are found, which for a hub is at once.
func (s *mlState) touches(u, v uint32, a, b uint16) (inA, inB bool) {
	for _, x := range s.g.adj[s.g.off[u]:s.g.off[u+1]] {
		if x == v || x == u {
			continue
		}
		p := s.part[x]
		inA, inB = inA || p == a, inB || p == b
		if inA && inB {
			break
		}
	}
	return inA, inB
}
