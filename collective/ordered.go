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

// gathered brings all of the data to rank 0 up a binomial tree, which adds it and
// broadcasts the sum back down. The ranks below one in the tree follow it, so that what it
// gathers is in their order.
func (p *program) gathered() {
	all := span{data, 0, p.cuts[p.n]}
	bytes, below := all.len(), min(lowBit(p.rank, p.n), p.n-p.rank) // ourselves included
	if bytes == 0 {
		return
	}
	first := p.reserve(below * bytes)
	from := func(lo, hi int) span { return span{scratch, first + lo*bytes, first + hi*bytes} }
	for d := 1; d < below; d *= 2 {
		p.in = append(p.in, p.recv(p.rank+d, from(d, min(2*d, below))))
	}
	if p.rank > 0 {
		p.move(from(0, 1), all)
	}
	for i, op := range p.in {
		p.wait(op)
		for r := 1 << i; p.rank == 0 && r < min(2<<i, below); r++ {
			p.add(all, from(r, r+1))
		}
	}
	if p.rank > 0 {
		p.wait(p.send(p.rank-lowBit(p.rank, p.n), from(0, below)))
	}
	p.fromParent(0, all)
	p.toChildren(0, all)
}
