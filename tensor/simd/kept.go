package simd

// Kept is what a dropout keeps of rows that are narrower than a few vectors: a bit a number, rows one right after
// the other, the first number in the lowest bit. Rows seen as one long row then need no draws of their own (Drop.Bits).
type Kept struct {
	Drop Drop
	Rows int // a multiple of 8, so that bits end with a byte
	Cols int
	Bits *byte // room for KeptRoom bytes
	// From and Other, if given, are rows without gaps that the draws are for. They are asked for meanwhile: draws
	// alone leave memory idle.
	From, Other Block
}

// KeptRoom is how many bytes the bits of some rows take: loops store eight at a time.
func KeptRoom(rows, cols int) int { return rows*cols/8 + 8 }

// Run draws for all numbers.
func (k *Kept) Run(l Level) {
	if k.Rows > 0 && k.Cols > 0 {
		runKept(l, k)
	}
}

func keptGeneric(k *Kept) {
	n := 0
	for i := range k.Rows {
		key := k.Drop.key(i)
		for j := range k.Cols {
			if n%8 == 0 {
				*at(k.Bits, n/8) = 0
			}
			if k.Drop.kept(key, i, j) {
				*at(k.Bits, n/8) |= 1 << (n % 8)
			}
			n++
		}
	}
}
