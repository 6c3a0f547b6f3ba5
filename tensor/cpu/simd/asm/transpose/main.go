// Transpose writes the loop that turns rows into columns:
//
//	go run ./transpose -out ../transpose_amd64.s -stubs ../transpose_stubs_amd64.go -pkg simd
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

var z = []VecPhysical{
	Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15,
	Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z24, Z25, Z26, Z27, Z28, Z29, Z30, Z31}

func main() {
	ConstraintExpr("amd64")
	transpose512()
	Generate()
}

// transpose512 turns 16 rows into 16 columns, 16 numbers of each row at a time: pairs
// of numbers, then quarters of vectors, then halves change places.
func transpose512() {
	TEXT("transpose512", NOSPLIT, "func(dst, src *float32, dstStride, srcStride, blocks int)")
	Doc("transpose512 writes 16 rows of src as 16 columns of dst, 16*blocks rows long. Strides are in bytes.")
	Pragma("noescape")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	to, from := Load(Param("dstStride"), GP64()), Load(Param("srcStride"), GP64())
	left := Load(Param("blocks"), GP64())
	at := GP64()

	Label("block")
	MOVQ(src, at)
	for i := range 16 {
		VMOVUPS(Mem{Base: at}, z[i])
		ADDQ(from, at)
	}
	for i := 0; i < 16; i += 2 {
		VUNPCKLPS(z[i+1], z[i], z[16+i])
		VUNPCKHPS(z[i+1], z[i], z[17+i])
	}
	for i := 0; i < 16; i += 4 {
		VUNPCKLPD(z[18+i], z[16+i], z[i])
		VUNPCKHPD(z[18+i], z[16+i], z[i+1])
		VUNPCKLPD(z[19+i], z[17+i], z[i+2])
		VUNPCKHPD(z[19+i], z[17+i], z[i+3])
	}
	for half := 0; half < 16; half += 8 {
		for i := range 4 {
			VSHUFF32X4(U8(0x88), z[half+i+4], z[half+i], z[16+half+i])
			VSHUFF32X4(U8(0xdd), z[half+i+4], z[half+i], z[20+half+i])
		}
	}
	for i := range 8 {
		VSHUFF32X4(U8(0x88), z[24+i], z[16+i], z[i])
		VSHUFF32X4(U8(0xdd), z[24+i], z[16+i], z[8+i])
	}
	for i := range 16 {
		VMOVUPS(z[i], Mem{Base: dst})
		ADDQ(to, dst)
	}
	ADDQ(U8(64), src)
	DECQ(left)
	JNE(LabelRef("block"))
	VZEROUPPER()
	RET()
}
