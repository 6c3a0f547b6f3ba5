package simd

// Ascending says whether each number of a list is less than the next.
func Ascending(l Level, list []uint32) bool {
	done := 0
	if n := (len(list) - 1) / 16 * 16; l >= AVX512 && n > 0 {
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

// Below says whether all numbers of a list are less than n.
func Below(l Level, list []uint32, n uint32) bool {
	done := 0
	if k := len(list) / 16 * 16; l >= AVX512 && k > 0 {
		if !belowFast(&list[0], k, n) {
			return false
		}
		done = k
	}
	for _, v := range list[done:] {
		if v >= n {
			return false
		}
	}
	return true
}
