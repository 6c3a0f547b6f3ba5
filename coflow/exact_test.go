package coflow

import (
	"math"
	"slices"
)

// bottleneck is the largest row or column sum.
func bottleneck(sizes [][]int64) (most int64) {
	in := make([]int64, len(sizes))
	for _, row := range sizes {
		var out int64
		for j, x := range row {
			out += x
			in[j] += x
		}
		most = max(most, out)
	}
	return max(most, slices.Max(append(in, 0)))
}

// length is how long all sub-phases take, one after the other.
func length(phases []Matching) (sum int64) {
	for i := range phases {
		sum += phases[i].Length
	}
	return sum
}

// exactMatchings pads the matrix until all rows and columns have the bottleneck's sum, and takes
// it apart into permutations (Birkhoff and von Neumann), each of which lasts as long as its
// smallest entry. Padding is not sent. Of all permutations the one whose smallest entry
// is the largest is taken, so that there are few.
func exactMatchings(sizes [][]int64) (phases []Matching) {
	rest := bottleneck(sizes)
	real, padded := clone(sizes), pad(sizes, rest)
	for rest > 0 {
		to, least := widest(padded)
		m := Matching{To: to, Bytes: make([]int64, len(to)), Length: least}
		for i, j := range to {
			padded[i][j] -= least
			m.Bytes[i] = min(least, real[i][j])
			if real[i][j] -= m.Bytes[i]; m.Bytes[i] == 0 {
				to[i] = -1
			}
		}
		rest -= least
		phases = append(phases, m)
	}
	return phases
}

// pad adds to a matrix, from the first row and column with space on, until all sums are want.
func pad(sizes [][]int64, want int64) [][]int64 {
	a := clone(sizes)
	rows, cols := make([]int64, len(a)), make([]int64, len(a))
	for i := range a {
		for j, x := range a[i] {
			rows[i] += x
			cols[j] += x
		}
	}
	for i, j := 0, 0; i < len(a) && j < len(a); {
		x := want - max(rows[i], cols[j])
		a[i][j] += x
		rows[i] += x
		cols[j] += x
		if rows[i] == want {
			i++
		} else {
			j++
		}
	}
	return a
}

// widest is the perfect matching whose smallest entry is the largest, by bisection over the
// entries. REQUIRES: all rows and columns have one sum, above 0, so that there is one.
func widest(a [][]int64) (to []int, least int64) {
	var values []int64
	for _, row := range a {
		for _, x := range row {
			if x > 0 {
				values = append(values, x)
			}
		}
	}
	slices.Sort(values)
	values = slices.Compact(values)
	low, high := 0, len(values)
	for low+1 < high {
		if mid := (low + high) / 2; match(a, values[mid]) != nil {
			low = mid
		} else {
			high = mid
		}
	}
	to = match(a, values[low])
	least = math.MaxInt64
	for i, j := range to {
		least = min(least, a[i][j])
	}
	return to, least
}

// match returns a perfect matching of entries not below least, or nil, by augmenting paths.
func match(a [][]int64, least int64) []int {
	from := make([]int, len(a)) // by receiver: the sender, plus 1
	seen := make([]int, len(a))
	var place func(i, round int) bool
	place = func(i, round int) bool {
		for j, x := range a[i] {
			if x < least || seen[j] == round {
				continue
			}
			seen[j] = round
			if from[j] == 0 || place(from[j]-1, round) {
				from[j] = i + 1
				return true
			}
		}
		return false
	}
	for i := range a {
		if !place(i, i+1) {
			return nil
		}
	}
	to := make([]int, len(a))
	for j, i := range from {
		to[i-1] = j
	}
	return to
}
