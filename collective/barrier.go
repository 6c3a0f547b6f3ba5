package collective

// barrier: no rank is done before all have begun. In round k each rank notifies
// the one 2^k ahead and hears from the one 2^k behind (Hensgen, Finkel and Manber,
// "Two algorithms for barrier synchronization", 1988); after ⌈log2 n⌉ rounds it
// has heard, at second hand, from all. Messages are empty.
func (p *program) barrier() {
	for d := 1; d < p.n; d *= 2 {
		in := p.await(p.mod(p.rank-d), span{})
		p.signal(p.mod(p.rank+d), span{})
		p.wait(in)
	}
}
