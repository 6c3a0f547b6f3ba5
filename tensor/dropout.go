package tensor

import (
	"math"

	"starling/tensor/draw"
)

// Dropout's draws. A draw must be the same on any worker, thread and device, and
// cost less than the memory it decides about. What is dropped is P to the nearest
// 1/65536, and never all: threshold is P·2^16 rounded. What is kept is scaled by the
// inverse of that.
//
// A half, what most models drop, takes one bit per number, so that 64 columns take one
// hash: column j is kept where bit j mod 64 of the row's block j div 64 is set,
//
//	bits(block) = mix(key + (2^32·block + id+1)·2^64/φ)
//
// Any other P takes 16 bits, two of a 32-bit hash that vector units compute sixteen at
// a time, and a number is kept when its draw is at least threshold:
//
//	k     = bits(0)                              64 bits, once per row
//	x     = low(k) + pair·c0
//	x     = (x ^ x>>16)·c1
//	hash  = (x ^ x>>15 ^ high(k))·c2
//
// The draws of columns 2i and 2i+1 are the lower and the upper half of the hash of
// pair i. Attention coefficients take 16 bits whatever P is: the draw for (destination,
// source, head) is the upper half of the hash of pair = source·cs + head·ch. Hashes and
// constants are in package draw.

// Draws are the draws of one row.
type Draws struct {
	key, own uint64 // the dropout's key and the row's
	id       uint32
	least    uint16
}

// Draws are the draws of a row that Of has yet to name.
func (d Dropout) Draws() Draws { return Draws{key: d.Key, least: d.Threshold()} }

// Of are the draws of the row with an id.
func (r Draws) Of(id uint32) Draws {
	r.id, r.own = id, draw.RowKey(r.key, id)
	return r
}

// Keeps reports whether the number of a column is kept.
func (r Draws) Keeps(column uint32) bool {
	switch {
	case r.least != draw.Half:
		return draw.Column(r.own, column) >= r.least
	case column < 64:
		return r.own>>column&1 != 0
	}
	return draw.RowBits(r.key, r.id, column/64)>>(column%64)&1 != 0
}

// Threshold is the least draw that keeps a number; Scale is what kept ones are multiplied by.
func (d Dropout) Threshold() uint16 { return uint16(min(math.Round(float64(d.P)*0x1p16), 0xffff)) }

func (d Dropout) Scale() float64 { return 0x1p16 / (0x1p16 - float64(d.Threshold())) }
