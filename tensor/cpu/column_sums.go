package cpu

// maxChunks bounds the partial sums of an operation that sums over rows.
const maxChunks = 128

// sumChunk is how many rows make a chunk of such an operation, and how many rows
// of it are worked on at a time.
func sumChunk(ms []Matrix) (chunk, step int) {
	step = wholeLines(rowChunk(rowBytes(ms)))
	chunk = (ms[0].Rows + maxChunks - 1) / maxChunks
	return max(step, (chunk+step-1)/step*step), step
}

// sumColumns runs body on steps of rows of ms, k rows seen as one where that can
// be. body adds to sums, one float32 a column for each of dst, the second's at
// padded(cols). They go into dst by way of float64, in order of rows.
func (c *Device) sumColumns(k int, ms []Matrix, dst [][]float32, body func(ms []Matrix, lo, hi int, sums []float32)) {
	rest := fold(k, ms)
	c.sumSteps(ms, dst, body)
	if rest != nil {
		c.sumSteps(rest, dst, body)
	}
}

func (c *Device) sumSteps(ms []Matrix, dst [][]float32, body func(ms []Matrix, lo, hi int, sums []float32)) {
	rows, cols := ms[0].Rows, ms[0].Cols
	if rows == 0 || cols == 0 {
		return
	}
	pitch := padded(cols)
	n := len(dst)*pitch + apart
	chunk, step := sumChunk(ms)
	partial := c.Scratch(F64, (rows+chunk-1)/chunk, n)
	defer c.Free(partial)
	each := c.Scratch(F32, c.threads, n)
	defer c.Free(each)
	c.forRows(rows, chunk, func(lo, hi, k, thread int) {
		sums, total := rowOf(each, thread), row64Of(partial, k)
		clear(total)
		for i := lo; i < hi; i += step {
			clear(sums)
			body(ms, i, min(i+step, hi), sums)
			for j, x := range sums {
				total[j] += float64(x)
			}
		}
	})
	total := addRows(partial)
	for k, d := range dst {
		for j, x := range folded(total[k*pitch:k*pitch+cols], len(d)) {
			d[j] = float32(float64(d[j]) + x)
		}
	}
}

// folded adds up the sums of rows that were seen as one: each n of them.
func folded(sums []float64, n int) []float64 {
	for lo := n; lo < len(sums); lo += n {
		for j := range n {
			sums[j] += sums[lo+j]
		}
	}
	return sums[:n]
}

// apart is how many numbers lie between sums of different chunks. Processors fetch some lines beyond those they
// use, which takes them from the core that adds to the next sums: a tenth of the time of ColumnSums.
const apart = 128

// padded is the pitch the sums of n columns take: loops store whole vectors.
func padded(n int) int { return (n + 15) / 16 * 16 }

// addRows adds all rows of a float64 matrix to the first, in order.
func addRows(m Matrix) []float64 {
	total := row64Of(m, 0)
	for i := 1; i < m.Rows; i++ {
		for j, x := range row64Of(m, i) {
			total[j] += x
		}
	}
	return total
}
