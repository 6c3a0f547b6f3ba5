package collective

const (
	// pieceBytes is how a segment is cut, so that a piece can be added while the
	// next one travels.
	pieceBytes = 256 << 10
	// maxMessages bounds what one rank sends to another in one call.
	maxMessages = 1 << stepBits
)

// evenly cuts count numbers into n segments as equal as can be and appends their
// bounds, in bytes.
func evenly(cuts []int, count, width, n int) []int {
	for i := range n + 1 {
		cuts = append(cuts, count/n*i*width+count%n*i/n*width)
	}
	return cuts
}

// pieceSize is how long the pieces of a segment are, a multiple of the widest
// number. That of a huge one is longer, for the sake of maxMessages.
func pieceSize(bytes, n int) int {
	most := max(1, maxMessages/4/n)
	return max(pieceBytes, ((bytes+most-1)/most+63)&^63)
}

// pieces is into how many messages a segment is cut; none if it is empty.
func pieces(bytes, n int) int {
	size := pieceSize(bytes, n)
	return (bytes + size - 1) / size
}

// piece is the k-th of a segment.
func piece(s span, k, n int) span {
	size := pieceSize(s.len(), n)
	return span{s.buf, s.lo + k*size, min(s.lo+(k+1)*size, s.hi)}
}

// segment of the data that belongs to a rank.
func (p *program) segment(r int) span { return span{data, p.cuts[r], p.cuts[r+1]} }

// pieces of the segment of a rank.
func (p *program) pieces(r int) int { return pieces(p.segment(r).len(), p.n) }

// piece of the segment of a rank.
func (p *program) piece(r, k int) span { return piece(p.segment(r), k, p.n) }

// longest segment, in bytes.
func (p *program) longest() (most int) {
	for r := range p.n {
		most = max(most, p.segment(r).len())
	}
	return most
}

// reserve takes bytes of scratch and returns where they begin, aligned for any
// number.
func (p *program) reserve(bytes int) int {
	at := p.need
	p.need += (bytes + 63) &^ 63
	return at
}
