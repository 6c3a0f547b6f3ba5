package multilevel

// What a vertex gains by a move, for kwayFM. Loops over neighbours avoid branches that
// depend on parts: they are unpredictable.

// gain is by how much the cut falls if v moves to the other part it has most weight to, as
// a key of the queue. It is cached until v or a neighbour moves.
func (f *kwayFM) gain(v uint32) (key int32, boundary bool) {
	if !f.cached[v] {
		f.in[v], f.out[v] = f.sums(v)
		f.cached[v] = true
	}
	return clampGain(int64(f.out[v]) - int64(f.in[v])), f.out[v] > 0
}

// sums is the weight of v's edges inside its part, and that into the best other one.
func (f *kwayFM) sums(v uint32) (in, out uint32) {
	if len(f.table) == 0 {
		return f.computeSums(v)
	}
	row, own := f.row(v), int(f.a.part[v])
	for _, w := range row[:own] {
		out = max(out, w)
	}
	for _, w := range row[own+1:] {
		out = max(out, w)
	}
	return row[own], out
}

// computeSums is sums without the table. Most vertices have neighbours in one other part
// at most, and need no sums by part.
func (f *kwayFM) computeSums(v uint32) (in, out uint32) {
	if f.a.g.w == nil {
		if in, out, ok := f.sumsTwoParts(v); ok {
			return in, out
		}
	}
	f.connect(v)
	part, conn, own := f.a.part, f.conn, f.a.part[v]
	in, conn[own] = conn[own], 0
	for _, u := range f.a.g.adj[f.a.g.off[v]:f.a.g.off[v+1]] {
		p := part[u]
		out, conn[p] = max(out, conn[p]), 0
	}
	return in, out
}

// sumsTwoParts is sums where edges weigh one and lead into one other part at most.
func (f *kwayFM) sumsTwoParts(v uint32) (in, out uint32, ok bool) {
	part, own := f.a.part, f.a.part[v]
	adj := f.a.g.adj[f.a.g.off[v]:f.a.g.off[v+1]]
	other, loops := own, uint32(0)
	for _, u := range adj {
		p := part[u]
		in += bit(p == own)
		loops += bit(u == v)
		if p != own {
			other = p
		}
	}
	if other == own {
		return in - loops, 0, true
	}
	out = f.weightInto(v, other)
	return in - loops, out, int(in+out) == len(adj)
}

// weightInto is the weight of v's edges into another part.
func (f *kwayFM) weightInto(v uint32, p uint16) (sum uint32) {
	part := f.a.part
	adj := f.a.g.adj[f.a.g.off[v]:f.a.g.off[v+1]]
	if f.a.g.w == nil {
		for _, u := range adj {
			sum += bit(part[u] == p)
		}
		return sum
	}
	for i, w := range f.a.g.w[f.a.g.off[v]:f.a.g.off[v+1]] {
		sum += w & -bit(part[adj[i]] == p)
	}
	return sum
}

// bit is one if a condition holds, else zero.
func bit(holds bool) uint32 {
	if holds {
		return 1
	}
	return 0
}

// connect sums the weight of v's edges by part, in conn.
func (f *kwayFM) connect(v uint32) {
	part, conn := f.a.part, f.conn
	adj := f.a.g.adj[f.a.g.off[v]:f.a.g.off[v+1]]
	if f.a.g.w == nil {
		for _, u := range adj {
			if u != v {
				conn[part[u]]++
			}
		}
		return
	}
	for i, w := range f.a.g.w[f.a.g.off[v]:f.a.g.off[v+1]] { // coarse levels have no self-loops
		conn[part[adj[i]]] += w
	}
}

// interior reports whether all neighbours of v are in its part, and the weight of its edges
// to them if so.
func (f *kwayFM) interior(v uint32) (in uint32, ok bool) {
	own := f.a.part[v]
	lo, hi := f.a.g.off[v], f.a.g.off[v+1]
	for i, u := range f.a.g.adj[lo:hi] {
		if f.a.part[u] != own {
			return 0, false
		}
		if u != v {
			in += f.a.g.edgeWeight(lo + int64(i))
		}
	}
	return in, true
}

// target is the best part v may move to now: one that it fits into, or, out of an
// overloaded part, one that reduces the excess.
func (f *kwayFM) target(v uint32) (to uint16, gain int64, ok bool) {
	to, in, out := f.bestFitting(v)
	if out > 0 || !f.a.overloaded(int(f.a.part[v])) {
		return to, int64(out) - int64(in), out > 0
	}
	return f.bestRelief(v)
}

// bestFitting is the part v has most weight to of those it fits into, the weight of its
// edges inside its own part, and into that one; 0 if it fits nowhere.
func (f *kwayFM) bestFitting(v uint32) (to uint16, in, out uint32) {
	own := f.a.part[v]
	if len(f.table) > 0 {
		row := f.row(v)
		for p, w := range row {
			if q := uint16(p); w > out && q != own && f.a.fits(v, q) {
				to, out = q, w
			}
		}
		return to, row[own], out
	}
	conn := f.conn
	f.connect(v)
	in, conn[own] = conn[own], 0
	for _, u := range f.a.g.adj[f.a.g.off[v]:f.a.g.off[v+1]] {
		p := f.a.part[u]
		w := conn[p]
		conn[p] = 0
		if w > 0 && (w > out || w == out && p < to) && f.a.fits(v, p) {
			to, out = p, w
		}
	}
	return to, in, out
}

// bestRelief is the part v has most weight to of those where it reduces the excess.
func (f *kwayFM) bestRelief(v uint32) (to uint16, gain int64, ok bool) {
	own, conn := f.a.part[v], f.conn
	if len(f.table) > 0 {
		conn = f.row(v)
	} else {
		f.connect(v)
		defer clear(conn)
	}
	most := int64(-1)
	for p, w := range conn {
		if q := uint16(p); q != own && int64(w) > most && f.a.relief(v, q) > 0 {
			to, most, ok = q, int64(w), true
		}
	}
	return to, most - int64(conn[own]), ok
}

// shiftRow takes weight w of u's edges from one part to another in the table. What is cached of u
// stays valid unless the best other part lost weight.
func (f *kwayFM) shiftRow(u uint32, from, to uint16, w uint32) {
	row, own := f.row(u), f.a.part[u]
	if own != from && row[from] == f.out[u] {
		f.cached[u] = false
	}
	row[from] -= w
	row[to] += w
	f.in[u] = row[own]
	if own != to {
		f.out[u] = max(f.out[u], row[to])
	}
}

// shiftSums is shiftRow without a table, if the sums of u are cached and w was inside u's part.
func (f *kwayFM) shiftSums(u uint32, to uint16, w uint32) {
	if f.cached[u] {
		f.in[u] -= w
		f.out[u] = max(f.out[u], f.weightInto(u, to))
	}
}
