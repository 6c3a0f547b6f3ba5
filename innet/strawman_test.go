package innet

import "testing"

// TestStrawman: with aggregators for all destinations every row leaves once and every sum
// arrives once; with one fewer of them rows pass as they are until one is released; with none all
// do, once per host.
func TestStrawman(t *testing.T) {
	// Host 0 has vertices 0 to 3, hosts 1 and 2 have 4 to 6 and 7: all of host 0 to all others.
	g := &Graph{Host: []uint16{0, 0, 0, 0, 1, 1, 1, 2}}
	for u := range uint32(4) {
		for v := uint32(4); v < 8; v++ {
			g.Src, g.Dst = append(g.Src, u), append(g.Dst, v)
		}
	}
	for limit, want := range map[int]StrawmanCounts{4: {4, 4, 0, 4}, 3: {4, 4, 3, 3}, 0: {4, 0, 8, 0}} {
		if got := Strawman(g, limit); got != want {
			t.Errorf("%d aggregators: %+v, want %+v", limit, got, want)
		}
	}
}
