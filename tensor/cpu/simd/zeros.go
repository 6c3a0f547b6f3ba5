package simd

import mathbits "math/bits"

// A row without its zeros is a bit a number, in words of 32 from the lowest bit up, and the
// numbers whose bit is set. Numbers are taken in place in memory: -0 is not zero, and NaN
// stays what it is. Vectors do whole words, plain loops the rest.

// word is a number of some size, by its bits.
type word interface{ uint16 | uint32 | uint64 }

// NotZero says which numbers of x are not zero, in (len(x)+31)/32 words of bits.
func NotZero[T word](level Level, bits []uint32, x []T) {
	whole := 0
	if n := len(x) / 32; n > 0 && level >= AVX512 {
		switch x := any(x).(type) {
		case []uint32:
			notZero32Fast(bits[:n], x)
			whole = n
		case []uint16:
			notZero16Fast(bits[:n], x)
			whole = n
		}
	}
	clear(bits[whole : (len(x)+31)/32])
	for i := 32 * whole; i < len(x); i++ {
		if x[i] != 0 {
			bits[i/32] |= 1 << (i % 32)
		}
	}
}

// Compress writes the numbers of x whose bits are set one after the other, and returns how
// many these are. dst holds them.
func Compress[T word](level Level, dst, x []T, bits []uint32) (n int) {
	whole := 0
	if k := len(x) / 32; k > 0 && level >= AVX512 {
		dst = dst[:CountBits(bits)] // which the vectors rely on
		switch x := any(x).(type) {
		case []uint32:
			n, whole = compress32Fast(any(dst).([]uint32), x, bits[:k]), k
		case []uint16:
			n, whole = compress16Fast(any(dst).([]uint16), x, bits[:k]), k
		}
	}
	for w := whole; 32*w < len(x); w++ {
		for m := bits[w]; m != 0; m &= m - 1 {
			dst[n] = x[32*w+mathbits.TrailingZeros32(m)]
			n++
		}
	}
	return n
}

// Expand writes the numbers of x to where bits are set in dst, and zeros elsewhere, and
// returns how many it took.
func Expand[T word](level Level, dst, x []T, bits []uint32) (n int) {
	whole := 0
	if k := len(dst) / 32; k > 0 && level >= AVX512 {
		x = x[:CountBits(bits)] // which the vectors rely on
		switch dst := any(dst).(type) {
		case []uint32:
			n, whole = expand32Fast(dst, any(x).([]uint32), bits[:k]), k
		case []uint16:
			n, whole = expand16Fast(dst, any(x).([]uint16), bits[:k]), k
		}
	}
	clear(dst[32*whole:])
	for w := whole; 32*w < len(dst); w++ {
		for m := bits[w]; m != 0; m &= m - 1 {
			dst[32*w+mathbits.TrailingZeros32(m)] = x[n]
			n++
		}
	}
	return n
}

// CountBits is how many bits are set.
func CountBits(bits []uint32) (n int) {
	for _, m := range bits {
		n += mathbits.OnesCount32(m)
	}
	return n
}
