package batch

import (
	"slices"
	"testing"

	"starling/partition"
)

// TestBalanced: a server has at most slack times its share, its workers have even ones, each vertex
// is computed once, and on its owner's server unless that has too many.
func TestBalanced(t *testing.T) {
	all := []uint32{0, 1, 2, 3, 4, 5, 6, 7, 50, 100, 101, 150} // owners: 8, 1, 2 and 1
	for _, c := range []struct {
		servers int
		want    []int
		moved   int // to another server
	}{
		{4, []int{4, 3, 3, 2}, 4},
		{2, []int{4, 3, 3, 2}, 2}, // 9 on one server, which takes 7
		{1, []int{3, 3, 3, 3}, 0},
	} {
		book := &partition.Book{Parts: 4, Servers: c.servers, Offsets: []int64{0, 50, 100, 150, 200}}
		who, has, moved := Balanced(all, book.Owner, 4, c.servers), make([]int, 4), 0
		for i, q := range who {
			has[q]++
			if book.Server(q) != book.Server(book.Owner(all[i])) {
				moved++
			}
		}
		slices.SortFunc(has, func(a, b int) int { return b - a })
		if !slices.Equal(has, c.want) || moved != c.moved {
			t.Errorf("%d servers: workers have %v, want %v; %d moved, want %d", c.servers, has, c.want, moved, c.moved)
		}
	}
}
