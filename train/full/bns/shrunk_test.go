package bns

import (
	"math"
	"testing"
)

// TestShrunkMissesLeast: of rows with √F in common, kept ones with the shrunk scale are nearest to
// the sum of all, over all draws. One row counts as it is, and where all are kept so does
// each.
func TestShrunkMissesLeast(t *testing.T) {
	rows := []float64{1, 1, 1, 3 - math.Sqrt(12)} // (Σz)² = √4·Σz²
	for _, p := range []float64{0.05, 0.1, 0.5, 0.9} {
		s := shrunk(p, float64(len(rows)))
		if least := missed(rows, p, s); missed(rows, p, s*0.99) <= least || missed(rows, p, s*1.01) <= least {
			t.Errorf("p %g: scale %g is not the best", p, s)
		}
		if one := shrunk(p, 1); math.Abs(one-1) > 1e-12 {
			t.Errorf("p %g: a single neighbour counts %g", p, one)
		}
	}
	for _, remote := range []float64{1, 2, 1000} {
		if all := shrunk(1, remote); all != 1 {
			t.Errorf("%g neighbours that all come count %g", remote, all)
		}
	}
}

// missed is the mean square by which s times the sum of kept rows misses that of all.
func missed(rows []float64, p, s float64) (mean float64) {
	for mask := range 1 << len(rows) {
		off, chance := 0.0, 1.0
		for i, z := range rows {
			if mask>>i&1 == 1 {
				off, chance = off+s*z, chance*p
			} else {
				chance *= 1 - p
			}
			off -= z
		}
		mean += chance * off * off
	}
	return mean
}
