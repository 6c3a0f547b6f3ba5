package cpu

import (
	"fmt"
	"unsafe"

	"starling/tensor"
	"starling/tensor/cpu/simd"
)

// Dense multiplication. The two shapes that matter have a small side that stays
// in cache and a tall side that is read once:
//
//	tall · small     rows are independent: the small matrix is packed into panels
//	                 (transposed on the way if asked), blocks of rows go through the
//	                 tiles of tensor/cpu/simd and, still in cache, through op.Epilogue
//	tallᵀ · tall     the sum runs over the tall side: see matmul_weight_gradient.go
//
// The first that fits computes a product of float32:
//
//	rows of up to 16 numbers to few columns     weights in registers               matmul_short_rows.go
//	AMX, and no side mostly padding             split into half-precision parts    matmul_split.go
//	a side that is mostly zeros                 zeros are skipped                  matmul_zero_skipping.go
//	two narrow sides, summed over rows          both sides in place                matmul_narrow.go
//	all else                                    register tiles                     this file, matmul_weight_gradient.go
//
// With AMX a bfloat16 left side goes to it (matmul_bf16.go). MatMulF32 leaves AMX out. What
// is chosen depends on shapes, types, the device and what the caller says about zeros, never
// on the numbers.

func (c *Device) MatMul(dst, a, b Matrix, op MatMul) {
	checkMatMul(dst, a, b, op)
	switch {
	case dst.Rows == 0 || dst.Cols == 0:
	case op.TransA && op.TransB:
		t := c.Scratch(b.Type(), b.Cols, b.Rows)
		transpose(t, b)
		c.tallTall(dst, a, t, op)
		c.Free(t)
	case op.TransA:
		c.tallTall(dst, a, b, op)
	default:
		c.tallSmall(dst, a, b, op)
	}
}

func checkMatMul(dst, a, b Matrix, op MatMul) {
	tensor.NeedMatMul(dst, a, b, op)
	noF64("MatMul", dst, a, b)
}

// tallSmall: dst = after(a · op(b)), by blocks of rows.
func (c *Device) tallSmall(dst, a, b Matrix, op MatMul) {
	switch {
	case c.gemm >= simd.AMX && a.Type() == BF16 && a.Cols > 0:
		c.tallSmall16(dst, a, b, op)
	case c.shortRows(dst, a, b):
		c.tallSmallShort(dst, a, b, op)
	case c.splits(a, b, a.Cols, dst.Cols):
		c.tallSmallParts(dst, a, b, op)
	case c.skipTime(a, dst.Cols, op.ZerosA, false) < skipLimit:
		c.tallSmallSkipping(dst, a, b, op)
	default:
		c.tallSmallTiles(dst, a, b, op)
	}
}

// tallSmallTiles is tallSmall by tiles in registers.
func (c *Device) tallSmallTiles(dst, a, b Matrix, op MatMul) {
	g := c.newProduct(a.Cols, dst.Cols)
	panels := c.packSmall(b, op.TransB, g)
	workspace := c.Scratch(F32, c.threads, g.block*simd.LeftPitch) // a block of a
	tiles := make([]perCore[simd.Tile], c.threads)
	c.rowBlocks(dst, a, op, g.block, g.leastBlocks(), func(sum, in Matrix, thread int) {
		c.block(g, &tiles[thread].of, sum, in, panels, rowOf(workspace, thread), op.Add)
	})
	c.Free(workspace)
	c.Free(panels)
}

// product holds the sizes of one tall · small product.
type product struct {
	level      simd.Level
	k, n       int
	mr, nr     int // the tile
	block      int // rows that are computed before what comes after is done to them
	depth      int // k is cut into pieces of this depth, so that a panel stays in cache
	panelCount int
}

func (c *Device) newProduct(k, n int) product {
	g := product{level: c.level, k: k, n: n}
	g.mr, g.nr = simd.TileShape(g.level)
	g.block = 112 / g.mr * g.mr
	pieces := max(1, (k+simd.LeftDepth-1)/simd.LeftDepth)
	g.depth = max(1, (k+pieces-1)/pieces)
	g.panelCount = simd.Panels(n, g.nr)
	return g
}

// leastBlocks is how many blocks are worth handing out when the matrices are narrow.
func (g product) leastBlocks() int {
	const flops = 1 << 21
	return max(1, flops/max(1, 2*g.block*g.k*g.n))
}

// blockRanges distributes rows in ranges of up to 32 blocks: while a block is computed its
// follower is asked for, which is lost,
// and worse, where that one is another core's (a tenth of a product of 256 columns and 40 in ranges of eight blocks). A
// turn is at most its share of half of what is left, down to least blocks, so that
// all cores end at about the
// same time. Rows do not depend on each other, so the cut may depend on threads.
func (c *Device) blockRanges(rows, block, least int, body func(lo, hi, thread int)) {
	var starts []int
	for lo := 0; lo < rows; {
		starts = append(starts, lo)
		lo += block * max(least, min(32, (rows-lo)/(2*c.threads*block)))
	}
	starts = append(starts, rows)
	c.run(len(starts)-1, func(turn, thread int) { body(starts[turn], starts[turn+1], thread) })
}

// rowBlocksWorkspace is how many float32 each core takes for blocks of a number of rows.
func rowBlocksWorkspace(dst Matrix, block int) int {
	if dst.Type() == F32 {
		return 1
	}
	return block * dst.Cols
}

// rowBlocks has product make float32 sums of blocks of rows, no fewer than least blocks a core, in
// dst itself or, where that
// is of another type, in workspace of a core's own; what comes after follows while they are near.
func (c *Device) rowBlocks(dst, a Matrix, op MatMul, block, least int, product func(sum, in Matrix, thread int)) {
	n := dst.Cols
	sums := c.perThread(F32, rowBlocksWorkspace(dst, block))
	c.blockRanges(dst.Rows, block, least, func(lo, hi, thread int) {
		for ; lo < hi; lo += block {
			end := min(hi, lo+block)
			out, in := dst.Slice(lo, end), a.Slice(lo, end)
			sum := out
			if dst.Type() != F32 {
				sum = part(sums, thread, 0, out.Rows, n)
				if op.Add {
					c.activateSerial(sum, out, Epilogue{})
				}
			}
			product(sum, in, thread)
			if baseOf(sum) != baseOf(out) || !op.Epilogue.Empty() {
				c.activateSerial(out, sum, op.Epilogue.Slice(lo, end))
			}
		}
	})
	c.Free(sums)
}

// packSmall packs op(b) into panels of the tile's width, one panel after another.
func (c *Device) packSmall(b Matrix, trans bool, g product) Matrix {
	small := b
	if b.Type() != F32 {
		small = c.Scratch(F32, b.Rows, b.Cols)
		c.activateSerial(small, b, Epilogue{})
	}
	panels := c.Scratch(F32, g.panelCount, g.k*g.nr)
	// A panel is a few microseconds: distribute them only when there is much to do.
	each := max(1, (1<<16)/max(1, g.k*g.nr))
	c.forRows(g.panelCount, each, func(lo, hi, _, _ int) {
		for p := lo; p < hi; p++ {
			if trans {
				simd.PackPanelTransposed(g.level, rowOf(panels, p), f32Of(small), g.k, g.n, small.Stride(), p*g.nr,
					g.nr)
			} else {
				simd.PackPanel(rowOf(panels, p), f32Of(small), g.k, g.n, small.Stride(), p*g.nr, g.nr)
			}
		}
	})
	if b.Type() != F32 {
		c.Free(small)
	}
	return panels
}

// block computes one block of rows: dst (+)= a · panels. While it does, it prefetches
// the rows of a that follow.
func (c *Device) block(g product, t *simd.Tile, dst, a, panels Matrix, left []float32, add bool) {
	if g.k == 0 {
		if !add {
			zeroRows(dst)
		}
		return
	}
	t.ARow, t.AStep, t.CRow = 4*simd.LeftPitch, 4, 4*dst.Stride()
	abase, bbase, cbase := unsafe.Pointer(&left[0]), baseOf(panels), baseOf(dst)
	for k := 0; k < g.k; k += g.depth {
		t.K = min(g.depth, g.k-k)
		t.Add = flag(add || k > 0)
		part := a.Columns(k, k+t.K)
		// Spread over all tiles of this block, the first rows with the first piece: AheadStep bytes each step of k.
		t.Ahead = uintptr(baseOf(a)) + uintptr(a.Type().Size()*(dst.Rows*a.Stride()+k*dst.Rows))
		t.AheadStep = (a.Type().Size()*g.mr + g.panelCount - 1) / g.panelCount
		for p := range g.panelCount {
			t.Cols = min(g.nr, g.n-p*g.nr)
			t.B = unsafe.Add(bbase, 4*(p*g.k+k)*g.nr)
			for r := 0; r < dst.Rows; r += g.mr {
				if p == 0 { // the tile finds its rows in the nearest cache
					c.copyLeft(left[r*simd.LeftPitch:], part.Slice(r, min(r+g.mr, dst.Rows)))
				}
				t.A = unsafe.Add(abase, r*t.ARow)
				t.C = unsafe.Add(cbase, 4*(r*dst.Stride()+p*g.nr))
				t.Run(g.level, min(g.mr, dst.Rows-r))
				t.Ahead += uintptr(t.K * t.AheadStep)
			}
		}
	}
}

// copyLeft copies a part of a block's rows to where tiles read them.
func (c *Device) copyLeft(left []float32, a Matrix) {
	if a.Type() == F32 {
		simd.CopyLeft(c.level, left, f32Of(a), a.Rows, a.Cols, a.Stride())
		return
	}
	m := simd.Map{Src: blockOf(a, 0), Rows: a.Rows, Cols: a.Cols}
	m.Dst = simd.Block{Data: unsafe.Pointer(&left[0]), Stride: 4 * simd.LeftPitch}
	m.Run(c.level)
}

// ColumnSum adds each chunk's rows by itself and then the chunks in order.
func (c *Device) ColumnSum(dst, src Matrix, add bool) {
	if dst.Rows != 1 || dst.Cols != src.Cols || dst.Type() != F32 {
		panic(fmt.Sprintf("tensor: ColumnSum of %v into %v", src, dst))
	}
	out := f32Of(dst)
	if !add {
		clear(out)
	}
	if src.Rows == 0 || src.Cols == 0 {
		return
	}
	// At least 64 rows a chunk, so that the sums of chunks are few beside the rows.
	size := max(64, rowChunk(src.Cols*src.Type().Size()))
	sums := c.Scratch(F32, (src.Rows+size-1)/size, src.Cols)
	c.forRows(src.Rows, size, func(lo, hi, chunk, _ int) {
		s := rowOf(sums, chunk)
		clear(s)
		part := src.Slice(lo, hi)
		if src.Type() == BF16 {
			simd.AddRows16(c.level, s, b16Of(part), part.Rows, part.Cols, part.Stride())
		} else {
			simd.AddRows(c.level, s, f32Of(part), part.Rows, part.Cols, part.Stride())
		}
	})
	simd.AddRows(c.level, out, f32Of(sums), sums.Rows, sums.Cols, sums.Stride())
	c.Free(sums)
}

func zeroRows(m Matrix) {
	for i := range m.Rows {
		clear(rowOf(m, i))
	}
}

// transpose: both of the same type.
func transpose(dst, src Matrix) {
	for i := range dst.Rows {
		for j := range dst.Cols {
			if dst.Type() == F32 {
				f32Of(dst)[i*dst.Stride()+j] = f32Of(src)[j*src.Stride()+i]
			} else {
				b16Of(dst)[i*dst.Stride()+j] = b16Of(src)[j*src.Stride()+i]
			}
		}
	}
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}
