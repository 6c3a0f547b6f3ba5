package collective

import "math/bits"

// doubling is recursive doubling (Thakur, Rabenseifner and Gropp, "Optimization of
// collective communication operations in MPICH", 2005). In round k a rank and the
// one whose number differs in bit k exchange their sums and add; after log2 n
// rounds all have the whole sum. x+y and y+x have the same bits, so all ranks get
// the same. All of the data travels in every round: for small data only.
//
// That needs a power of two, m. Where n is m plus a remainder, the first ranks, as
// many pairs as the remainder, fold: the even one hands its data to the odd one,
// skips the rounds, and is sent the result.
func (p *program) doubling() {
	all := span{data, 0, p.cuts[p.n]}
	rest := p.n - powerWithin(p.n)
	folded := p.rank < 2*rest
	if folded && p.rank%2 == 0 {
		p.wait(p.send(p.rank+1, all))
		p.recv(p.rank+1, all)
		return
	}
	if folded {
		at := p.space(all.len())
		p.wait(p.recv(p.rank-1, at))
		p.add(all, at)
	}
	p.exchange(all, rest)
	if folded {
		p.send(p.rank-1, all)
	}
}

// exchange is the rounds among the ranks that do not skip them. What a round receives is
// asked for one round ahead.
func (p *program) exchange(all span, rest int) {
	rounds := bits.Len(uint(powerWithin(p.n))) - 1
	if rounds == 0 {
		return
	}
	slots := [2]span{p.space(all.len()), p.space(all.len())}
	next := p.recv(partner(p.rank, rest, 0), slots[0])
	for k := range rounds {
		in := next
		if k+1 < rounds {
			next = p.recv(partner(p.rank, rest, k+1), slots[(k+1)%2])
		}
		out := p.send(partner(p.rank, rest, k), all)
		p.wait(in)
		p.wait(out)
		p.add(all, slots[k%2])
	}
}

// partner of a rank in round k. The ranks that take part are renumbered.
func partner(rank, rest, k int) int {
	v := rank - rest
	if rank < 2*rest {
		v = rank / 2
	}
	v ^= 1 << k
	if v < rest {
		return 2*v + 1
	}
	return v + rest
}

// space is a span of scratch memory.
func (p *program) space(bytes int) span {
	at := p.reserve(bytes)
	return span{scratch, at, at + bytes}
}

// powerWithin is the largest power of two that is at most n.
func powerWithin(n int) int { return 1 << (bits.Len(uint(n)) - 1) }
