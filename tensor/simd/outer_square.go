package simd

import "unsafe"

// OuterSquare is Outer with 33 to OuterWidth columns of B, and as many of A as there are registers for: OuterSquareLeft.
// C is the product of the last Left of these, so that the last of several steps may read columns of the one before, and
// none past a row's end. Its rows have OuterSquareSums numbers. Ahead is one piece of memory: AheadStep bytes of it, up
// to 96, are asked for with each row.
type OuterSquare struct{ Outer }

// OuterSquareLeft is how many columns of A are read where B has so many.
func OuterSquareLeft(cols int) int {
	if cols <= 40 {
		return 10
	}
	return 8
}

// OuterSquareSums is how many numbers a row of C has where B has so many columns.
func OuterSquareSums(cols int) int {
	if cols <= 40 {
		return 40
	}
	return 48
}

// Run computes the step.
func (t *OuterSquare) Run(level Level) {
	if level >= AVX512 {
		runOuterSquare(t)
		return
	}
	last := t.Outer
	last.A = unsafe.Add(t.A, 4*(OuterSquareLeft(t.Cols)-t.Left))
	last.Run(level)
}
