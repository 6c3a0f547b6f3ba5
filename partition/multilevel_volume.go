package partition

// When communication volume is the objective, the cut is optimised all the same,
// since it leads to about the same place and is much cheaper to follow; the last
// refinement of the finest level then makes every move that lowers the volume.
//
// A vertex costs one for every other part it has a neighbour in. Moving v from a
// to b changes its own cost, and that of a neighbour for which v is the last in a,
// or the first in b. Where the graph allows a table of neighbours by part (mlFM's), that is
// one look; elsewhere the neighbour's own row is read.

// mlVolumeRounds is how often all vertices are asked at most; later rounds find little.
const mlVolumeRounds = 3

// lowerVolume moves vertices while that lowers the volume.
func (r *mlRun) lowerVolume(s *mlState) {
	f := r.fm(s, nil)
	for range mlVolumeRounds {
		moved := 0
		for _, o := range r.volumeOffers(f) {
			// Others have moved meanwhile: count again.
			if f.fits(o.v, o.to) && f.volumeGain(o.v, o.to, int64(s.g.degree(o.v))) > 0 {
				f.move(o.v, o.to, false)
				moved++
			}
		}
		if moved < s.g.n/200+1 || r.ctx.Err() != nil {
			return
		}
	}
}

// volumeOffers lists moves that would lower the volume, best first.
func (r *mlRun) volumeOffers(f *mlFM) []mlOffer {
	lists := make([][]mlOffer, mlChunks(f.g.n, mlGrain))
	r.each(f.g.n, mlGrain, func(w *mlScratch, chunk, lo, hi int) {
		var list []mlOffer
		for v := uint32(lo); v < uint32(hi); v++ {
			if o, ok := f.volumeOffer(w, v); ok {
				list = append(list, o)
			}
		}
		lists[chunk] = list
	})
	return r.sorted(lists)
}

// volumeOffer tries the two parts v has most edges to.
func (f *mlFM) volumeOffer(w *mlScratch, v uint32) (mlOffer, bool) {
	own := f.part[v]
	w.connect(f.mlState, v)
	best, second := own, own
	for _, p := range w.hit {
		switch {
		case p == own || !f.fits(v, p):
		case best == own || w.conn[p] > w.conn[best]:
			best, second = p, best
		case second == own || w.conn[p] > w.conn[second]:
			second = p
		}
	}
	out := int64(f.g.degree(v)) - w.conn[own]
	w.clear()
	o := mlOffer{v: v}
	for _, p := range []uint16{best, second} {
		if p != own {
			if gain := f.volumeGain(v, p, out); int32(-gain) < o.rank {
				o.to, o.rank = p, int32(-gain)
			}
		}
	}
	return o, o.rank < 0
}

// volumeGain is how much lower the volume is after v goes to part b, or anything
// not above zero if that becomes certain early. Of v's neighbours, out are outside
// its part: only those can bring a gain.
func (f *mlFM) volumeGain(v uint32, b uint16, out int64) (gain int64) {
	a := f.part[v]
	inA, inB := false, false
	for _, u := range f.g.adj[f.g.off[v]:f.g.off[v+1]] {
		if u == v {
			continue
		}
		c := f.part[u]
		inA, inB = inA || c == a, inB || c == b
		otherA, otherB := f.touches(u, v, a, b)
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

// touches tells whether u has neighbours other than v, which is in a, in parts a and b.
// Repeated edges make v look like two in the table: that hides a gain, it makes none up.
func (f *mlFM) touches(u, v uint32, a, b uint16) (inA, inB bool) {
	if len(f.table) > 0 {
		row := f.row(u)
		return row[a] > 1, row[b] > 0
	}
	for _, x := range f.g.adj[f.g.off[u]:f.g.off[u+1]] {
		if x == v || x == u {
			continue
		}
		p := f.part[x]
		inA, inB = inA || p == a, inB || p == b
		if inA && inB {
			break
		}
	}
	return inA, inB
}
