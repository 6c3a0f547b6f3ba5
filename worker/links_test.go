package worker

import (
	"errors"
	"testing"

	"starling/cluster"
	"starling/wire/paths"
)

// TestLinkText: a path is named with its two ranks, or with the peer's address if no rank has it.
func TestLinkText(t *testing.T) {
	m := &cluster.Member{Rank: 2, Peers: []cluster.Peer{{Rank: 0, Addr: "10.0.0.1:7"}, {Rank: 1, Addr: "10.0.0.2:7"}}}
	for c, want := range map[paths.Change]string{
		{Peer: "10.0.0.2:7", Path: "two", Cause: errors.New("it was silent for 800ms")}: "path two between rank 2 and " +
			"rank 1 was lost: it was silent for 800ms; the other paths carry its bytes",
		{Peer: "10.0.0.2:7", Path: "two"}: "path two between rank 2 and rank 1 is back",
		{Peer: "10.0.0.9:7", Path: "one"}: "path one between rank 2 and 10.0.0.9:7 is back",
	} {
		if got := linkText(m, c); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
