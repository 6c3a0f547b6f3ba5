package tensor

import "math"

// Dropout's draws. A draw must be the same on any worker, thread and device, and
// cost less than the memory it decides about, so draws are 16 bits, two of a 32-bit
// hash that vector units compute sixteen at a time:
//
//	k     = mix(key + (id+1)·2^64/φ)             64 bits, once a row
//	x     = low(k) + pair·c0
//	x     = (x ^ x>>16)·c1
//	hash  = (x ^ x>>15 ^ high(k))·c2
//
// The draws of columns 2i and 2i+1 are the lower and the upper half of the hash of
// pair i. A number is kept when its draw is at least threshold, P·2^16 rounded: what
// is dropped is P to the nearest 1/65536, and never all. What is kept is scaled by
// the inverse of that.
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

// rowKey is the key of the draws of one row.
func rowKey(key uint64, id uint32) uint64 {
	z := key + (uint64(id)+1)*dropGolden
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

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
