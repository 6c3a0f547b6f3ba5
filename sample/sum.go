package sample

import (
	"math"
	"math/bits"
)

// Sum adds numbers from 0 to 2^64 in fixed point, 64 bits before the point and 64 after it, so
// that it does not depend on their order: the parts of a graph get the sum of the whole.
type Sum struct{ Whole, Fraction uint64 }

// Add adds a number.
func (s *Sum) Add(x float64) {
	whole, fraction := math.Modf(x)
	s.AddSum(Sum{uint64(whole), uint64(fraction * 0x1p64)})
}

// AddSum adds another sum.
func (s *Sum) AddSum(o Sum) {
	var carry uint64
	s.Fraction, carry = bits.Add64(s.Fraction, o.Fraction, 0)
	s.Whole += o.Whole + carry
}

// Float64 is the sum, rounded.
func (s Sum) Float64() float64 { return float64(s.Whole) + float64(s.Fraction)*0x1p-64 }
