package simd

// Kept is what a dropout keeps of rows that are narrower than a few vectors: a bit a number, rows one right after
// the other, the first number in the lowest bit. Rows seen as one long row then need no draws of their own (Drop.Bits).
type Kept struct {
	Drop Drop
	Rows int   // a multiple of 8, so that bits end with a byte
	Cols int   // up to KeptCols
	Bits *byte // room for KeptRoom bytes
}

// KeptCols is the most columns of such rows: the bits of one, and up to seven of those before, are a word.
const KeptCols = 57

// KeptRoom is how many bytes the bits of some rows take: loops store eight at a time.
func KeptRoom(rows, cols int) int { return rows*cols/8 + 8 }

// Run draws for all numbers.
func (k *Kept) Run(l Level) {
	if k.Cols > KeptCols {
		panic("simd: rows too wide to draw for before")
	}
	if k.Rows > 0 && k.Cols > 0 {
		runKept(l, k)
	}
}

func keptGeneric(k *Kept) {
	n := 0
	for i := range k.Rows {
		draws := k.Drop.draws(i)
		for j := range k.Cols {
			if n%8 == 0 {
				*at(k.Bits, n/8) = 0
			}
			if draws.keeps(j) {
				*at(k.Bits, n/8) |= 1 << (n % 8)
			}
			n++
		}
	}
}
