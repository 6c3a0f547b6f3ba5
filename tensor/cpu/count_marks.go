package cpu

import "starling/tensor"

// CountMarks is what the F1 score of multi-label classification is made of.
func (c *Device) CountMarks(counts, logits, targets Matrix, rows Index) {
	const op = "CountMarks"
	tensor.NeedShape(op+": counts", counts, 1, 3, F64)
	tensor.NeedSameShape(op, logits, targets)
	noF64(op, logits, targets)
	list, total := c.ascending(op, rows, logits.Rows), row64Of(counts, 0)
	clear(total)
	if logits.Rows == 0 || logits.Cols == 0 {
		return
	}
	size := rowChunk(logits.Cols * 8)
	chunks := make([][3]int, (logits.Rows+size-1)/size)
	c.forRows(logits.Rows, size, func(lo, hi, k, _ int) {
		chunks[k] = marksOf(logits, targets, within(list, lo, hi, logits.Rows))
	})
	for _, n := range chunks {
		for i := range total {
			total[i] += float64(n[i])
		}
	}
}

func marksOf(logits, targets Matrix, list []uint32) (n [3]int) {
	x, t := blockOf(logits, 0), blockOf(targets, 0)
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
