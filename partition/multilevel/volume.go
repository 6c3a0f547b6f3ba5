package multilevel

// The objective communication volume. The cut is optimised on all levels all the same,
// since it leads to about the same place and is much cheaper to follow; the last
// refinement of the finest level then makes moves that lower the volume.
//
// A vertex costs one for every other part it has a neighbour in. Moving v from part a to
// part b changes its own cost, and that of a neighbour for which v is the last in a or the
// first in b. With kwayFM's table of neighbours by part that is one lookup; without it the
// neighbour's own row is read.

// volumeRounds is how often all vertices are evaluated at most; later rounds find little.
const volumeRounds = 3

// lowerVolume moves vertices while that lowers the volume.
func (r *run) lowerVolume(a *assignment) {
	f := r.newKwayFM(a, nil)
	for range volumeRounds {
		moved := 0
		for _, c := range r.candidates(a.g.n, f.volumeCandidate) {
			// Others have moved meanwhile: evaluate again.
			if a.fits(c.v, c.to) && f.volumeGain(c.v, c.to, int64(a.g.degree(c.v))) > 0 {
				f.move(c.v, c.to, false)
				moved++
			}
		}
		if moved < a.g.n/200+1 || r.ctx.Err() != nil {
			return
		}
	}
}

// volumeCandidate evaluates the two parts v has most edges to.
func (f *kwayFM) volumeCandidate(s *scratch, v uint32) (candidate, bool) {
	own := f.a.part[v]
	s.connect(f.a, v)
	best, second := own, own
	for _, p := range s.hit {
		switch {
		case p == own || !f.a.fits(v, p):
		case best == own || s.conn[p] > s.conn[best]:
			best, second = p, best
		case second == own || s.conn[p] > s.conn[second]:
			second = p
		}
	}
	out := int64(f.a.g.degree(v)) - s.conn[own]
	s.clear()
	c := candidate{v: v}
	for _, p := range []uint16{best, second} {
		if p != own {
			if gain := f.volumeGain(v, p, out); int32(-gain) < c.rank {
				c.to, c.rank = p, int32(-gain)
			}
		}
	}
	return c, c.rank < 0
}

// volumeGain is by how much the volume falls if v moves to part b, or anything not above
// zero if that becomes certain early. Of v's neighbours, out are outside its part: only
// those can bring a gain.
func (f *kwayFM) volumeGain(v uint32, b uint16, out int64) (gain int64) {
	a := f.a.part[v]
	inA, inB := false, false
	for _, u := range f.a.g.adj[f.a.g.off[v]:f.a.g.off[v+1]] {
		if u == v {
			continue
		}
		c := f.a.part[u]
		inA, inB = inA || c == a, inB || c == b
		otherA, otherB := f.adjacentTo(u, v, a, b)
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

// adjacentTo reports whether u has neighbours other than v, which is in a, in parts a and b.
// A repeated edge counts v twice in the table, which can hide a gain but never invent one.
func (f *kwayFM) adjacentTo(u, v uint32, a, b uint16) (inA, inB bool) {
	if len(f.table) > 0 {
		row := f.row(u)
		return row[a] > 1, row[b] > 0
	}
	for _, x := range f.a.g.adj[f.a.g.off[u]:f.a.g.off[u+1]] {
		if x == v || x == u {
			continue
		}
		p := f.a.part[x]
		inA, inB = inA || p == a, inB || p == b
		if inA && inB {
			break
		}
	}
	return inA, inB
}
