package collective

import "math/bits"

// chainFrom is the size from which a broadcast goes down a chain in pieces
// instead of a tree. A tree sends all of it ⌈log2 n⌉ times one after the other, a
// chain once plus a piece for every rank.
const chainFrom = 512 << 10

// broadcast puts the root's buffer 0 on all ranks.
func (p *program) broadcast(root, bytes int) {
	if chained(p.n, bytes) {
		p.chain(root, bytes)
		return
	}
	p.fromParent(root, span{data, 0, bytes})
	p.toChildren(root, span{data, 0, bytes})
}

func chained(n, bytes int) bool { return n > 2 && bytes >= chainFrom }

// chain hands pieces from rank to rank, beginning at the root.
func (p *program) chain(root, bytes int) {
	all := span{data, 0, bytes}
	place := p.mod(p.rank - root)
	if place > 0 {
		for k := range pieces(bytes, p.n) {
			p.in = append(p.in, p.recv(p.mod(p.rank-1), piece(all, k, p.n)))
		}
	}
	for k := range pieces(bytes, p.n) {
		if place > 0 {
			p.wait(p.in[k])
		}
		if place < p.n-1 {
			p.send(p.mod(p.rank+1), piece(all, k, p.n))
		}
	}
}

// A binomial tree: seen from the root, the rank in place v has the parent
// v - low(v) and the children v + 1, v + 2, v + 4, … below low(v), where low is
// the lowest bit set. The root, in place 0, has children at every power of two.

// fromParent receives a span from the parent in the tree.
func (p *program) fromParent(root int, s span) {
	if v := p.mod(p.rank - root); v > 0 {
		p.wait(p.recv(p.mod(root+v-lowBit(v, p.n)), s))
	}
}

// toChildren sends a span to the children, the one with most descendants first.
func (p *program) toChildren(root int, s span) {
	v := p.mod(p.rank - root)
	for d := lowBit(v, p.n) / 2; d > 0; d /= 2 {
		if v+d < p.n {
			p.send(p.mod(root+v+d), s)
		}
	}
}

// lowBit is the lowest bit of v; for the root, a power of two that is at least n.
func lowBit(v, n int) int {
	if v == 0 {
		return 1 << bits.Len(uint(n-1))
	}
	return v & -v
}

// children is how many children place v of n has.
func children(v, n int) int {
	below := min(lowBit(v, n), n-v) // children are at distances below this that are powers of two
	return bits.Len(uint(below - 1))
}
