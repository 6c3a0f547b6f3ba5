// Attend writes the loops of the attention layer:
//
//	go run ./attend -out ../attend_amd64.s -stubs ../attend_stubs_amd64.go -pkg simd
//
// Coefficients and their gradients are computed sixteen at a time for all heads of
// several entries at once: with P the number of heads, forward rounded up to a power of two, lane l
// of a vector is head l%P of the vector's entry l/P; together.go has what is faster where heads lie together.
// The forward pass has them in a list (weights.go) and then sums wide rows with a coefficient for each column, by
// permuting the lanes of an entry, so any width of a head will do (sum.go). The backward pass
// takes wide rows a head at a time
// (backward.go); their dot products are made in fold.go, those of rows with rows in dots.go.
// How loops are the same for rows of any width is in
// runs.go, how rows of all shapes are copied and written in places.go.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64")
	weights()
	sumRows(false)
	sumRows(true)
	backward()
	for _, bf16 := range []bool{false, true} {
		headGrad(bf16)
	}
	for _, d := range []dots{{}, {bf16: true}, {bf16: true, row: true}} {
		d.body()
	}
	sumEntries()
	Generate()
}

// fields gives the fields of an argument struct, all of eight bytes, their offsets in order.
type fields struct {
	base GPPhysical
	at   map[string]int
}

func newFields(base GPPhysical, names ...string) fields {
	f := fields{base, map[string]int{}}
	for i, n := range names {
		f.at[n] = 8 * i
	}
	return f
}

func (f fields) mem(name string) Mem {
	off, ok := f.at[name]
	if !ok {
		panic("no field " + name)
	}
	return Mem{Base: f.base, Disp: off}
}

func (f fields) load(name string, r GPPhysical) { MOVQ(f.mem(name), r) }

// loadRow sets r to where the row of a matrix starts. Pointers in the arguments are
// never stepped: the collector must not see one past its array.
func (f fields) loadRow(name string, row, r GPPhysical) {
	f.load(name+"Stride", r)
	IMULQ(row, r)
	ADDQ(f.mem(name), r)
}
