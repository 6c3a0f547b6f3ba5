package simd

import "unsafe"

// ClearNonTemporal zeroes b by non-temporal stores, for what will not be read soon: a line that is
// written whole is not fetched first, which is half of what zeroing costs. StoreFence must follow,
// once for many pieces: to wait for each costs more than to zero a few rows.
func ClearNonTemporal(l Level, b []byte) {
	head := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & 63)
	lines := (len(b) - head) / 64
	if l < AVX512 || lines <= 0 {
		clear(b)
		return
	}
	clear(b[:head])
	clearLines(&b[head], lines)
	clear(b[head+64*lines:])
}
