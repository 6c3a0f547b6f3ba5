package wire

import (
	"strings"
	"testing"
)

// TestACauseIsText: what a peer sends as the cause of a failure is shown on terminals, so it is text. Where it is the
// rank itself that is said to have failed, its error names the peer that says so, and not as one that lies.
func TestACauseIsText(t *testing.T) {
	for _, c := range []struct {
		of   uint32
		text string
		want string
	}{
		{2, "its disk\nis full", "rank 2 failed: its disk\nis full"},
		{2, "\x1b]0;title\a", "is no text"},
		{2, "\xff\xfe", "is no text"},
		{0, "rank 2 lost rank 0", "rank 0 failed: rank 1 reports: rank 2 lost rank 0"},
		{7, "its disk is full", "a failure of rank 7"},
	} {
		ends := NewGroup(3, DefaultOptions())
		in := ends[0].(*endpoint).inbox
		if err := in.Ended(&Header{Frame: FrameFailure, From: 1, Key: Key{Step: c.of}}, []byte(c.text)); err != nil {
			in.PeerLost(1, err)
		}
		if err := ends[0].Err(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.text, err, c.want)
		}
		ends[0].Close()
	}
}
