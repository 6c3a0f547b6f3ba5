package traintest

// MoveToMeans is mean correction (exchange.Means) for the rows of each peer, on the host,
// as its formula has it; fresh are those rows as they are now.
func MoveToMeans(rows, fresh []float64, cols int, ptr []int64) {
	for q := range len(ptr) - 1 {
		lo, hi := int(ptr[q])*cols, int(ptr[q+1])*cols
		if lo < hi {
			moveToMean(rows[lo:hi], fresh[lo:hi], cols)
		}
	}
}

func moveToMean(rows, fresh []float64, cols int) {
	n := len(rows) / cols
	was, is := make([]float64, cols), make([]float64, cols)
	for i := range rows {
		was[i%cols] += rows[i] / float64(n)
		is[i%cols] += fresh[i] / float64(n)
	}
	size, squares := 0.0, 0.0
	for _, x := range was {
		size += x * x
	}
	share := make([]float64, n)
	for k := range share {
		for c, x := range was {
			share[k] += rows[k*cols+c] * x
		}
		squares += share[k] * share[k]
	}
	all, scale := 1000*size*size+squares/float64(n), 0.0
	if all > 0 {
		scale = 1000 * size / all
	}
	for k := range share {
		for c := range cols {
			rows[k*cols+c] += (scale*share[k] + 1 - scale*size) * (is[c] - was[c])
		}
	}
}
