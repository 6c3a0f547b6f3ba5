package netsim

import (
	"testing"

	"starling/innet"
)

// TestStrawmanTime: by hand. Host 0 has four vertices, which all vertices of hosts 1 (three) and 2 (one) need; a packet
// takes a microsecond, a link another. The last row is at the switch after five.
func TestStrawmanTime(t *testing.T) {
	top, err := ParseTopology("star hosts=3 rate=8Gbps delay=1us payload=1000B header=0B")
	if err != nil {
		t.Fatal(err)
	}
	top.Rate = Rate(8*(innet.HeaderBytes+innet.UnitBytes)) * Mbps
	g := &innet.Graph{Host: []uint16{0, 0, 0, 0, 1, 1, 1, 2}}
	for u := range uint32(4) {
		for v := uint32(4); v < 8; v++ {
			g.Src, g.Dst = append(g.Src, u), append(g.Dst, v)
		}
	}
	for _, c := range []struct {
		limit  int
		passes float64
		want   Time
	}{
		// The three sums of host 1 leave with the last row, one after the other, 5 to 8 us, and take 1 us more.
		{4, 0, 9 * Microsecond},
		// Without aggregators each row passes on as it is: the last leaves at 5 us.
		{0, 0, 7 * Microsecond},
		// With passes of 1/4 us four aggregators take 1 us per row.
		{4, 4e6, 10 * Microsecond},
		// Three aggregators: host 2 receives four rows, and host 1 the sums.
		{3, 0, 9 * Microsecond},
	} {
		if got, err := strawmanTime(top, g, c.limit, 3, 1, c.passes); err != nil || got != c.want {
			t.Errorf("%d aggregators, %g passes per second: %v, %v, want %v", c.limit, c.passes, got, err, c.want)
		}
	}
}
