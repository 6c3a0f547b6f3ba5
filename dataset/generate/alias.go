package generate

// aliasTable builds Walker's alias table of n outcomes with the given weights, by Vose's
// method: outcome i is kept with probability keep, else replaced by other. A draw picks i
// uniformly and then one of the two, in constant time. It returns the sum of the
// weights.
//
// A. Walker: An efficient method for generating discrete random variables with
// general distributions, 1977.
func aliasTable(n int, weight func(i int) float64, set func(i int, keep float64, other int)) (sum float64) {
	for i := range n {
		sum += weight(i)
	}
	share := make([]float32, n) // weights in units of the mean
	small, large := make([]uint32, 0, n), []uint32{}
	for i := range n {
		share[i] = float32(weight(i) * float64(n) / sum)
		if share[i] < 1 {
			small = append(small, uint32(i))
		} else {
			large = append(large, uint32(i))
		}
		set(i, 1, i)
	}
	for len(small) > 0 && len(large) > 0 {
		i, j := small[len(small)-1], large[len(large)-1]
		small = small[:len(small)-1]
		set(int(i), float64(share[i]), int(j))
		if share[j] -= 1 - share[i]; share[j] < 1 {
			large = large[:len(large)-1]
			small = append(small, j)
		}
	}
	return sum
}
