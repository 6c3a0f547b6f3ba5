package tcp

import (
	"testing"

	"starling/wire/wiretest"
)

// TestConformance runs what every transport must pass, and sees that it leaves nothing behind.
func TestConformance(t *testing.T) {
	for _, tr := range []wiretest.Transport{
		{Name: "tcp", Open: openTCP},
		{Name: "classes", Open: openClasses},
		{Name: "shm", Open: openMemory},
		{Name: "rings", Open: openRings},
	} {
		tr.Streams, tr.Around = true, wiretest.Checked
		t.Run("transport="+tr.Name, func(t *testing.T) { wiretest.Run(t, tr) })
	}
}
