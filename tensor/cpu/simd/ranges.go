package simd

import "math"

// Ranges has the smallest size other than zero and the largest of rows or columns. Splitting joins those of what it
// splits with what is there, so zeros are the start of all. Of each 32 rows or columns it has 64 words:
//
//	negatives of the bits of the smallest | bits of the largest
//
// Bits of sizes are in the order of sizes. The negative of the smallest is the largest of all, and that of zero is zero:
// joining both is a maximum.
type Ranges []uint32

// RangesSize is how many words ranges of n rows or columns take.
func RangesSize(n int) int { return (n + 31) / 32 * 64 }

// Of is the bits of the smallest and the largest size of row or column i: zeros, where it is all zeros.
func (r Ranges) Of(i int) (low, high uint32) {
	at := i>>5*64 + i&31
	return -r[at], r[at+32]
}

// join takes a number into the range of row or column i.
func (r Ranges) join(i int, x float32) {
	at, size := i>>5*64+i&31, math.Float32bits(x)&^(1<<31)
	r[at], r[at+32] = max(r[at], -size), max(r[at+32], size)
}

// RangeBounds say which ranges are wide: those with a smallest size below Span less than the largest, where that is
// taken to be from Least to Most, and those with a largest not below Top. All are bits of sizes.
type RangeBounds struct{ Least, Most, Span, Top uint32 }

// Wide reports whether a range is.
func (x *RangeBounds) Wide(low, high uint32) bool {
	return low != 0 && low < min(max(high, x.Least), x.Most)-x.Span || high >= x.Top
}

// AnyWide reports whether any range is.
func (r Ranges) AnyWide(level Level, x *RangeBounds) bool {
	if level >= AVX512 && len(r) > 0 {
		return anyWide(&r[0], len(r)/2, x)
	}
	for i := range len(r) / 2 {
		if x.Wide(r.Of(i)) {
			return true
		}
	}
	return false
}

// AnyBelow reports whether the size of one of x is below its limit times factor, or either is
// not a number.
func AnyBelow(level Level, x, limit []float32, factor float32) bool {
	limit = limit[:len(x)]
	if level >= AVX512 && len(x) > 0 {
		return anyBelow(&x[0], &limit[0], len(x), factor)
	}
	for j := range x {
		if Below(x[j], limit[j], factor) {
			return true
		}
	}
	return false
}

// Below is AnyBelow of one number.
func Below(x, limit, factor float32) bool {
	return !(math.Float32frombits(math.Float32bits(x)&^(1<<31)) >= limit*factor)
}
