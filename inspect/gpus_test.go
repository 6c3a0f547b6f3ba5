package inspect

import (
	"fmt"
	"strings"
	"testing"

	"starling/tensor/cuda"
)

// TestInfoCards: an estimate names each GPU of the host, and whether the run fits what is free there.
func TestInfoCards(t *testing.T) {
	var out strings.Builder
	e := &Estimate{OnCard: 3 << 30, Cards: []cuda.Info{{Name: "Large", Free: 4 << 30}, {Name: "Small", Free: 2 << 30}}}
	e.showGPUs(func(name, format string, args ...any) { fmt.Fprintf(&out, name+": "+format+"\n", args...) })
	want := "  cuda:0: 3.0 GiB on Large; 4.0 GiB free, it fits\n" +
		"  cuda:1: 3.0 GiB on Small; 2.0 GiB free, it does not fit: starling train with this --device says what would\n"
	if out.String() != want {
		t.Errorf("found\n%swant\n%s", out.String(), want)
	}
}
