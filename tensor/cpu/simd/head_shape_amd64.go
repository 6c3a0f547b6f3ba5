package simd

// headShape is how a row is cut into runs of vectors of float32, or blocks of bfloat16. For
// loops that make dot products a run is a head, or
// heads that share a vector, and what is left: the last of a row, not to reach behind it, starts shift bytes earlier.
type headShape struct {
	each, whole                int    // vectors or blocks a run, and bytes of all but the last
	headBytes, lastByte, shift int    // lastByte is from the last vector's first
	tail                       uint64 // columns of the row's last vector or block
	evens, odds                uint64 // lanes of those of other heads, of a block in two vectors
	kind                       int    // of loads
	places                     *places
	few                        uint64 // 1 if all are of the last four vectors
}

// Kinds of loads: sixteen float32, 32 bfloat16, or sixteen of them.
const (
	floatLoads = iota
	pairLoads
	singleLoads
)

// places is where the loads of a row are, in bytes, by the first of the vectors that they are
// summed in: below zero where there are none.
type places struct{ from, to [panelCols / 16]int }

// placesOf lists the loads of runs, each of cols columns and with space for room sums.
func (s *headShape) placesOf(runs, cols, room int, src, dst Strided) (p places) {
	block := 16
	if s.kind == pairLoads {
		block = 32
	}
	for i := range p.from {
		p.from[i], p.to[i] = -1, -1
	}
	for r := range runs {
		for i := range s.each {
			col := r*cols + i*block
			if r == runs-1 && i == s.each-1 {
				col -= s.shift / src.size()
			}
			v := (panelCols - (runs-1-r)*room - (s.each-i)*block) / 16
			p.from[v], p.to[v] = col*src.size(), col*dst.size()
		}
	}
	return p
}

// panelShape is the shape of a panel, one run, and the mask of its last vector or block.
func panelShape(cols int, bf16 bool) (s headShape, mask uint64) {
	if bf16 {
		s.kind = pairLoads
	}
	s.each, mask = vectorsOf(cols, bf16)
	s.whole = 64 * (s.each - 1)
	return s, mask
}

// vectorsOf is the number of vectors or blocks of cols columns, and the mask of the last.
func vectorsOf(cols int, bf16 bool) (n int, mask uint64) {
	if bf16 {
		return (cols + 31) / 32, 0xffffffff >> (-cols & 31)
	}
	return (cols + 15) / 16, 0xffff >> (-cols & 15)
}

// blockCols is how many columns of a head are loaded at once: a vector's or, of more than 16 of bfloat16, two vectors'.
func blockCols(width int, bf16 bool) int {
	if bf16 && width > 16 {
		return 32
	}
	return 16
}
