package wire_test

import (
	"testing"
	"testing/synctest"

	"starling/wire"
	"starling/wire/wiretest"
)

// TestConformance runs what every transport must pass over those of this package.
func TestConformance(t *testing.T) {
	inProcess := func(_ testing.TB, n int, opt wire.Options) []wire.Endpoint { return wire.NewGroup(n, opt) }
	for _, tr := range []wiretest.Transport{
		{Name: "inprocess", Open: inProcess, Around: wiretest.Checked},
		{Name: "simulated", Open: openSimulated, Around: synctest.Test, Streams: true},
	} {
		t.Run("transport="+tr.Name, func(t *testing.T) { wiretest.Run(t, tr) })
	}
}
