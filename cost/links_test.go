package cost

import (
	"math"
	"testing"
)

// TestLinkRounds: in a round a worker is in one pair at most and two servers have one pair, and all that is to be
// measured is, once.
func TestLinkRounds(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]int{{2, 2}, {4, 2}, {4, 1}, {6, 3}, {5, 5}, {12, 3}, {1, 1}} {
		workers, servers := c[0], c[1]
		each := workers / servers
		seen := map[[2]int]int{}
		for _, round := range LinkRounds(workers, servers) {
			busy, servers := map[int]bool{}, map[[2]int]bool{}
			for _, p := range round {
				on := [2]int{p[0] / each, p[1] / each}
				if busy[p[0]] || busy[p[1]] || p[0] >= p[1] || on[0] != on[1] && servers[on] {
					t.Fatalf("%v: round %v", c, round)
				}
				busy[p[0]], busy[p[1]], servers[on] = true, true, true
				seen[p]++
			}
		}
		for a := range workers {
			for b := a + 1; b < workers; b++ {
				want := 0
				if a/each == b/each || a%each == b%each {
					want = 1
				}
				if got := seen[[2]int{a, b}]; got != want {
					t.Errorf("%v: workers %d and %d are measured %d times, want %d", c, a, b, got, want)
				}
			}
		}
	}
}

// TestLinkSeconds: a slow pair of servers takes as long as its own bytes take, and a fast one is not held up by it.
func TestLinkSeconds(t *testing.T) {
	t.Parallel()
	k := &Known{}
	k.SetLinks([]ServerLink{{A: 0, B: 1, Link: Link{Rate: 100, Delay: 1}}, {A: 0, B: 2, Link: Link{Rate: 10, Delay: 3}},
		{A: 1, B: 2, Link: Link{Rate: 100, Delay: 2}}})
	if k.Between != (Link{Rate: 10, Delay: 3}) {
		t.Errorf("between servers: %v, want the slowest", k.Between)
	}
	if l, ok := k.Slowest(); !ok || l.B != 2 {
		t.Errorf("the slowest link is %v", l)
	}
	for _, c := range []struct{ sent, want []float64 }{
		{[]float64{200, 0, 0}, []float64{100 * frame / 10}},
		{[]float64{0, 200, 0}, []float64{200 * frame / 100}},
		{[]float64{0, 0, 0}, []float64{0}},
	} {
		if got := k.linkSeconds(c.sent); math.Abs(got-c.want[0]) > 1e-12 {
			t.Errorf("%v bytes take %g s, want %g", c.sent, got, c.want[0])
		}
	}
	two := &Known{Between: Link{Rate: 50}}
	if got := two.linkSeconds([]float64{100, 10}); math.Abs(got-2*frame) > 1e-12 {
		t.Errorf("without measured links: %g s", got)
	}
	k.Links[1].Rate = -1
	if k.checkLinks() == nil {
		t.Error("a negative rate passed")
	}
}
