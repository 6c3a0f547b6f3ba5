package tensor

// CountMarks is what the F1 score of multi-label classification is made of. rows
// must be distinct; none at all means every row.
func (c *CPU) CountMarks(logits, targets Matrix, rows Index) (predicted, known, both int) {
	const op = "CountMarks"
	sameShape(op, logits, targets)
	noF64(op, logits, targets)
	list := c.ascending(op, rows, logits.Rows)
	if logits.Rows == 0 || logits.Cols == 0 {
		return 0, 0, 0
	}
	size := rowChunk(logits.Cols * 8)
	counts := make([][3]int, (logits.Rows+size-1)/size)
	c.forRows(logits.Rows, size, func(lo, hi, k, _ int) {
		counts[k] = marksOf(logits, targets, within(list, lo, hi, logits.Rows))
	})
	for _, n := range counts {
		predicted, known, both = predicted+n[0], known+n[1], both+n[2]
	}
	return predicted, known, both
}

func marksOf(logits, targets Matrix, list []uint32) (n [3]int) {
	x, t := logits.block(0), targets.block(0)
	for _, r := range list {
		for j := range logits.Cols {
			p, k := 0, 0
			if x.At(int(r), j) > 0 {
				p = 1
			}
			if t.At(int(r), j) > 0.5 {
				k = 1
			}
			n[0], n[1], n[2] = n[0]+p, n[1]+k, n[2]+p&k
		}
	}
	return n
}
