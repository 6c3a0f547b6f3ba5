package cost

import (
	"strings"
	"testing"
)

// Rates that would make the seconds of a plan infinite, or no number, are refused by name.
func TestAbsurdRatesAreRefused(t *testing.T) {
	for name, change := range map[string]func(*Known){
		"compute.Int8":             func(k *Known) { k.Compute.Int8 = 1e-320 },
		"compute.BF16":             func(k *Known) { k.Compute.BF16 = 1e-300 },
		"compute.Send":             func(k *Known) { k.Compute.Send = -1 },
		"compute.Recv":             func(k *Known) { k.Compute.Recv = 1e300 },
		"compute.Message":          func(k *Known) { k.Compute.Message = 1e300 },
		"inside.bytes_per_second":  func(k *Known) { k.Inside.Rate = 1e-310 },
		"between.bytes_per_second": func(k *Known) { k.Between.Rate = 0.5 },
		"servers 0 and 1":          func(k *Known) { k.Links = []ServerLink{{A: 0, B: 1, Link: Link{Rate: 1e-310}}} },
	} {
		k := known()
		change(k)
		if _, err := ParseKnown(k.Text()); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	k := known()
	k.Compute.Int8, k.Compute.BF16, k.Compute.Send, k.Between.Rate = 0, 0, 0, 0
	if _, err := ParseKnown(k.Text()); err != nil {
		t.Errorf("rates that are not known: %v", err)
	}
}
