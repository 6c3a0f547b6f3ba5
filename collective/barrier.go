package collective

import "math/bits"

// barrier: nobody is done before everybody has begun. In round k each rank tells
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

// PlanBarrier is the traffic of a rank in a barrier of n.
func PlanBarrier(n int) (plan Plan) {
	rounds := bits.Len(uint(n - 1))
	plan.both(rounds, 0)
	// To and from distances 1, 2, 4, …; those forwards and backwards are the same
	// rank only where the distance is half of n.
	plan.Peers = 2 * rounds
	for d := 1; d < n; d *= 2 {
		for e := 1; e < n; e *= 2 {
			if d+e == n {
				plan.Peers--
				break
			}
		}
	}
	return plan
}
