package tensor

// Dropout's draws. A draw must be the same on any worker, thread and device, and
// cost less than the memory it decides about, so it is a 32-bit hash that vector
// units compute sixteen at a time:
//
//	k     = mix(key + (id+1)·2^64/φ)             64 bits, once a row
//	x     = low(k) + column·c0
//	x     = (x ^ x>>16)·c1
//	x     = (x ^ x>>15 ^ high(k))·c2
//	draw  = x ^ x>>16
//
// A number is kept when draw >= P·2^32.
const (
	dropGolden = 0x9e3779b97f4a7c15
	dropC0     = 0x9e3779b1
	dropC1     = 0x7feb352d
	dropC2     = 0x846ca68b
	// Attention draws for (destination, source, head) use column = source·attendSrc + head·attendHead.
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

// draw is the draw of a row with key k for a column.
func draw(k uint64, column uint32) uint32 {
	x := uint32(k) + column*dropC0
	x = (x ^ x>>16) * dropC1
	x = (x ^ x>>15 ^ uint32(k>>32)) * dropC2
	return x ^ x>>16
}

// threshold is the least draw that keeps a number; scale is what kept ones are multiplied by.
func (d Dropout) threshold() uint32 { return uint32(min(float64(d.P)*0x1p32, 0xffffffff)) }

func (d Dropout) scale() float64 { return 1 / (1 - float64(d.P)) }

// id is the vertex id of row i.
func (d Dropout) id(i int) uint32 {
	if d.IDs.v != nil {
		return d.IDs.v[i]
	}
	return d.First + uint32(i)
}
