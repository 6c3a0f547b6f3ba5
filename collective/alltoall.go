package collective

// allToAll moves buffer q, for each rank q, to the peer q, and fills buffer n+q
// with what q has for this rank. Sizes may all differ; the two ends of a pair must
// agree. Empty ones do not travel. Everything is posted at once; each rank begins
// with its successor, so that not all send to rank 0 first.
func (p *program) allToAll(sends, recvs []int) {
	for d := 1; d < p.n; d++ {
		from := p.mod(p.rank - d)
		p.recv(from, span{int32(p.n + from), 0, recvs[from]})
	}
	for d := 1; d < p.n; d++ {
		to := p.mod(p.rank + d)
		p.send(to, span{int32(to), 0, sends[to]})
	}
	p.move(span{int32(p.n + p.rank), 0, recvs[p.rank]}, span{int32(p.rank), 0, sends[p.rank]})
}
