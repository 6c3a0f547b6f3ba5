package collective

// ringGatherFrom is the size, of all blocks together, from which all-gather goes
// around a ring. Before that every rank sends its block to every other at once.
// The bytes are the same; the ring uses only links between neighbours, so a block
// crosses from server to server once for each server, not once for each rank.
const ringGatherFrom = 256 << 10

// allGather puts the block of every rank on all ranks. Buffer r is the block of
// rank r. Blocks may differ in size, which all ranks know; empty ones do not
// travel.
func (p *program) allGather(sizes []int) {
	if gathersAround(sizes) {
		p.gatherAround(sizes)
		return
	}
	for d := 1; d < p.n; d++ {
		from := p.mod(p.rank - d)
		p.recv(from, span{int32(from), 0, sizes[from]})
	}
	for d := 1; d < p.n; d++ {
		p.send(p.mod(p.rank+d), span{int32(p.rank), 0, sizes[p.rank]})
	}
}

func gathersAround(sizes []int) bool {
	return len(sizes) > 2 && total(sizes) >= ringGatherFrom
}

// gatherAround passes each block on as soon as it has come, piece by piece.
func (p *program) gatherAround(sizes []int) {
	block := func(back, k int) span {
		r := p.mod(p.rank - back)
		return piece(span{int32(r), 0, sizes[r]}, k, p.n)
	}
	count := func(back int) int { return pieces(sizes[p.mod(p.rank-back)], p.n) }
	before, after := p.mod(p.rank-1), p.mod(p.rank+1)
	for back := 1; back < p.n; back++ {
		for k := range count(back) {
			p.in = append(p.in, p.recv(before, block(back, k)))
		}
	}
	for k := range count(0) {
		p.send(after, block(0, k))
	}
	i := 0
	for back := 1; back < p.n-1; back++ {
		for k := range count(back) {
			p.wait(p.in[i])
			i++
			p.send(after, block(back, k))
		}
	}
}

func total(sizes []int) (sum int) {
	for _, s := range sizes {
		sum += s
	}
	return sum
}
