package exchange

import (
	"slices"
	"testing"

	"starling/tensor"
)

// TestRingCrossesOnce: a block's path has every rank once and enters every server once; over
// the blocks of all, every rank is in every place of a path equally often.
func TestRingCrossesOnce(t *testing.T) {
	for _, c := range [][2]int{{1, 1}, {4, 1}, {4, 2}, {6, 2}, {6, 3}, {8, 4}, {5, 5}} {
		ranks, servers := c[0], c[1]
		each, places := ranks/servers, map[[2]int]int{}
		for owner := range ranks {
			path := ringPath(owner, ranks, servers)
			crossed := 0
			for i, q := range path {
				places[[2]int{q, i}]++
				if i > 0 && q/each != path[i-1]/each {
					crossed++
				}
			}
			if path[0] != owner || crossed != servers-1 {
				t.Errorf("%v: block of %d goes %v, between servers %d times", c, owner, path, crossed)
			}
			if slices.Sort(path); path[0] != 0 || path[ranks-1] != ranks-1 || len(slices.Compact(path)) != ranks {
				t.Errorf("%v: block of %d misses ranks: %v", c, owner, path)
			}
		}
		for at, n := range places {
			if n != 1 {
				t.Errorf("%v: rank %d is in place %d of %d paths", c, at[0], at[1], n)
			}
		}
	}
}

// TestPieces: they are all rows of a block once, in order, and not too many.
func TestPieces(t *testing.T) {
	for _, rows := range []int{0, 1, 31, 32, 1000, 100_000} {
		for _, cols := range []int{1, 16, 4096} {
			next, count := 0, 0
			eachPiece(rows, cols, tensor.F32, func(number, lo, hi int) {
				if number != count || lo != next || hi <= lo {
					t.Fatalf("%d rows of %d: piece %d is %d to %d after %d", rows, cols, number, lo, hi, next)
				}
				next, count = hi, count+1
			})
			if next != rows || count > ringPieces {
				t.Errorf("%d rows of %d: %d pieces up to %d", rows, cols, count, next)
			}
		}
	}
}
