package innet

import (
	"math"
	"math/bits"
)

// Fixed point. Hosts agree on an exponent e with |x| < 2^e for all their numbers, and send
//
//	q = round(x · 2^shift)        shift = 31 - e - headroom
//
// The headroom is the bits that the largest count of rows can add to a sum, but at most
// maxHeadroom: a sum beyond that many bits is the Overflow of its aggregator, and its host
// adds the rows itself. So few vertices with very many neighbours do not cost all others
// their resolution.
const maxHeadroom = 10

// Values that done packets of an opening round carry.
const (
	allZero   = 0
	exponent0 = 1200 // stands for 2^0
	notFinite = math.MaxUint16
)

// exponentOf is the value that stands for the exponent of numbers whose largest magnitude is
// most.
func exponentOf(most float64) uint16 {
	if math.IsNaN(most) || math.IsInf(most, 0) {
		return notFinite
	}
	if most == 0 {
		return allZero
	}
	_, e := math.Frexp(most) // most < 2^e
	return uint16(exponent0 + e)
}

// shiftOf is the number of fractional bits where exponentOf is value and at most need rows
// are added.
func shiftOf(value uint16, need int) int {
	if value == allZero {
		return 0
	}
	headroom := max(min(bits.Len(uint(max(need-1, 0))), maxHeadroom), 1)
	return 31 - headroom - (int(value) - exponent0)
}

// quantise writes x·2^shift, rounded; lanes beyond x are zero. Numbers fit: see exponentOf.
func quantise(lanes []int32, x []float64, shift int) {
	scale, more := powers(shift)
	at := 0
	if fours := len(x) / 4; canAddUnits && more == 1 && fours > 0 {
		at = 4 * fours
		_ = lanes[at-1]
		quantiseFours(&lanes[0], &x[0], scale, fours)
	}
	for i := at; i < len(x); i++ {
		lanes[i] = int32(math.RoundToEven(x[i] * scale * more))
	}
	clear(lanes[len(x):])
}

// dequantise is the number that each sum stands for.
func dequantise(x []float64, sum []int64, shift int) {
	scale, more := powers(-shift)
	for i := range x {
		x[i] = float64(sum[i]) * scale * more
	}
}

// dequantiseLanes is the same for sums that fit their lanes.
func dequantiseLanes(x []float64, sum []int32, shift int) {
	scale, more := powers(-shift)
	at := 0
	if fours := len(x) / 4; canAddUnits && more == 1 && fours > 0 {
		at = 4 * fours
		_ = sum[at-1]
		numberFours(&x[0], &sum[0], scale, fours)
	}
	for i := at; i < len(x); i++ {
		x[i] = float64(sum[i]) * scale * more
	}
}

// powers are two powers of two whose product is 2^n, which may be out of a float64's range.
func powers(n int) (a, b float64) {
	half := max(min(n, 1000), -1000)
	return math.Ldexp(1, half), math.Ldexp(1, n-half)
}

// Bound is the largest difference between the sum of count numbers and the sum of their fixed-point forms:
// half a unit in the last place for each.
func Bound(count, shift int) float64 { return float64(count) * math.Ldexp(0.5, -shift) }
