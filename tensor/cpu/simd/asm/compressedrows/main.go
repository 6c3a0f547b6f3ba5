// Lists writes the loops of products that skip zeros:
//
//	go run ./compressedrows -out ../compressed_rows_amd64.s -stubs ../compressed_rows_stubs_amd64.go -pkg simd
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/cpu/simd/asm/frame"
)

func main() {
	ConstraintExpr("amd64")
	offsets()
	compressRows()
	for panels := 1; panels <= 4; panels++ {
		avx512.tile(panels)
		avx2.tile(panels)
	}
	Generate()
}

// Places in a simd.CompressedRow.
const (
	depth          = 64
	values         = 4 * (depth + 16)
	count          = 2 * values
	compressedSize = count + 64
)

// offsets are those of a vector's sixteen numbers.
func offsets() {
	GLOBL("compressedOffsets", RODATA|NOPTR)
	for i := range 16 {
		DATA(4*i, U32(avx512.panelRow()*i))
	}
}

// compressRows makes a list of each row. Vectors are pushed together and written whole, each over
// the rest of the one before.
func compressRows() {
	list, row, rows, cols, stride := RDI, RSI, RDX, RCX, R8
	frame.Func("compressRows512", "func(dst *byte, src *float32, rows, cols, stride int)", list, row, rows, cols, stride)
	// K1: the lanes of the last, partial vector.
	at, left, n, bits := R9, R10, R11, R12
	MOVQ(cols, left)
	ANDQ(Imm(15), left)
	MOVQ(I32(-1), bits)
	BZHIQ(left, bits, bits)
	KMOVW(bits.As32(), K1)
	zero, first, step, offset := Z0, Z1, Z2, Z3
	VPXORD(zero, zero, zero)
	VMOVDQU32(NewDataAddr(Symbol{Name: "compressedOffsets", Static: true}, 0), first)
	MOVL(U32(16*avx512.panelRow()), EAX)
	VPBROADCASTD(EAX, step)
	push := func() {
		const notEqual = 4 // or not a number
		VCMPPS(Imm(notEqual), zero, Z4, K2)
		KMOVW(K2, bits.As32())
		VPCOMPRESSD_Z(offset, K2, Z5)
		VCOMPRESSPS_Z(Z4, K2, Z6)
		VMOVDQU32(Z5, Mem{Base: list, Index: n, Scale: 4})
		VMOVUPS(Z6, Mem{Base: list, Index: n, Scale: 4, Disp: values})
		POPCNTL(bits.As32(), bits.As32())
		ADDQ(bits, n)
		VPADDD(step, offset, offset)
	}
	Label("row")
	XORQ(n, n)
	VMOVDQA32(first, offset)
	MOVQ(row, at)
	MOVQ(cols, left)
	SUBQ(Imm(16), left)
	JLT(LabelRef("last"))
	Label("vector")
	VMOVUPS(Mem{Base: at}, Z4)
	push()
	ADDQ(Imm(64), at)
	SUBQ(Imm(16), left)
	JGE(LabelRef("vector"))
	Label("last")
	frame.Compare(left, I8(-16), JEQ, "end")
	VMOVUPS_Z(Mem{Base: at}, K1, Z4)
	push()
	Label("end")
	VMOVDQU32(zero, Mem{Base: list, Index: n, Scale: 4})
	VMOVUPS(zero, Mem{Base: list, Index: n, Scale: 4, Disp: values})
	MOVQ(n, Mem{Base: list, Disp: count})
	ADDQ(U32(compressedSize), list)
	ADDQ(stride, row)
	frame.Next(rows, "row")
	frame.End()
}

// flavour is what tiles of different register sizes do not share.
type flavour struct {
	name  string
	vec   []VecPhysical
	bytes int // of a vector
}

var (
	avx512 = flavour{"compressedTile512", []VecPhysical{Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z8, Z9}, 64}
	avx2   = flavour{"compressedTile256", []VecPhysical{Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7, Y8, Y9}, 32}
)

// panelRow is the bytes of a panel's row: two vectors.
func (f flavour) panelRow() int { return 2 * f.bytes }

// tile adds up, for each list, the columns of so many panels.
func (f flavour) tile(panels int) {
	frame.Begin(fmt.Sprintf("%sp%d", f.name, panels))
	list, b, c, crow, rows, add, ahead, aheadStep := RDI, RSI, RDX, R8, R9, R10, R11, R12
	frame.First(list, b, c, crow, rows, add, ahead, aheadStep)
	// Few vectors take turns between two sets of sums, since one would wait for itself.
	vectors, panel := 2*panels, (depth+1)*f.panelRow()
	sums := [2][]VecPhysical{f.vec[:vectors], f.vec[:vectors]}
	two := vectors <= 4
	if two {
		sums[1] = f.vec[vectors : 2*vectors]
	}
	at, left, place := R13, RCX, []GPPhysical{R15, RBX}
	Label("list")
	PREFETCHT1(Mem{Base: ahead})
	PREFETCHT1(Mem{Base: ahead, Disp: 64})
	ADDQ(aheadStep, ahead)
	for _, v := range f.vec[:8] {
		VXORPS(v, v, v)
	}
	frame.Test(add, add, JEQ, "begin")
	for v, s := range sums[0] {
		VMOVUPS(Mem{Base: c, Disp: f.bytes * v}, s)
	}
	Label("begin")
	MOVQ(list, at)
	MOVQ(Mem{Base: list, Disp: count}, left)
	SUBQ(Imm(1), left)
	JLT(LabelRef("end"))
	Label("two")
	for i, x := range f.vec[8:] {
		MOVL(Mem{Base: at, Disp: 4 * i}, place[i].As32())
		VBROADCASTSS(Mem{Base: at, Disp: values + 4*i}, x)
		ADDQ(b, place[i]) // with an index besides, an instruction would be two
		for v, s := range sums[i] {
			VFMADD231PS(Mem{Base: place[i], Disp: v%2*f.bytes + v/2*panel}, x, s)
		}
	}
	ADDQ(Imm(8), at)
	SUBQ(Imm(2), left)
	JGE(LabelRef("two"))
	Label("end")
	for v, s := range sums[0] {
		if two {
			VADDPS(sums[1][v], s, s)
		}
		VMOVUPS(s, Mem{Base: c, Disp: f.bytes * v})
	}
	ADDQ(U32(compressedSize), list)
	ADDQ(crow, c)
	frame.Next(rows, "list")
	frame.End()
}
