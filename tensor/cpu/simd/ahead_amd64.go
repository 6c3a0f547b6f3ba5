package simd

// aheadOf is how many bytes of index to look ahead for rows of src: asking
// for rows that are in cache anyway only costs.
func aheadOf(src Strided) int { return aheadFrom(src, 16<<20) }

// attendAhead is aheadOf for attention, whose lists need the core's own cache too: 7,000 rows of 128 bfloat16 numbers,
// 1.8 MB, took 10.6 ns an entry forward and 30 backward without asking, 9.0 and 25 with.
func attendAhead(src Strided) int { return aheadFrom(src, 1<<20) }

func aheadFrom(src Strided, bytes int) int {
	if within(src, bytes) {
		return 0
	}
	return 4 * prefetchEntries
}

func within(src Strided, bytes int) bool { return 4*len(src.F32)+2*len(src.B16) < bytes }

// prefetchEntries is how far ahead source rows are asked for. Bfloat16 rows, which keep
// more instructions waiting for each line, need it most.
const prefetchEntries = 8

// cached is how many numbers are taken to stay in a core's caches.
const cached = 1 << 17
