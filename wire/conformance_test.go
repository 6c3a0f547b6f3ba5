package wire_test

import (
	"testing"
	"testing/synctest"

	"starling/wire"
	"starling/wire/wiretest"
)

// TestConformance runs what every transport must pass, and sees that it leaves nothing behind.
func TestConformance(t *testing.T) {
	checked := func(t *testing.T, test func(t *testing.T)) {
		wire.NoLeaks(t)
		test(t)
	}
	inProcess := func(_ testing.TB, n int, opt wire.Options) []wire.Endpoint { return wire.NewGroup(n, opt) }
	for _, tr := range []wiretest.Transport{
		{Name: "inprocess", Open: inProcess},
		{Name: "tcp", Open: wire.OpenTCP, Streams: true},
		{Name: "classes", Open: wire.OpenClasses, Streams: true},
		{Name: "shm", Open: wire.OpenMemory, Streams: true},
		{Name: "rings", Open: wire.OpenRings, Streams: true},
		{Name: "mpi", Open: wire.OpenFakeMPI, Streams: true},
	} {
		tr.Around = checked
		t.Run("transport="+tr.Name, func(t *testing.T) { wiretest.Run(t, tr) })
	}
	simulated := wiretest.Transport{Name: "simulated", Streams: true, Around: synctest.Test, Open: openSimulated}
	t.Run("transport=simulated", func(t *testing.T) { wiretest.Run(t, simulated) })
}
