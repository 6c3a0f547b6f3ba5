package innet

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// overLeaves is an exchange of all pairs of 8 vertices on 4 hosts, with a block for each half of the sums: over one
// switch, or with spines over two leaves of two hosts.
func overLeaves(t *testing.T, spines int) *schedule {
	g := &Graph{}
	for u := range uint32(8) {
		g.Host = append(g.Host, uint16(u%4))
		for v := range uint32(8) {
			if u%4 != v%4 {
				g.Src, g.Dst = append(g.Src, u), append(g.Dst, v)
			}
		}
	}
	blocks, err := Blocks(g, Slots(4), nil)
	if err != nil || len(blocks) != 2 {
		t.Fatalf("%d blocks, %v", len(blocks), err)
	}
	s := &schedule{graph: g, plan: &Plan{Blocks: blocks, Hosts: 4}, width: 40, lasting: true,
		network: &network{rand: newRand(1), delay: time.Microsecond, due: make([]time.Duration, 4)}}
	s.tables = []*Table{s.plan.Table(1, 2)}
	if spines > 0 {
		s.leafOf = []int{0, 0, 1, 1}
		leaves, above := s.plan.Tables(1, 2, s.leafOf, 2, spines)
		s.tables = append(leaves, above...)
	}
	s.restart0()
	for h := range 4 {
		s.hosts = append(s.hosts, NewHost(s.plan, h, 2, 1, DefaultHost))
	}
	return s
}

// TestSpinesShareSums: over two leaves and two spines all sums are to the bit those of one switch, also after spines
// have lost their registers. Each leaf has rows for every sum, so that in each block of 4 each spine adds 2 sums,
// of 2 partial ones each.
func TestSpinesShareSums(t *testing.T) {
	one, two := overLeaves(t, 0), overLeaves(t, 2)
	for _, table := range two.tables[2:] {
		for i, b := range table.Blocks {
			if len(b.Slots) != 2 || len(b.Port) != 4 {
				t.Errorf("block %d: a spine has %d sums of %d partial ones, want 2 of 4", i, len(b.Slots), len(b.Port))
			}
		}
	}
	for _, s := range []*schedule{one, two} {
		s.rand = newRand(2)
		s.draw()
		s.exchange(t)
		s.check(t)
	}
	for v := range one.sums {
		if !slices.Equal(one.sums[v], two.sums[v]) {
			t.Fatalf("vertex %d: sums of two spines differ from those of one switch", v)
		}
	}
	// 2 leaves send 2 partial sums to each spine in each block.
	if want := [5]int{2: 8, 3: 8}; two.partial != want {
		t.Errorf("switches have received %d partial sums, want %d", two.partial, want)
	}
	two.lasting, two.lose, two.rand = false, 0.1, newRand(3)
	for range 8 {
		two.draw()
		two.exchange(t)
		two.check(t)
	}
}

// TestSpinesNeedPorts: a leaf has a port for each host and each spine, which are 16-bit numbers.
func TestSpinesNeedPorts(t *testing.T) {
	p := overLeaves(t, 1).plan
	leaves, _ := p.Tables(1, 1, []int{0, 0, 1, 1}, 2, 2)
	if err := leaves[0].Check(1 << 20); err != nil {
		t.Error(err)
	}
	leaves[0].Spines = 1<<16 - 3
	if err := leaves[0].Check(1 << 20); err == nil || !strings.Contains(err.Error(), "4 hosts and 65533 switches above") {
		t.Errorf("65,537 ports: %v", err)
	}
}
