package collective

import "unsafe"

// hugePage is the size from which scratch memory is asked for in huge pages. Through
// it goes everything that is summed, and with small pages a fifth of the time of
// reading it from another process went into finding them.
const hugePage = 2 << 20

// newRoom is new scratch memory, aligned for any number.
func newRoom(bytes int) []byte {
	if bytes < hugePage/2 {
		raw := make([]float64, (bytes+7)/8)
		return unsafe.Slice((*byte)(unsafe.Pointer(&raw[0])), bytes)
	}
	whole := (bytes + hugePage - 1) &^ (hugePage - 1)
	raw := make([]byte, whole+hugePage)
	skip := int(-uintptr(unsafe.Pointer(&raw[0])) & (hugePage - 1))
	raw = raw[skip : skip+whole]
	adviseHuge(raw)
	return raw[:bytes:bytes]
}
