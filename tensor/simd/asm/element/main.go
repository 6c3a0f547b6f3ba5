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
	offset = offsets("../block.go", "../element.go", "../norm.go", "../loss.go", "../optim.go")
	ConstraintExpr("amd64")
	makeTables()
	for _, zmm := range []bool{true, false} {
		mapKernel(zmm)
		actGradKernel(zmm)
		dotKernel(zmm)
		finiteKernel(zmm)
		columnSumsKernel(zmm)
		normGradKernel(zmm)
		layerGradKernel(zmm)
		softmaxKernel(zmm)
		argmaxKernel(zmm)
		bceKernel(zmm)
		adamKernel(zmm)
		sgdKernel(zmm)
	}
	clearLines()
	Generate()
}

func sortedKeys(m map[string]reg.GPVirtual) []string {
	return slices.Sorted(maps.Keys(m))
}

// clearLines zeroes whole lines past the caches.
func clearLines() {
	TEXT("clearLinesAVX512", 0, "func(p *byte, lines int)")
	p, lines, zero := Load(Param("p"), GP64()), Load(Param("lines"), GP64()), ZMM()
	VPXORD(zero, zero, zero)
	Label("line")
	VMOVNTDQ(zero, Mem{Base: p})
	ADDQ(Imm(64), p)
	DECQ(lines)
	JNZ(LabelRef("line"))
	SFENCE()
	VZEROUPPER()
	RET()
}
