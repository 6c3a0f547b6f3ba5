// Command element writes the assembly of package simd's element-wise loops, norms,
// losses and optimisers, for AVX2 and AVX-512.
package main

import (
	"maps"
	"slices"

	. "github.com/mmcloughlin/avo/build"
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
	Generate()
}

func sortedKeys(m map[string]reg.GPVirtual) []string {
	return slices.Sorted(maps.Keys(m))
}
