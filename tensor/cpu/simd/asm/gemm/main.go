// Gemm writes the tiles of dense multiplication and the loops that pack for them:
//
//	go run ./gemm -out ../gemm_amd64.s -stubs ../gemm_stubs_amd64.go -pkg simd
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64")
	for _, packed := range []bool{false, true} {
		avx512.tile(1, 4, 2, packed)
		avx512.tile(5, 6, 2, packed)
		avx512.tile(13, 14, 2, packed)
		avx512.tile(1, 6, 1, packed)
		avx512.tile(7, 14, 1, packed)
		avx2.tile(1, 4, 2, packed)
		avx2.tile(5, 6, 2, packed)
		avx2.tile(1, 6, 1, packed)
	}
	shortRows512()
	outer512()
	masks()
	copyRows512()
	packRows512(1, false)
	packRows512(2, false)
	packRows512(1, true)
	packRows512(2, true)
	packRows2(1)
	packRows2(2)
	addRows512(false)
	addRows512(true)
	addRows2()
	fmaLoop("fmaLoop512", avx512)
	fmaLoop("fmaLoop256", avx2)
	Generate()
}

// flavour is what tiles of different register sizes do not share.
type flavour struct {
	name  string
	vec   []VecPhysical
	bytes int // of a vector
	full  int // rows of the largest tile, which decides where B and A go
}

var avx512 = flavour{"tile512", []VecPhysical{
	Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15,
	Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z24, Z25, Z26, Z27, Z28, Z29, Z30, Z31}, 64, 14}

var avx2 = flavour{"tile256", []VecPhysical{
	Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7, Y8, Y9, Y10, Y11, Y12, Y13, Y14, Y15}, 32, 6}

// Offsets of the fields of simd.Tile.
const (
	fieldA = 8 * iota
	fieldB
	fieldC
	fieldARow
	fieldAStep
	fieldCRow
	fieldK
	fieldCols
	fieldAdd
	fieldAhead
	fieldAheadStep
	fieldRows
)
