package sample

import (
	"math"
	"testing"

	"starling/graph"
)

// TestLocality against counts by hand: a path 0-1-2-3-4-5 of which 0, 1 and 2 have one owner, two layers
// with all neighbours, seeds 1 and 3.
//
//	micrograph of 1: {1, 0, 2, 3}, of which 0 and 2 are with it   2 of 4
//	micrograph of 3: {3, 2, 4, 1, 5}, of which 4 and 5 are        2 of 5
//	subgraph: all six, of which two others are with either        2 of 6, twice
func TestLocality(t *testing.T) {
	g := &graph.CSR{Indptr: []int64{0, 1, 3, 5, 7, 9, 10}, Indices: []uint32{1, 0, 2, 1, 3, 2, 4, 3, 5, 4}}
	n := &Neighbour{Graph: g, SeedVertices: []uint32{1, 3}, Size: 2, Fanouts: []int{All, All}}
	method, err := n.Prepare()
	if err != nil {
		t.Fatal(err)
	}
	var b Batch
	method.Sampler().Sample(&b, 0, 0)
	var l Locality
	l.Add(&b, func(v uint32) int { return int(v / 3) })
	if math.Abs(l.Micro()-4.0/9) > 1e-12 || math.Abs(l.Sub()-4.0/12) > 1e-12 || l.Seeds != 2 {
		t.Errorf("R_micro %g, R_sub %g of %d seeds, want 4/9, 1/3 and 2", l.Micro(), l.Sub(), l.Seeds)
	}
}
