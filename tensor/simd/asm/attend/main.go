// Attend writes the loops of the attention layer:
//
//	go run ./attend -out ../attend_amd64.s -stubs ../attend_stubs_amd64.go -pkg simd
//
// Coefficients and their gradients are computed sixteen at a time for all heads of
// several entries at once (weights.go): with P the number of heads rounded up to
// a power of two, lane l of a vector is head l%P of the vector's entry l/P; together.go has what is faster where P is four or eight. The
// sums of wide rows (sum.go, grad.go) then take a coefficient for each column
// by permuting the lanes of an entry, so any width of a head will do. Dot products of wide
// rows are made in fold.go.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64")
	for _, p := range []together{0, 4, 8} {
		weights(p)
		gradWeights(p)
		gradScores(p)
	}
	sumRows(false, false)
	sumRows(true, false)
	sumRows(true, true)
	for _, bf16 := range []bool{false, true} {
		gradHeads(bf16)
		gradLanes(bf16)
		dotHeads(bf16)
		dotLanes(bf16)
		headGrad(bf16)
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
