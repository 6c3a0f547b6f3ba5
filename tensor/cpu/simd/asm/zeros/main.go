// Zeros writes the loops that take rows apart into bits and numbers, 32 numbers at a time:
//
//	go run ./zeros -out ../zeros_amd64.s -stubs ../zeros_stubs_amd64.go -pkg simd
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

func main() {
	ConstraintExpr("amd64")
	notZero("notZero32Fast", 4)
	notZero("notZero16Fast", 2)
	compress("compress32Fast", 4)
	compress("compress16Fast", 2)
	expand("expand32Fast", 4)
	expand("expand16Fast", 2)
	Generate()
}

func number(size int) string { return map[int]string{4: "uint32", 2: "uint16"}[size] }

// words is a function's loop over words of bits, with 32 numbers each.
func words(body func()) {
	bits, left := Load(Param("bits").Base(), R8), Load(Param("bits").Len(), R9)
	Label("words")
	body()
	ADDQ(Imm(4), bits)
	DECQ(left)
	JNZ(LabelRef("words"))
	VZEROUPPER()
}

func notZero(name string, size int) {
	TEXT(name, NOSPLIT, "func(bits []uint32, x []"+number(size)+")")
	Doc(name + " says which of 32 numbers a word are not zero. There is at least one word.")
	Pragma("noescape")
	x := Load(Param("x").Base(), RSI)
	words(func() {
		if size == 4 {
			for half := range 2 {
				VMOVDQU32(Mem{Base: RSI, Disp: 64 * half}, Z0)
				VPTESTMD(Z0, Z0, K1)
				KMOVW(K1, Mem{Base: R8, Disp: 2 * half})
			}
		} else {
			VMOVDQU16(Mem{Base: RSI}, Z0)
			VPTESTMW(Z0, Z0, K1)
			KMOVD(K1, Mem{Base: R8})
		}
		ADDQ(Imm(uint64(32*size)), x)
	})
	RET()
}

// half loads the bits of sixteen numbers to K1, as many ones as are set to K2, and their count to RAX.
func half(i int) {
	MOVWLZX(Mem{Base: R8, Disp: 2 * i}, EAX)
	KMOVW(EAX, K1)
	POPCNTL(EAX, EAX)
	MOVL(I32(-1), ECX)
	BZHIL(EAX, ECX, ECX)
	KMOVW(ECX, K2)
}

// returned is how many numbers lie between the start of a slice and where it was left.
func returned(slice string, at GPPhysical, size int) {
	start := Load(Param(slice).Base(), RDX)
	SUBQ(start, at)
	SHRQ(Imm(uint64(size/2)), at)
	Store(at, ReturnIndex(0))
	RET()
}

// begin starts a function that goes from x, at RSI, to dst, at RDI.
func begin(name string, size int, does string) {
	TEXT(name, NOSPLIT, "func(dst, x []"+number(size)+", bits []uint32) int")
	Doc(name + " " + does + ". There is at least one word.")
	Pragma("noescape")
	Load(Param("dst").Base(), RDI)
	Load(Param("x").Base(), RSI)
}

func compress(name string, size int) {
	begin(name, size, "writes the numbers of x whose bits are set one after the other, and returns how many")
	words(func() {
		for i := range 2 {
			half(i)
			from, to := Mem{Base: RSI, Disp: 16 * size * i}, Mem{Base: RDI}
			if size == 4 {
				VMOVDQU32(from, Z0)
				VPCOMPRESSD_Z(Z0, K1, Z0)
				VMOVDQU32(Z0, K2, to)
			} else {
				VPMOVZXWD(from, Z0)
				VPCOMPRESSD_Z(Z0, K1, Z0)
				VPMOVDW(Z0, K2, to)
			}
			LEAQ(Mem{Base: RDI, Index: RAX, Scale: uint8(size)}, RDI)
		}
		ADDQ(Imm(uint64(32*size)), RSI)
	})
	returned("dst", RDI, size)
}

func expand(name string, size int) {
	begin(name, size, "writes the numbers of x where bits are set and zeros elsewhere, and returns how many it took")
	words(func() {
		for i := range 2 {
			half(i)
			from, to := Mem{Base: RSI}, Mem{Base: RDI, Disp: 16 * size * i}
			if size == 4 {
				VMOVDQU32_Z(from, K2, Z0)
				VPEXPANDD_Z(Z0, K1, Z0)
				VMOVDQU32(Z0, to)
			} else {
				VPMOVZXWD_Z(from, K2, Z0)
				VPEXPANDD_Z(Z0, K1, Z0)
				VPMOVDW(Z0, to)
			}
			LEAQ(Mem{Base: RSI, Index: RAX, Scale: uint8(size)}, RSI)
		}
		ADDQ(Imm(uint64(32*size)), RDI)
	})
	returned("x", RSI, size)
}
