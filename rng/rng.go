// Package rng gives random numbers that are pure functions of a key.
//
// Every draw in Starling (initial weights, dropout, samples, shuffles,
// generated graphs) is keyed by what it is for: seed, epoch, batch, layer,
// vertex. It never depends on the rank, the thread or the order in which draws
// are made, so eight workers draw what one worker draws, and a resumed run
// draws what an uninterrupted one would have.
//
// A Key is 64 bits. Fold derives a child key from a parent and a word; draw i
// of a key is a strong mix of the key and i. Both use a finaliser of two
// multiplications and three xor-shifts, which passes the usual statistical
// batteries when it is fed a counter.
package rng

import (
	"math"
	"math/bits"
)

// Key names a stream of draws. The zero Key is valid.
type Key uint64

const golden = 0x9e3779b97f4a7c15 // 2^64 over the golden ratio: spreads counters over the word

// New makes the root key of a run from the user's seed.
func New(seed uint64) Key { return Key(mix(seed + golden)) }

// Fold derives the key for a part of what k names: New(seed).Fold(epoch).Fold(layer).
// Order matters, so Fold(a).Fold(b) and Fold(b).Fold(a) are unrelated.
func (k Key) Fold(word uint64) Key {
	return Key(mix(uint64(k)*0xd6e8feb86659fd93 + mix(word+golden)))
}

// Uint64 is draw i of the stream, uniform over all words.
func (k Key) Uint64(i uint64) uint64 { return mix(uint64(k) + i*golden) }

// Uint32 is draw i, uniform over 32 bits.
func (k Key) Uint32(i uint64) uint32 { return uint32(k.Uint64(i) >> 32) }

// Float64 is draw i, uniform in [0,1).
func (k Key) Float64(i uint64) float64 { return float64(k.Uint64(i)>>11) * 0x1p-53 }

// Float32 is draw i, uniform in [0,1).
func (k Key) Float32(i uint64) float32 { return float32(k.Uint64(i)>>40) * 0x1p-24 }

// IntN is draw i, uniform in [0,n). The multiply-shift reduction is biased by
// less than n/2^64. It panics if n <= 0.
func (k Key) IntN(i uint64, n int) int {
	if n <= 0 {
		panic("rng: IntN needs n > 0")
	}
	hi, _ := bits.Mul64(k.Uint64(i), uint64(n))
	return int(hi)
}

// Normal is draw i from the standard normal distribution (Box and Muller's
// transform; it uses draws 2i and 2i+1).
func (k Key) Normal(i uint64) float64 {
	u := 1 - k.Float64(2*i) // in (0,1], so that the logarithm is finite
	v := k.Float64(2*i + 1)
	return math.Sqrt(-2*math.Log(u)) * math.Cos(2*math.Pi*v)
}

// Perm returns a permutation of 0..n-1 (Fisher and Yates).
func (k Key) Perm(n int) []uint32 {
	p := make([]uint32, n)
	for i := range p {
		p[i] = uint32(i)
	}
	for i := n - 1; i > 0; i-- {
		j := k.IntN(uint64(i), i+1)
		p[i], p[j] = p[j], p[i]
	}
	return p
}

// mix is a bijection of 64-bit words in which every input bit reaches every output bit.
func mix(z uint64) uint64 {
	z ^= z >> 30
	z *= 0xbf58476d1ce4e5b9
	z ^= z >> 27
	z *= 0x94d049bb133111eb
	return z ^ z>>31
}
