package collective

// reduceScatter leaves on rank r the sum of the r-th segment of buffer 0 of all
// ranks; what is left in the other segments is of no use. Segment r has counts[r]
// numbers. Auto goes around the ring; the other algorithms are in the order of
// ranks.
func (p *program) reduceScatter(alg Algorithm, counts []int, width int) {
	p.cuts = unevenly(p.cuts[:0], counts, width)
	if ringScatters(alg) {
		p.ringReduce(false)
	} else {
		p.orderedReduce()
	}
}

func ringScatters(alg Algorithm) bool { return alg == Auto || alg == Ring }

// unevenly appends the bounds, in bytes, of segments of given lengths.
func unevenly(cuts, counts []int, width int) []int {
	at := 0
	cuts = append(cuts, 0)
	for _, c := range counts {
		at += c * width
		cuts = append(cuts, at)
	}
	return cuts
}
