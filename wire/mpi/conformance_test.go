package mpi

import (
	"testing"

	"starling/wire/wiretest"
)

// TestConformance runs what every transport must pass, and sees that it leaves nothing behind.
func TestConformance(t *testing.T) {
	wiretest.Run(t, wiretest.Transport{Name: "mpi", Open: openFakeMPI, Streams: true, Around: wiretest.Checked})
}
