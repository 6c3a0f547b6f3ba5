package simd

// Ascending says whether each number of a list is less than the next.
func Ascending(l Level, list []uint32) bool {
	done := 0
	if n := (len(list) - 1) / 64 * 64; l >= AVX512 && n > 0 {
		if !ascendingFast(&list[0], n) {
			return false
		}
		done = n
	}
	for i := done; i+1 < len(list); i++ {
		if list[i] >= list[i+1] {
			return false
		}
	}
	return true
}
