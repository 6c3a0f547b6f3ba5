package coflow

import (
	"math"
	"slices"
)

// An all-to-all of uneven sizes in sub-phases (Hermod, §5.3.2): in each a sender has at most
// one receiver and a receiver at most one sender, so that every flow has the rate of its link and
// no two meet at a receiver. sizes[i][j] is what i sends to j, n x n.
//
// An all-to-all cannot take less time than its largest row or column sum, the bottleneck.
// ExactMatchings always takes that time. GreedyMatchings, the paper's algorithm 3, may take more.

// Matching is one sub-phase.
type Matching struct {
	To    []int   // by sender; -1: it does not send
	Bytes []int64 // by sender
	// Length is how long the sub-phase takes, in bytes at the rate of a link.
	Length int64
}

// Bottleneck is the largest row or column sum.
func Bottleneck(sizes [][]int64) (most int64) {
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

// Length is how long all sub-phases take, one after the other.
func Length(phases []Matching) (sum int64) {
	for i := range phases {
		sum += phases[i].Length
	}
	return sum
}

// GreedyMatchings takes the assignment of the largest sum of what is left (the Hungarian
// algorithm), sends the smallest amount of its pairs, and repeats. The paper's pseudocode takes
// the smallest amount of the whole rest instead, its text that of the matched pairs: this is
// the text's reading, which needs fewer sub-phases for the same time.
func GreedyMatchings(sizes [][]int64) (phases []Matching) {
	left := clone(sizes)
	for {
		to := assign(left)
		least := int64(math.MaxInt64)
		for i, j := range to {
			if left[i][j] == 0 {
				to[i] = -1
				continue
			}
			least = min(least, left[i][j])
		}
		if least == math.MaxInt64 {
			return phases
		}
		m := Matching{To: to, Bytes: make([]int64, len(to)), Length: least}
		for i, j := range to {
			if j >= 0 {
				m.Bytes[i] = least
				left[i][j] -= least
			}
		}
		phases = append(phases, m)
	}
}

// ExactMatchings pads the matrix until all rows and columns have the bottleneck's sum, and takes
// it apart into permutations (Birkhoff and von Neumann), each of which lasts as long as its
// smallest entry. Padding is not sent. Of all permutations the one whose smallest entry
// is the largest is taken, so that there are few.
func ExactMatchings(sizes [][]int64) (phases []Matching) {
	rest := Bottleneck(sizes)
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

func clone(a [][]int64) [][]int64 {
	out := make([][]int64, len(a))
	for i := range a {
		out[i] = slices.Clone(a[i])
	}
	return out
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

// assign is the assignment of receivers to senders with the largest sum: the Hungarian algorithm
// with potentials, n*n*n steps. Costs are negated sizes; potentials u, v keep
// cost[i][j] - u[i] - v[j] at least 0, and 0 on the assigned pairs. Rows and columns count from 1.
func assign(sizes [][]int64) []int {
	n := len(sizes)
	u, v := make([]int64, n+1), make([]int64, n+1)
	from, way := make([]int, n+1), make([]int, n+1) // by column: its row, and the column before it on the path
	slack, used := make([]int64, n+1), make([]bool, n+1)
	for i := 1; i <= n; i++ {
		from[0] = i
		for j := range slack {
			slack[j], used[j] = math.MaxInt64, false
		}
		at := 0
		for from[at] != 0 {
			used[at] = true
			row, step, next := from[at], int64(math.MaxInt64), 0
			for j := 1; j <= n; j++ {
				if used[j] {
					continue
				}
				if d := -sizes[row-1][j-1] - u[row] - v[j]; d < slack[j] {
					slack[j], way[j] = d, at
				}
				if slack[j] < step {
					step, next = slack[j], j
				}
			}
			for j := 0; j <= n; j++ {
				if used[j] {
					u[from[j]] += step
					v[j] -= step
				} else {
					slack[j] -= step
				}
			}
			at = next
		}
		for ; at != 0; at = way[at] {
			from[at] = from[way[at]]
		}
	}
	to := make([]int, n)
	for j := 1; j <= n; j++ {
		to[from[j]-1] = j - 1
	}
	return to
}
