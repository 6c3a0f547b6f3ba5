// Amx writes the products of bfloat16 and of half precision tiles and the packing they need:
//
//	go run ./amx -out ../amx_amd64.s -stubs ../amx_stubs_amd64.go -pkg simd
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

func main() {
	ConstraintExpr("amd64")
	tileConfig()
	product("tiles16By2", 2, 2)
	product("tiles16By1", 4, 1)
	product("tiles16By3", 1, 3)
	packPairs()
	packTransposed()
	padRows()
	splitRows()
	splitPairs()
	product32()
	splitRowsTwoWay()
	splitPairsTwoWay()
	productTwoWay()
	anyWide()
	anyBelow()
	hasFP16()
	Generate()
}

// tileConfig says that all eight tiles are 16 rows of 64 bytes.
func tileConfig() {
	GLOBL("tileConfig", RODATA|NOPTR)
	DATA(0, U8(1)) // palette
	for i := 1; i < 16; i++ {
		DATA(i, U8(0))
	}
	for i := range 8 {
		DATA(16+2*i, U16(64))
	}
	for i := 32; i < 48; i++ {
		DATA(i, U8(0))
	}
	for i := range 8 {
		DATA(48+i, U8(16))
	}
	for i := 56; i < 64; i++ {
		DATA(i, U8(0))
	}
}
