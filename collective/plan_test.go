package collective

import "math/bits"

// Plan is what one rank does in one call. The plan functions say it by formula, and
// programs are held to it, and what the ledger counts.
type Plan struct {
	Sent, Received Traffic
	Peers          int // ranks it sends to or receives from
}

// both adds messages that are sent and as many that are received.
func (p *Plan) both(messages, bytes int) {
	p.Sent.add(messages, bytes)
	p.Received.add(messages, bytes)
}

// planBarrier is the traffic of a rank in a barrier of n.
func planBarrier(n int) (plan Plan) {
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

// planBroadcast is the traffic of a rank in a broadcast.
func planBroadcast(rank, n, root, bytes int) (plan Plan) {
	if bytes == 0 {
		return plan
	}
	v := ((rank-root)%n + n) % n
	up, down, count := min(v, 1), children(v, n), 1
	if chained(n, bytes) {
		down, count = min(n-1-v, 1), pieces(bytes, n)
	}
	plan.Received.add(up*count, up*bytes)
	plan.Sent.add(down*count, down*bytes)
	plan.Peers = up + down
	return plan
}

// planAllGather is the traffic of a rank in an all-gather of blocks of these sizes.
func planAllGather(rank int, sizes []int) (plan Plan) {
	n := len(sizes)
	around := gathersAround(sizes)
	for r, size := range sizes {
		count := min(size, 1)
		if around {
			count = pieces(size, n)
			if r != (rank+1)%n {
				plan.Sent.add(count, size)
			}
		}
		if r != rank {
			plan.Received.add(count, size)
			if !around && size+sizes[rank] > 0 {
				plan.Peers++
			}
		}
	}
	if around {
		plan.Peers = min(plan.Sent.Messages, 1) + min(plan.Received.Messages, 1)
	} else {
		plan.Sent.add((n-1)*min(sizes[rank], 1), (n-1)*sizes[rank])
	}
	return plan
}

// planAllToAll is the traffic of a rank that sends the same number of bytes to each, and gets
// the same from each.
func planAllToAll(rank int, sends, recvs []int) (plan Plan) {
	for q := range sends {
		if q == rank {
			continue
		}
		plan.Sent.add(min(sends[q], 1), sends[q])
		plan.Received.add(min(recvs[q], 1), recvs[q])
		plan.Peers += min(sends[q]+recvs[q], 1)
	}
	return plan
}

// planReduceScatter is the traffic of a rank in a reduce-scatter of segments of so
// many numbers of width bytes.
func planReduceScatter(alg Algorithm, rank int, counts []int, width int) Plan {
	cuts := unevenly(nil, counts, width)
	if ringScatters(alg) {
		return planRingReduce(rank, len(counts), cuts)
	}
	return planOrderedReduce(rank, len(counts), cuts)
}

// planAllReduce is the traffic of a rank in an all-reduce of count numbers of
// width bytes.
func planAllReduce(alg Algorithm, rank, n, count, width int) Plan {
	cuts := evenly(nil, count, width, n)
	switch alg := Choose(alg, n, count*width); alg {
	case Doubling:
		return planDoubling(rank, n, count*width)
	case Tree:
		return planTree(rank, n, count*width)
	case Direct:
		return planDirect(rank, n, cuts)
	case Whole:
		return planWhole(n, count*width)
	case Gathered:
		return planGathered(rank, n, count*width)
	case Ring:
		return planRing(rank, n, cuts)
	}
	return planNested(rank, n, int(Choose(alg, n, count*width)-nestedFrom), cuts)
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

// planDoubling: everything to and from a partner in each round, and in folding.
func planDoubling(rank, n, bytes int) (plan Plan) {
	power := powerWithin(n)
	rounds := bits.Len(uint(power)) - 1
	switch folded := rank < 2*(n-power); {
	case bytes == 0:
		return plan
	case folded && rank%2 == 0:
		plan.Peers = 1
	case folded:
		plan.Peers = rounds + 1
	default:
		plan.Peers = rounds
	}
	plan.both(plan.Peers, plan.Peers*bytes)
	return plan
}

// planTree: everything once to and from the parent and each child.
func planTree(rank, n, bytes int) (plan Plan) {
	if bytes == 0 {
		return plan
	}
	plan.Peers = min(rank, 1) + children(rank, n)
	plan.both(plan.Peers, plan.Peers*bytes)
	return plan
}

// planGathered: in the tree of each segment, what is below us comes from the children and leaves to the parent, and
// the sum goes back.
func planGathered(rank, n, bytes int) (plan Plan) {
	roots := min(n, (bytes+4095)/4096)
	peers := map[int]bool{}
	for j := range roots {
		size := bytes/8*(j+1)/roots*8 - bytes/8*j/roots*8
		if j == roots-1 {
			size += bytes % 8
		}
		root := j * n / roots
		place := (rank - root + n) % n
		if size == 0 {
			continue
		}
		below := 1
		for d := 1; place&d == 0 && place+d < n; d *= 2 {
			grown := min(2*d, n-place)
			peers[(rank+d)%n] = true
			plan.Received.add(1, (grown-below)*size)
			plan.Sent.add(1, size)
			below = grown
		}
		if place > 0 {
			peers[(root+place&(place-1))%n] = true
			plan.Sent.add(1, below*size)
			plan.Received.add(1, size)
		}
	}
	plan.Peers = len(peers)
	return plan
}

// planNested: our slab comes from our server and others leave; our segment comes from
// the other servers and theirs leave; then all of it goes the other way.
func planNested(rank, n, servers int, cuts []int) (plan Plan) {
	each := n / servers
	server, place := rank/each, rank%each
	bytes := func(g int) int { return cuts[g+1] - cuts[g] }
	longest := 0
	for g := range n {
		longest = max(longest, bytes(g))
	}
	exchange := func(in, out []int) {
		used := 0
		for _, segments := range [][]int{in, out} {
			messages, sum := 0, 0
			for _, g := range segments {
				messages += pieces(bytes(g), n)
				sum += bytes(g)
			}
			if longest <= 4<<10 { // in one message
				messages = min(sum, 1)
			}
			plan.both(messages, sum)
			used += sum
		}
		plan.Peers += min(used, 1)
	}
	slab := func(place int) (all []int) {
		for s := range servers {
			all = append(all, place*servers+s)
		}
		return all
	}
	for q := range each {
		if q != place {
			exchange(slab(place), slab(q))
		}
	}
	for s := range servers {
		if s != server {
			exchange([]int{place*servers + server}, []int{place*servers + s})
		}
	}
	return plan
}
