package collective

// Sums in the order of ranks: ((x0 + x1) + x2) + …, the same bits for every
// algorithm below, every size and every way to cut it.

// direct exchanges segments: every rank sends segment r to rank r, which adds up
// what came in the order of ranks, and sends the sum to all. The bytes are those
// of the ring, in two rounds instead of 2(n-1), with more peers. Pieces leave as
// soon as they are summed.
func (p *program) direct() {
	p.orderedReduce(true)
	for d := 1; d < p.n; d++ {
		r := p.mod(p.rank - d)
		at := p.sendOf(r)
		for k := range p.pieces(r) {
			p.wait(p.list[at+k])
			p.recv(r, p.piece(r, k))
		}
	}
}

// sendOf is where in the list the sends of segment r begin, after orderedReduce.
func (p *program) sendOf(r int) (at int) {
	for d := 1; d < p.mod(r-p.rank); d++ {
		at += p.pieces(p.mod(p.rank + d))
	}
	return at
}

// orderedReduce leaves the sum of segment r on rank r. With gather, its pieces
// also leave for all others as soon as they are done.
func (p *program) orderedReduce(gather bool) {
	mine := p.segment(p.rank).len()
	count := p.pieces(p.rank)
	first := p.reserve((p.n - 1) * slotBytes(mine))
	// Slots, and messages in p.other, are in the order of ranks without our own.
	for q := range p.n {
		if q == p.rank {
			continue
		}
		for k := range count {
			p.other = append(p.other, p.recv(q, p.slot(first+p.line(q)*slotBytes(mine), p.rank, k)))
		}
	}
	for d := 1; d < p.n; d++ {
		r := p.mod(p.rank + d)
		for k := range p.pieces(r) {
			p.list = append(p.list, p.send(r, p.piece(r, k)))
		}
	}
	for k := range count {
		p.sumPiece(k, count, first, slotBytes(mine))
		for d := 1; gather && d < p.n; d++ {
			p.send(p.mod(p.rank+d), p.piece(p.rank, k))
		}
	}
}

// sumPiece adds what the ranks sent of a piece. Those before us are added up in
// the slot of rank 0; x+y and y+x have the same bits, so that sum can be added to
// ours where ours lies.
func (p *program) sumPiece(k, count, first, slot int) {
	own := p.piece(p.rank, k)
	sum := p.slot(first, p.rank, k)
	for q := range p.n {
		if q == p.rank {
			if q > 0 {
				p.add(own, sum)
			}
			continue
		}
		line := p.line(q)
		p.wait(p.other[line*count+k])
		part := p.slot(first+line*slot, p.rank, k)
		switch {
		case q > p.rank:
			p.add(own, part)
		case q > 0:
			p.add(sum, part)
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
			p.other = append(p.other, p.recv(q, at(q)))
		}
	}
	for d := 1; d < p.n; d++ {
		p.list = append(p.list, p.send(p.mod(p.rank+d), all))
	}
	for q := range p.n {
		if q != p.rank {
			p.wait(p.other[p.line(q)])
		}
		switch {
		case q == p.rank:
			for _, out := range p.list {
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

// planOrderedReduce: all segments but our own leave, and ours comes from all.
func planOrderedReduce(rank, n int, cuts []int) (plan Plan) {
	mine := cuts[rank+1] - cuts[rank]
	for r := range n {
		if r == rank {
			continue
		}
		size := cuts[r+1] - cuts[r]
		plan.Sent.add(pieces(size, n), size)
		plan.Received.add(pieces(mine, n), mine)
		plan.Peers += min(size+mine, 1)
	}
	return plan
}

// planDirect: the same, and then back the other way.
func planDirect(rank, n int, cuts []int) Plan {
	plan := planOrderedReduce(rank, n, cuts)
	there, back := plan.Sent, plan.Received
	plan.Sent.add(back.Messages, int(back.Bytes))
	plan.Received.add(there.Messages, int(there.Bytes))
	return plan
}

// planWhole: everything to and from everybody.
func planWhole(n, bytes int) (plan Plan) {
	if bytes > 0 {
		plan.Peers = n - 1
		plan.both(n-1, (n-1)*bytes)
	}
	return plan
}
