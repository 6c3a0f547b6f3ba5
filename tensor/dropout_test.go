package tensor

import (
	"math"
	"testing"
)

// TestDrawsAreEven looks at the draws of many rows: each column keeps what P says, and any two columns of a row
// keep independently of each other, halves of one hash and different hashes alike.
func TestDrawsAreEven(t *testing.T) {
	const rows, cols = 1 << 16, 32
	for _, p := range []float32{0.1, 0.5, 0.6} {
		d := Dropout{P: p, Key: 11}
		keep := 1 / d.scale()
		var kept [cols]float64
		var both [cols][cols]float64
		for i := range rows {
			key, on := rowKey(d.Key, d.id(i)), [cols]bool{}
			for j := range on {
				on[j] = draw(key, uint32(j)) >= d.threshold()
				if !on[j] {
					continue
				}
				kept[j]++
				for k := range j {
					if on[k] {
						both[k][j]++
					}
				}
			}
		}
		even := func(what string, j, k int, count, share float64) {
			if z := (count - rows*share) / math.Sqrt(rows*share*(1-share)); math.Abs(z) > 5 {
				t.Errorf("P %g: %s %d, %d: %g of %d rows, %.1f deviations from %g", p, what, j, k, count, rows, z, rows*share)
			}
		}
		for j := range cols {
			even("column", j, j, kept[j], keep)
			for k := range j {
				even("columns", k, j, both[k][j], keep*keep)
			}
		}
	}
}

func TestDropoutRounding(t *testing.T) {
	for _, c := range []struct {
		p         float32
		threshold uint16
	}{{0.5, 1 << 15}, {0.25, 1 << 14}, {0.6, 39322}, {1e-6, 0}, {0.9999999, 0xffff}} {
		d := Dropout{P: c.p}
		if got, scale := d.threshold(), 0x1p16/(0x1p16-float64(c.threshold)); got != c.threshold || d.scale() != scale {
			t.Errorf("P %g: threshold %d, scale %g; want %d, %g", c.p, got, d.scale(), c.threshold, scale)
		}
	}
}
