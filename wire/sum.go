package wire

import "hash/crc32"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is the CRC32C of b. Loopback moves bytes at the speed of memory, and
// the standard library's checksum took a third of the time of sending there; so
// long blocks are folded with carry-less multiplication where the processor has
// the wide form of it (Gopal and others, "Fast CRC computation for generic
// polynomials using PCLMULQDQ instruction", Intel 2009).
func Checksum(b []byte) uint32 {
	if !canFold || len(b) < foldFrom {
		return crc32.Checksum(b, castagnoli)
	}
	whole := len(b) &^ (foldStep - 1)
	var rest [64]byte // a block with the same checksum as b[:whole]
	fold(&b[0], whole, &rest, &foldBy)
	// rest stands for the register as it is, so nothing is inverted before it.
	return crc32.Update(crc32.Update(^uint32(0), castagnoli, rest[:]), castagnoli, b[whole:])
}

// foldStep is how many bytes are folded at a time: four registers of 64.
const (
	foldStep = 256
	foldFrom = 2 << 10 // below, the library is faster
)

// foldBy are the multipliers that move a 16-byte block forward: by foldStep, then
// by one register. The first of a pair is for the first 8 bytes of the block.
var foldBy = [4]uint64{power(8*foldStep + 63), power(8*foldStep - 1), power(8*64 + 63), power(8*64 - 1)}

// power is x to the n modulo the polynomial, bits reversed, in the upper half.
// Products of reversed numbers come out one bit short, hence the odd exponents above.
func power(n int) uint64 {
	r := uint32(1) << 31 // x^0
	for range n {
		low := r & 1
		r >>= 1
		if low != 0 {
			r ^= crc32.Castagnoli
		}
	}
	return uint64(r) << 32
}
