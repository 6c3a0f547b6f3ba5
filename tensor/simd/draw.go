package simd

// The constants of dropout's hash; package tensor's dropout.go tells what it is.
const (
	drawGolden = 0x9e3779b97f4a7c15
	drawC0     = 0x9e3779b1
	drawC1     = 0x7feb352d
	drawC2     = 0x846ca68b
	drawSrc    = 0x85ebca6b
	drawHead   = 0xc2b2ae35
)

// HalfDropped is the threshold of a dropout that takes one bit a number.
const HalfDropped = 1 << 15

// RowBits are those of a block of 64 columns of a row with vertex id; RowKey is the key of the row's draws.
func RowBits(key uint64, id, block uint32) uint64 {
	z := key + (uint64(block)<<32+uint64(id)+1)*drawGolden
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func RowKey(key uint64, id uint32) uint64 { return RowBits(key, id, 0) }

// Draw is that of a row with this key for a column.
func Draw(key uint64, column uint32) uint16 {
	return uint16(drawHash(key, column/2) >> (column % 2 * 16))
}

// AttentionDraw is that of a destination with this key for a source and a head.
func AttentionDraw(key uint64, source uint32, head int) uint16 {
	return uint16(drawHash(key, source*drawSrc+uint32(head)*drawHead) >> 16)
}

// drawHash is two draws of a row with this key.
func drawHash(key uint64, pair uint32) uint32 {
	x := uint32(key) + pair*drawC0
	x = (x ^ x>>16) * drawC1
	return (x ^ x>>15 ^ uint32(key>>32)) * drawC2
}
