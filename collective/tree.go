package collective

// tree reduces up a binomial tree to rank 0 and broadcasts back down it. It takes
// 2⌈log2 n⌉ rounds, twice those of recursive doubling, but only 2(n-1) messages in
// all instead of n·log2 n, which counts where many ranks share few cores.
func (p *program) tree() {
	all := span{data, 0, p.cuts[p.n]}
	if all.len() == 0 {
		return
	}
	low := lowBit(p.rank, p.n)
	slot := slotBytes(all.len())
	first := p.reserve(children(p.rank, p.n) * slot)
	at := func(i int) span { return span{scratch, first + i*slot, first + i*slot + all.len()} }
	for i := range children(p.rank, p.n) {
		p.in = append(p.in, p.recv(p.rank+1<<i, at(i)))
	}
	for i, op := range p.in {
		p.wait(op)
		p.add(all, at(i))
	}
	if p.rank > 0 {
		p.wait(p.send(p.rank-low, all))
	}
	p.fromParent(0, all)
	p.toChildren(0, all)
}
