package tensor

import (
	"unsafe"

	"starling/tensor/simd"
)

// Products of rows with 9 to 48 columns in registers (see simd.Eights): the small matrix is one panel of up to 40 columns,
// or two of 24, and rows are read as they lie. Tiles would have them copied first, and fill 16 or 32 columns with zeros.

// eights holds the sizes of one such product.
type eights struct {
	k, n   int
	panels int
	pieces int // k is cut into, each of depth: a panel of one stays in the nearest cache
	depth  int
}

// eights reports whether a product goes this way.
func (c *CPU) eights(a, b Matrix, cols int) bool {
	return c.level >= simd.AVX512 && a.dtype == F32 && b.dtype == F32 && a.Cols > 0 && cols <= 48
}

// eightsBlock is how many rows go through all panels together: whole units of any panel.
const eightsBlock = 120

func newEights(k, n int) eights {
	g := eights{k: k, n: n, panels: (n + simd.EightsCols - 1) / simd.EightsCols, pieces: (k + simd.LeftDepth - 1) / simd.LeftDepth}
	g.depth = ((k+g.pieces-1)/g.pieces + 1) &^ 1
	return g
}

// start is the first column of panel p, and from where it begins. All but the last have whole eights.
func (g eights) start(p int) int { return min(g.n, (g.n/g.panels+7)&^7*p) }
func (g eights) from(p int) int  { return simd.EightsSize(g.k, g.start(1)) * p }

// tallSmallEights: dst = after(a · op(b)), by blocks of rows.
func (c *CPU) tallSmallEights(dst, a, b Matrix, op MatMul) {
	g := newEights(a.Cols, dst.Cols)
	panels := c.packEights(b, op.TransB, g)
	steps := make([]perCore[simd.Eights], c.threads)
	least := max(1, (1<<21)/(2*eightsBlock*g.k*g.n))
	c.rowBlocks(dst, a, op, eightsBlock, least, func(sum, in Matrix, thread int) {
		c.eightsRows(g, &steps[thread].of, sum, in, panels, op.Add)
	})
	c.Free(panels)
}

// packEights packs op(b), one panel after another.
func (c *CPU) packEights(b Matrix, trans bool, g eights) Matrix {
	row, col := b.stride, 1
	if trans {
		row, col = col, row
	}
	panels := c.Scratch(F32, 1, g.from(g.panels))
	for p := range g.panels {
		simd.PackEights(panels.f32[g.from(p):], b.f32[g.start(p)*col:], g.k, g.start(p+1)-g.start(p), row, col)
	}
	return panels
}

// eightsRows computes one block of rows: dst (+)= a · panels.
func (c *CPU) eightsRows(g eights, t *simd.Eights, dst, a, panels Matrix, add bool) {
	t.Rows, t.ARow, t.CRow = dst.Rows, 4*a.stride, 4*dst.stride
	next := nextEights(g, a)
	for k := 0; k < g.k; k += g.depth {
		t.K, t.Add = min(g.depth, g.k-k), flag(add || k > 0)
		t.A = unsafe.Pointer(&a.f32[k])
		for p := range g.panels {
			t.Cols = g.start(p+1) - g.start(p)
			t.B = unsafe.Pointer(&panels.f32[g.from(p)+simd.EightsSize(k, t.Cols)])
			t.C = unsafe.Pointer(&dst.f32[g.start(p)])
			next.set(t)
			t.Run(c.level)
		}
	}
}

// aheadEights is what is asked for meanwhile. Where all of a row is multiplied at once, it is the unit of rows that follows,
// which is just in time; else, in as many parts as there are steps over a block, the block that follows.
type aheadEights struct {
	at     uintptr
	share  int // bytes of a step
	single bool
}

func nextEights(g eights, a Matrix) aheadEights {
	bytes := 4 * a.Rows * a.stride
	return aheadEights{uintptr(a.base()) + uintptr(bytes), bytes / (g.panels * g.pieces), g.panels*g.pieces == 1}
}

func (x *aheadEights) set(t *simd.Eights) {
	unit := simd.EightsRows(t.Cols)
	if x.single {
		t.Ahead, t.AheadUnit = uintptr(t.A)+uintptr(unit*t.ARow), unit*t.ARow
	} else {
		t.Ahead, t.AheadUnit = x.at, x.share*unit/t.Rows
		x.at += uintptr(x.share)
	}
	t.AheadStep = 2 * t.AheadUnit / t.K
}
