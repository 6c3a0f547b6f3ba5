package simd

import "starling/tensor/draw"

// Kept is what a dropout of a half keeps of rows that are narrower than a few vectors: a bit a
// number, rows one right after
// the other, the first number in the lowest bit. Rows seen as one long row then need no draws of their own (Drop.Bits).
type Kept struct {
	Drop Drop
	Rows int   // a multiple of 8, so that bits end with a byte
	Cols int   // from KeptLeast to KeptCols
	Bits *byte // space for KeptBytes bytes
}

// KeptCols is the most columns of such rows: the bits of one, and up to seven of those before, are a word. KeptLeast is
// the least: no byte has bits of three rows.
const KeptLeast, KeptCols = 8, 57

// KeptBytes is how many bytes the bits of some rows take: loops store eight at a time.
func KeptBytes(rows, cols int) int { return rows*cols/8 + 8 }

// Run draws for all numbers.
func (k *Kept) Run(l Level) {
	if k.Cols < KeptLeast || k.Cols > KeptCols || k.Drop.Threshold != draw.Half {
		panic("simd: Kept has no such draws")
	}
	if k.Rows > 0 {
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
