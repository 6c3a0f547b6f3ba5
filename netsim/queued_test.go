package netsim

import "testing"

// TestQueuedGroups: packets of two groups that wait at one port, counted by hand. The switch has eight packets of 1 us
// from each of two hosts, from 2 us on. Packets wait at 3 us to 17 us, where a sample counts what is there before what
// happens then: one packet at the first and the last of these, packets of both hosts in between. The packet of a third
// group does not wait.
func TestQueuedGroups(t *testing.T) {
	n := network(t, "packet", "star hosts=3 rate=8Gbps delay=1us payload=1000B header=0B control=none").(*Packets)
	n.CountGroups(Microsecond)
	for from, group := range []uint32{7, 9} {
		Begin(n, &Transfer{From: from, To: 2, Bytes: 8000, Group: group})
	}
	Begin(n, &Transfer{From: 2, To: 0, Bytes: 1000, Group: 8})
	Run(n, Never-1)
	want := QueuedGroups{Samples: 19, Leaf: QueuedTier{Mean: 28. / 19, Most: 2, Used: 15. / 57, Shared: 13. / 57}}
	if got := *n.QueuedGroups(); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for i := range n.ports {
		if len(n.ports[i].groups) != 0 {
			t.Errorf("%s has %v at the end", n.name(int32(i)), n.ports[i].groups)
		}
	}
}
