package paths

import (
	"net/netip"
	"testing"
)

// TestAttachedIsAFile: what probe writes is what Parse reads.
func TestAttachedIsAFile(t *testing.T) {
	f := Attached([]Attachment{{netip.MustParsePrefix("10.0.1.0/24"), 125e6, 1e-4},
		{netip.MustParsePrefix("10.0.2.0/24"), 37.5e6, 2e-4}})
	again, err := Parse([]byte(f.YAML()))
	if err != nil {
		t.Fatalf("%v\n%s", err, f.YAML())
	}
	want, got := NewPlan(f), NewPlan(again)
	for i, w := range want.Types[0].Choices {
		if g := got.Types[0].Choices[i]; !near(g.Base, w.Base) || !near(g.Network, w.Network) || g.Path != w.Path {
			t.Errorf("%+v, want %+v", g, w)
		}
	}
	if got := again.Paths[1].Address; got != "10.0.2.0/24" {
		t.Errorf("address %s", got)
	}
}
