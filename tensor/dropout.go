package tensor

import "math"

// Dropout's draws. A draw must be the same on any worker, thread and device, and
// cost less than the memory it decides about. What is dropped is P to the nearest
// 1/65536, and never all: threshold is P·2^16 rounded. What is kept is scaled by the
// inverse of that.
//
// A half, what most models drop, takes one bit a number, so that 64 columns take one
// hash: column j is kept where bit j mod 64 of the row's block j div 64 is set,
//
//	bits(block) = mix(key + (2^32·block + id+1)·2^64/φ)
//
// Any other P takes 16 bits, two of a 32-bit hash that vector units compute sixteen at
// a time, and a number is kept when its draw is at least threshold:
//
//	k     = bits(0)                              64 bits, once a row
//	x     = low(k) + pair·c0
//	x     = (x ^ x>>16)·c1
//	hash  = (x ^ x>>15 ^ high(k))·c2
//
// The draws of columns 2i and 2i+1 are the lower and the upper half of the hash of
// pair i. Attention coefficients take 16 bits whatever P is.
const (
	dropGolden = 0x9e3779b97f4a7c15
	dropC0     = 0x9e3779b1
	dropC1     = 0x7feb352d
	dropC2     = 0x846ca68b
	// Attention draws for (destination, source, head) are the upper half of the hash of
	// pair = source·attendSrc + head·attendHead.
	attendSrc  = 0x85ebca6b
	attendHead = 0xc2b2ae35
)

// rowBits are those of a block of 64 columns of one row; rowKey is the key of a row's draws.
func rowBits(key uint64, id, block uint32) uint64 {
	z := key + (uint64(block)<<32+uint64(id)+1)*dropGolden
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func rowKey(key uint64, id uint32) uint64 { return rowBits(key, id, 0) }

// dropHash is the hash of a pair for a row with key k.
func dropHash(k uint64, pair uint32) uint32 {
	x := uint32(k) + pair*dropC0
	x = (x ^ x>>16) * dropC1
	return (x ^ x>>15 ^ uint32(k>>32)) * dropC2
}

// draw is the draw of a row with key k for a column.
func draw(k uint64, column uint32) uint16 {
	return uint16(dropHash(k, column/2) >> (column % 2 * 16))
}

// attentionDraw is the draw of a destination with key k for a source and a head.
func attentionDraw(k uint64, source uint32, head int) uint16 {
	return uint16(dropHash(k, source*attendSrc+uint32(head)*attendHead) >> 16)
}

// half is the threshold of what takes one bit a number.
const half = 1 << 15

// rowDraws are the draws of one row.
type rowDraws struct {
	key, own uint64 // the dropout's key and the row's
	id       uint32
	least    uint16
}

// anyRow has yet to be told which row, by of.
func (d Dropout) anyRow() rowDraws { return rowDraws{key: d.Key, least: d.threshold()} }

func (d Dropout) row(i int) rowDraws { return d.anyRow().of(d.id(i)) }

// of are the draws of the row with an id.
func (r rowDraws) of(id uint32) rowDraws {
	r.id, r.own = id, rowKey(r.key, id)
	return r
}

func (r rowDraws) keeps(column uint32) bool {
	switch {
	case r.least != half:
		return draw(r.own, column) >= r.least
	case column < 64:
		return r.own>>column&1 != 0
	}
	return rowBits(r.key, r.id, column/64)>>(column%64)&1 != 0
}

// threshold is the least draw that keeps a number; scale is what kept ones are multiplied by.
func (d Dropout) threshold() uint16 { return uint16(min(math.Round(float64(d.P)*0x1p16), 0xffff)) }

func (d Dropout) scale() float64 { return 0x1p16 / (0x1p16 - float64(d.threshold())) }

// id is the vertex id of row i.
func (d Dropout) id(i int) uint32 {
	if d.IDs.v != nil {
		return d.IDs.v[i]
	}
	return d.First + uint32(i)
}
