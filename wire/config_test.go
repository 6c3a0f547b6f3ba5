package wire

import "testing"

func TestLinks(t *testing.T) {
	c := Config{Rank: 1, Size: 4, HostIDs: []string{"a", "a", "b", ""}}
	check := func(want ...Link) {
		t.Helper()
		for p, l := range c.Links() {
			if l != want[p] {
				t.Errorf("rank %d is %v, expected %v", p, l, want[p])
			}
		}
	}
	check(SameHost, SameProcess, BetweenServers, BetweenServers)
	c.ServerOf = []int{0, 1, 1, 0}
	check(BetweenServers, SameProcess, SameHost, BetweenServers)
}
