package collective

// Sums in the order of ranks: ((x0 + x1) + x2) + …, the same bits for every
// algorithm below, every size and every way to cut it.

// direct exchanges segments: every rank sends segment r to rank r, which sums
// what came in the order of ranks, and sends the sum to all. The bytes are those
// of the ring, in two rounds instead of 2(n-1), with more peers. Pieces leave as
// soon as they are summed.
func (p *program) direct() {
	p.postReduce()
	most := pieces(p.longest(), p.n)
	for k := range most {
		p.postGather(k)
		if k < p.pieces(p.rank) {
			p.sumPiece(k)
			for d := 1; d < p.n; d++ {
				p.send(p.mod(p.rank+d), p.piece(p.rank, k))
			}
		}
	}
}

// orderedReduce leaves the sum of segment r on rank r.
func (p *program) orderedReduce() {
	p.postReduce()
	for k := range p.pieces(p.rank) {
		p.sumPiece(k)
	}
}

// postReduce asks for the segment of this rank from all others, and sends them
// theirs. Messages in p.in, and slots in scratch memory, are in the order of ranks
// without our own; those in p.out begin with the next rank.
func (p *program) postReduce() {
	if p.n > 2 {
		p.reserve((p.n - 1) * slotBytes(p.segment(p.rank).len()))
	}
	for q := range p.n {
		for k := range p.pieces(p.rank) {
			if q != p.rank {
				p.in = append(p.in, p.askPart(q, k))
			}
		}
	}
	for d := 1; d < p.n; d++ {
		r := p.mod(p.rank + d)
		for k := range p.pieces(r) {
			p.out = append(p.out, p.send(r, p.piece(r, k)))
		}
	}
}

// postGather asks for the sum of the k-th piece of every other segment, in its
// place, as soon as what was there has left. It comes before our own sums, so that
// those of a rank that is faster do not come before they are asked for.
func (p *program) postGather(k int) {
	at := 0
	for d := 1; d < p.n; d++ {
		r := p.mod(p.rank + d)
		if k < p.pieces(r) {
			p.wait(p.out[at+k])
			p.recv(r, p.piece(r, k))
		}
		at += p.pieces(r)
	}
}

// askPart asks for the k-th piece of our segment from rank q. Ranks 0 and 1 add what
// the other has to their own as it comes, since that is the first sum to be made.
func (p *program) askPart(q, k int) int32 {
	if p.rank+q == 1 {
		return p.recvAdd(q, p.piece(p.rank, k))
	}
	return p.recv(q, p.part(q, k))
}

// part is where the k-th piece of our segment lies that rank q sent, in scratch
// memory; nowhere, if it was added as it came.
func (p *program) part(q, k int) span {
	if p.rank+q == 1 {
		return span{}
	}
	s, at := p.piece(p.rank, k), p.line(q)*slotBytes(p.segment(p.rank).len())-p.cuts[p.rank]
	return span{scratch, at + s.lo, at + s.hi}
}

// sumPiece adds what the ranks sent of a piece.
func (p *program) sumPiece(k int) {
	p.sumOf(p.piece(p.rank, k), p.rank, p.n, func(q int) (span, int32) {
		return p.part(q, k), p.in[p.line(q)*p.pieces(p.rank)+k]
	})
}

// sumOf adds what n ranks have, of which ours is one, to own. Each part is there when its
// message has come. Those before us are summed in the part of rank 0; x+y and y+x
// have the same bits, so that sum can be added to ours where ours lies.
func (p *program) sumOf(own span, ours, n int, part func(q int) (span, int32)) {
	var sum span
	for q := range n {
		if q == ours {
			if q > 0 {
				p.add(own, sum)
			}
			continue
		}
		theirs, op := part(q)
		p.wait(op)
		switch {
		case q > ours:
			p.add(own, theirs)
		case q > 0:
			p.add(sum, theirs)
		default:
			sum = theirs
		}
	}
}

// line is the place of rank q among all others.
func (p *program) line(q int) int {
	if q > p.rank {
		return q - 1
	}
	return q
}

func slotBytes(bytes int) int { return (bytes + 63) &^ 63 }

// whole sends all of the data to all, in one round, for small data and few ranks.
func (p *program) whole() {
	all := span{data, 0, p.cuts[p.n]}
	slot := slotBytes(all.len())
	first := p.reserve((p.n - 1) * slot)
	at := func(q int) span {
		lo := first + p.line(q)*slot
		return span{scratch, lo, lo + all.len()}
	}
	for q := range p.n {
		if q != p.rank {
			p.in = append(p.in, p.recv(q, at(q)))
		}
	}
	for d := 1; d < p.n; d++ {
		p.out = append(p.out, p.send(p.mod(p.rank+d), all))
	}
	for q := range p.n {
		if q != p.rank {
			p.wait(p.in[p.line(q)])
		}
		switch {
		case q == p.rank:
			for _, out := range p.out {
				p.wait(out)
			}
			if q > 0 {
				p.add(all, at(0))
			}
		case q > p.rank:
			p.add(all, at(q))
		case q > 0:
			p.add(at(0), at(q))
		}
	}
}

// gathered cuts the data into segments of gatherBytes, and brings each up a binomial tree
// to a rank of its own, which adds it and broadcasts the sum back down. Seen from its
// root, the ranks below one in a tree follow it, so that what it gathers is in order.
func (p *program) gathered() {
	bytes := p.cuts[p.n]
	roots := min(p.n, (bytes+gatherBytes-1)/gatherBytes)
	for j := range roots {
		s := span{data, bytes / 8 * j / roots * 8, bytes / 8 * (j + 1) / roots * 8}
		if j == roots-1 {
			s.hi = bytes
		}
		p.askBelow(j*p.n/roots, s)
	}
	for i := range p.trees {
		p.up(&p.trees[i])
	}
	for i := range p.trees {
		t := &p.trees[i]
		p.wait(t.left)
		p.fromParent(t.root, t.all)
		p.toChildren(t.root, t.all)
	}
}

// gathering is a segment on its way up the tree of its root.
type gathering struct {
	all          span
	root         int
	place, below int   // in the tree, and how many ranks we are with those below us
	first        int   // where in scratch the rows of these begin, our own first
	from, to     int   // messages of children, in p.in
	left         int32 // to the parent
}

// of is what the ranks from lo to hi below us have.
func (t *gathering) of(lo, hi int) span {
	return span{scratch, t.first + lo*t.all.len(), t.first + hi*t.all.len()}
}

// askBelow asks the children for a segment of all that are below them.
func (p *program) askBelow(root int, all span) {
	t := gathering{all: all, root: root, place: p.mod(p.rank - root), from: len(p.in), left: none}
	t.below = min(lowBit(t.place, p.n), p.n-t.place)
	t.first = p.reserve(t.below * all.len())
	for d := 1; d < t.below; d *= 2 {
		p.in = append(p.in, p.recv(p.mod(p.rank+d), t.of(d, min(2*d, t.below))))
	}
	t.to = len(p.in)
	p.trees = append(p.trees, t)
}

// up hands on what is below us; the root adds it in the order of ranks.
func (p *program) up(t *gathering) {
	for _, op := range p.in[t.from:t.to] {
		p.wait(op)
	}
	if t.place > 0 {
		p.move(t.of(0, 1), t.all)
		t.left = p.send(p.mod(p.rank-lowBit(t.place, p.n)), t.of(0, t.below))
		return
	}
	p.sumOf(t.all, p.rank, p.n, func(q int) (span, int32) {
		v := p.mod(q - t.root)
		return t.of(v, v+1), none
	})
}
