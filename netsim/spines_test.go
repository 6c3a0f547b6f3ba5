package netsim

import (
	"strings"
	"testing"

	"starling/innet"
)

// allPairs is an exchange in one block: each of 8 hosts has a row for a sum of every other.
func allPairs(t *testing.T, top string, memory int64) (*adding, error) {
	t.Helper()
	g := &innet.Graph{}
	for u := range uint32(8) {
		g.Host = append(g.Host, uint16(u))
		for v := range uint32(8) {
			if u != v {
				g.Src, g.Dst = append(g.Src, u), append(g.Dst, v)
			}
		}
	}
	blocks, err := innet.Blocks(g, innet.Slots(8), nil)
	if err != nil {
		t.Fatal(err)
	}
	n, p := network(t, "packet", top).(*Packets), &innet.Plan{Blocks: blocks, Hosts: 8}
	a := newAdding(&cluster{net: n, opt: Options{Switch: &SwitchOptions{Passes: DefaultPasses}}}, n, p, 1, memory)
	return a, a.build(p)
}

// TestSpinesTakeShares: of 8 sums that 2 leaves have parts of, each of 4 spines adds 2, so that 4 parts and 2 sums pass
// it; packets of the barriers, of the opening round and of the block, pass the first alone.
func TestSpinesTakeShares(t *testing.T) {
	a, err := allPairs(t, "leaf-spine leaves=2 spines=4 hosts=4 rate=10Gbps", 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	a.exchange(0, 1)
	for j, spine := range a.switches[:4] {
		want := int64(4)
		if j == 0 {
			want += 2 * 2
		}
		if spine.passes != want {
			t.Errorf("spine %d: %d packets, want %d", j, spine.passes, want)
		}
	}
}

// TestSpinesMustFit: a table that does not fit is refused with the name of its switch.
func TestSpinesMustFit(t *testing.T) {
	_, err := allPairs(t, "leaf-spine leaves=2 spines=4 hosts=4 rate=10Gbps", 200)
	if want := "spine 0 of 4: the table needs 288 bytes of registers, the switch has 200"; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
	_, err = allPairs(t, "leaf-spine leaves=2 spines=4 hosts=4 rate=10Gbps", 400)
	if want := "leaf 0 of 2: the table needs 1120 bytes of registers, the switch has 400"; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
