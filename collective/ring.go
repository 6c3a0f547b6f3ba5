package collective

// The ring (Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms", 2009).
// The data is cut into n segments. Going around n-1 times, partial sums of
// segments pass from rank to rank, each adding its own, until rank r has the whole
// sum of segment r; going around n-1 times more, the sums pass to all. A rank
// sends and receives 2(n-1)/n of the data, which is the least possible, but in
// 2(n-1) rounds one after the other. Within a round, segments travel in pieces, so
// that adding and travelling overlap.

// ringReduce leaves the sum of segment r on rank r. With gather, its pieces also
// leave for the next rank as soon as they are done, and the sums of others are
// asked for as early as can be.
func (p *program) ringReduce(gather bool) {
	if p.n == 1 {
		return
	}
	before, after := p.mod(p.rank-1), p.mod(p.rank+1)
	p.askAround()
	for k := range p.pieces(before) {
		p.sendNext(p.piece(before, k))
	}
	i := 0
	for round := range p.n - 1 {
		r := p.mod(p.rank - 2 - round)
		for k := range p.pieces(r) {
			p.wait(p.in[i])
			i++
			if r != p.rank {
				p.sendNext(p.piece(r, k))
			} else if gather {
				p.send(after, p.piece(r, k))
			}
			if gather && round+2 >= p.n-1 {
				p.askSums(i)
			}
		}
	}
}

// askAround asks for the partial sums of all rounds, to be added to our own numbers.
func (p *program) askAround() {
	for round := range p.n - 1 {
		r := p.mod(p.rank - 2 - round)
		for k := range p.pieces(r) {
			p.in = append(p.in, p.recvAdd(p.mod(p.rank-1), p.piece(r, k)))
		}
	}
}

// sendNext sends a partial sum to the next rank.
func (p *program) sendNext(s span) {
	p.out = append(p.out, p.send(p.mod(p.rank+1), s))
	p.left = append(p.left, s)
}

// askSums posts receives for the sums of the first pieces that were passed on, each
// in the place it was sent from, when it has left. Sums come in the order in which
// pieces left.
func (p *program) askSums(upTo int) {
	for i := len(p.back); i < min(upTo, len(p.out)); i++ {
		p.wait(p.out[i])
		p.back = append(p.back, p.recv(p.mod(p.rank-1), p.left[i]))
	}
}

// ringGather passes the sums on, after ringReduce with gather.
func (p *program) ringGather() {
	p.askSums(len(p.out))
	i := 0
	for back := 1; back < p.n-1; back++ {
		r := p.mod(p.rank - back)
		for k := range p.pieces(r) {
			p.wait(p.back[i])
			i++
			p.send(p.mod(p.rank+1), p.piece(r, k))
		}
	}
}

// ring is the all-reduce.
func (p *program) ring() {
	p.ringReduce(true)
	p.ringGather()
}
