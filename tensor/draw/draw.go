// Package draw has the random draws of dropout: pure functions of a key, a vertex id and a
// column, the same on every device. tensor.Dropout says what they decide.
package draw

// The constants of the hash, for devices that compute it themselves.
const (
	Golden = 0x9e3779b97f4a7c15
	C0     = 0x9e3779b1
	C1     = 0x7feb352d
	C2     = 0x846ca68b
	Source = 0x85ebca6b
	Head   = 0xc2b2ae35
)

// Half is the threshold of a dropout that takes one bit per number.
const Half = 1 << 15

// RowBits draws the bits of a block of 64 columns, for the row of a vertex id.
func RowBits(key uint64, id, block uint32) uint64 {
	z := key + (uint64(block)<<32+uint64(id)+1)*Golden
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// RowKey is the key of a row's draws.
func RowKey(key uint64, id uint32) uint64 { return RowBits(key, id, 0) }

// Column is the draw of a row with this key for a column.
func Column(key uint64, column uint32) uint16 {
	return uint16(hash(key, column/2) >> (column % 2 * 16))
}

// Attention is the draw of a destination with this key for a source and a head.
func Attention(key uint64, source uint32, head int) uint16 {
	return uint16(hash(key, source*Source+uint32(head)*Head) >> 16)
}

// hash is two draws of a row with this key.
func hash(key uint64, pair uint32) uint32 {
	x := uint32(key) + pair*C0
	x = (x ^ x>>16) * C1
	return (x ^ x>>15 ^ uint32(key>>32)) * C2
}
