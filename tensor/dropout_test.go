package tensor

import (
	"math"
	"math/bits"
	"testing"

	"starling/tensor/draw"
)

// evenly fails unless count is a share of draws, to five deviations.
func evenly(t *testing.T, count, draws, share float64, format string, what ...any) {
	t.Helper()
	if z := (count - draws*share) / math.Sqrt(draws*share*(1-share)); math.Abs(z) > 5 {
		t.Errorf(format+": %g of %g, %.1f deviations from %g", append(what, count, draws, z, draws*share)...)
	}
}

// TestDrawsAreEven looks at the draws of many rows: each column keeps what P says, and any two columns of a row
// keep independently of each other, halves of one hash and different hashes alike.
func TestDrawsAreEven(t *testing.T) {
	const rows, cols = 1 << 16, 32
	for _, p := range []float32{0.1, 0.4999, 0.6} {
		d := Dropout{P: p, Key: 11}
		keep := 1 / d.Scale()
		var kept [cols]float64
		var both [cols][cols]float64
		for i := range rows {
			draws, on := RowDraws(d, i), [cols]bool{}
			for j := range on {
				on[j] = draws.Keeps(uint32(j))
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
		for j := range cols {
			evenly(t, kept[j], rows, keep, "P %g: column %d", p, j)
			for k := range j {
				evenly(t, both[k][j], rows, keep*keep, "P %g: columns %d and %d", p, k, j)
			}
		}
	}
}

// TestBitsAreEven tests dropout of a half, where each bit of a hash decides a number: any bit is set
// half of the time, and is as
// any other of its block, of other blocks and of the next row in as many rows as not.
func TestBitsAreEven(t *testing.T) {
	const rows = 1 << 16
	others := []struct{ row, block uint32 }{{0, 0}, {0, 1}, {0, 3}, {1, 0}, {1, 1}}
	for _, key := range []uint64{0, 11, 1 << 63} {
		var set [64]float64
		var same [5][64][64]float64
		for i := uint32(0); i < rows; i += 64 {
			here := bitsOf64(key, i, 0)
			for j, x := range here {
				set[j] += float64(bits.OnesCount64(x))
			}
			for n, o := range others {
				for k, there := range bitsOf64(key, i+o.row, o.block) {
					for j, x := range here {
						same[n][j][k] += float64(bits.OnesCount64(^(x ^ there)))
					}
				}
			}
		}
		for j := range 64 {
			evenly(t, set[j], rows, 0.5, "key %d: bit %d", key, j)
			for n, o := range others {
				for k := range 64 {
					if n > 0 || k != j {
						evenly(t, same[n][j][k], rows, 0.5, "key %d: bit %d as bit %d of block %d, %d rows on", key, j,
							k, o.block, o.row)
					}
				}
			}
		}
	}
}

// bitsOf64 are the bits of a block of 64 rows, each bit's of all rows side by side.
func bitsOf64(key uint64, id, block uint32) (transposed [64]uint64) {
	for i := range uint32(64) {
		for j, x := 0, draw.RowBits(key, id+i, block); j < 64; j++ {
			transposed[j] |= x >> j & 1 << i
		}
	}
	return transposed
}

// TestHalfTakesABit: column j of a row is bit j%64 of its block j/64, also of the last ids there are.
func TestHalfTakesABit(t *testing.T) {
	d := Dropout{P: 0.5, Key: 5, First: 1<<32 - 4}
	for i := range 4 {
		for j := range uint32(200) {
			z := d.Key + (uint64(d.First)+uint64(i)+1+uint64(j/64)<<32)*0x9e3779b97f4a7c15
			z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
			z = (z ^ z>>27) * 0x94d049bb133111eb
			if want := (z^z>>31)>>(j%64)&1 == 1; RowDraws(d, i).Keeps(j) != want {
				t.Fatalf("row %d, column %d: kept %t, want %t", i, j, !want, want)
			}
		}
	}
}

// TestOtherSharesTake16Bits: two columns share a hash of 32 bits, whose upper half coefficients take.
func TestOtherSharesTake16Bits(t *testing.T) {
	hash := func(k uint64, pair uint32) uint32 {
		x := uint32(k) + pair*0x9e3779b1
		x = (x ^ x>>16) * 0x7feb352d
		return (x ^ x>>15 ^ uint32(k>>32)) * 0x846ca68b
	}
	head, headFactor := uint32(3), uint32(0xc2b2ae35)
	d := Dropout{P: 0.3, Key: 5, First: 1<<32 - 4}
	for i := range 4 {
		k := draw.RowBits(d.Key, d.First+uint32(i), 0)
		for j := range uint32(200) {
			bits := uint16(hash(k, j/2) >> (16 * (j % 2)))
			if want := bits >= d.Threshold(); RowDraws(d, i).Keeps(j) != want {
				t.Fatalf("row %d, column %d: kept %t, want %t", i, j, !want, want)
			}
			bits = uint16(hash(k, j*0x85ebca6b+headFactor*head) >> 16)
			if want := bits >= d.Threshold(); keepsEdge(k, j, int(head), d) != want {
				t.Fatalf("destination %d, source %d: kept %t, want %t", i, j, !want, want)
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
		if got, scale := d.Threshold(), 0x1p16/(0x1p16-float64(c.threshold)); got != c.threshold || d.Scale() != scale {
			t.Errorf("P %g: threshold %d, scale %g; want %d, %g", c.p, got, d.Scale(), c.threshold, scale)
		}
	}
}

// keepsEdge reports whether the coefficient of a source is kept by a destination with this key.
func keepsEdge(key uint64, source uint32, head int, d Dropout) bool {
	return draw.Attention(key, source, head) >= d.Threshold()
}
