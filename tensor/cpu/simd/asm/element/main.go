// Command element writes the assembly of package simd's element-wise loops, norms,
// losses and optimisers, for AVX2 and AVX-512.
package main

import (
	"maps"
	"slices"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

func main() {
	offset = offsets("../block.go", "../element.go", "../kept.go", "../norm.go", "../loss.go", "../optim.go")
	ConstraintExpr("amd64")
	makeTables()
	for _, s := range []set{avx512Rounds, avx2} {
		mapKernel(s)
		actGradKernel(s)
		normGradKernel(s)
		layerGradKernel(s)
		softmaxKernel(s)
		bceKernel(s)
	}
	for _, s := range []set{avx512, avx2} { // these store no rows
		dotKernel(s)
		finiteKernel(s)
		columnSumsKernel(s)
		argmaxKernel(s)
		adamKernel(s)
		sgdKernel(s)
	}
	keptKernel()
	logSumKernel()
	clearLines()
	settle()
	Generate()
}

func sortedKeys(m map[string]reg.GPVirtual) []string {
	return slices.Sorted(maps.Keys(m))
}

// settle is a fence after stores by non-temporal stores.
func settle() {
	TEXT("StoreFence", 4, "func()")
	SFENCE()
	RET()
}

// clearLines zeroes whole lines by non-temporal stores.
func clearLines() {
	TEXT("clearLinesAVX512", 0, "func(p *byte, lines int)")
	p, lines, zero := Load(Param("p"), GP64()), Load(Param("lines"), GP64()), ZMM()
	VPXORD(zero, zero, zero)
	Label("line")
	VMOVNTDQ(zero, Mem{Base: p})
	ADDQ(Imm(64), p)
	DECQ(lines)
	JNZ(LabelRef("line"))
	VZEROUPPER()
	RET()
}
