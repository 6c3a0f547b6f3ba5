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
// GreedyMatchings, the paper's algorithm 3, may take more.

// Matching is one sub-phase.
type Matching struct {
	To    []int   // by sender; -1: it does not send
	Bytes []int64 // by sender
	// Length is how long the sub-phase takes, in bytes at the rate of a link.
	Length int64
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

func clone(a [][]int64) [][]int64 {
	out := make([][]int64, len(a))
	for i := range a {
		out[i] = slices.Clone(a[i])
	}
	return out
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
