package collective

// The ring (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", 2009).
// The data is cut into n segments. Going around n-1 times, partial sums of
// segments pass from rank to rank, each adding its own, until rank r has the whole
// sum of segment r; going around n-1 times more, the sums pass to all. A rank
// sends and receives 2(n-1)/n of the data, which is the least possible, but in
// 2(n-1) rounds one after the other. Within a round, segments travel in pieces, so
// that adding and travelling overlap.

// ringReduce leaves the sum of segment r on rank r. With gather, its pieces also
// leave for the next rank as soon as they are done.
func (p *program) ringReduce(gather bool) {
	if p.n == 1 {
		return
	}
	room := p.longest()
	slots := [2]int{p.reserve(room), p.reserve(room)}
	before, after := p.mod(p.rank-1), p.mod(p.rank+1)

	// post asks for a round's pieces, into one of two slots.
	post := func(round int) {
		r := p.mod(p.rank - 2 - round)
		for k := range p.pieces(r) {
			p.other = append(p.other, p.recv(before, p.slot(slots[round%2], r, k)))
		}
	}
	post(0)
	if p.n > 2 {
		post(1)
	}
	for k := range p.pieces(before) {
		p.list = append(p.list, p.send(after, p.piece(before, k)))
	}
	i := 0
	for round := range p.n - 1 {
		r := p.mod(p.rank - 2 - round)
		for k := range p.pieces(r) {
			p.wait(p.other[i])
			i++
			p.add(p.piece(r, k), p.slot(slots[round%2], r, k))
			if r != p.rank {
				p.list = append(p.list, p.send(after, p.piece(r, k)))
			} else if gather {
				p.send(after, p.piece(r, k))
			}
		}
		if round+2 < p.n-1 {
			post(round + 2)
		}
	}
}

// slot is where a piece lies in scratch memory.
func (p *program) slot(at, r, k int) span {
	s := p.piece(r, k)
	at -= p.cuts[r]
	return span{scratch, at + s.lo, at + s.hi}
}

// ringGather passes the sums on, after ringReduce with gather. A segment that was
// sent is received in its place, as soon as it has left; both happen in the same
// order.
func (p *program) ringGather() {
	before, after := p.mod(p.rank-1), p.mod(p.rank+1)
	p.other = p.other[:0]
	i := 0
	for back := 1; back < p.n; back++ {
		r := p.mod(p.rank - back)
		for k := range p.pieces(r) {
			p.wait(p.list[i])
			i++
			p.other = append(p.other, p.recv(before, p.piece(r, k)))
		}
	}
	i = 0
	for back := 1; back < p.n-1; back++ {
		r := p.mod(p.rank - back)
		for k := range p.pieces(r) {
			p.wait(p.other[i])
			i++
			p.send(after, p.piece(r, k))
		}
	}
}

// ring is the all-reduce.
func (p *program) ring() {
	p.ringReduce(true)
	p.ringGather()
}

// planRingReduce: all segments leave but the rank's own, and all come but that of
// the rank before.
func planRingReduce(rank, n int, cuts []int) (plan Plan) {
	if n == 1 {
		return plan
	}
	for r := range n {
		size := cuts[r+1] - cuts[r]
		if r != rank {
			plan.Sent.add(pieces(size, n), size)
		}
		if r != (rank+n-1)%n {
			plan.Received.add(pieces(size, n), size)
		}
	}
	plan.Peers = ringPeers(n, &plan)
	return plan
}

// planRing: all segments leave twice, but the rank's own and the next rank's only
// once; and so they come from the rank before.
func planRing(rank, n int, cuts []int) (plan Plan) {
	if n == 1 {
		return plan
	}
	plan = planRingReduce(rank, n, cuts)
	for r := range n {
		size := cuts[r+1] - cuts[r]
		if r != (rank+1)%n {
			plan.Sent.add(pieces(size, n), size)
		}
		if r != rank {
			plan.Received.add(pieces(size, n), size)
		}
	}
	plan.Peers = ringPeers(n, &plan)
	return plan
}

// ringPeers is two neighbours, where there are two and something passes.
func ringPeers(n int, plan *Plan) int {
	after, before := min(plan.Sent.Messages, 1), min(plan.Received.Messages, 1)
	if n == 2 {
		return max(after, before)
	}
	return after + before
}
