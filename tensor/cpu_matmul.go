package tensor

import (
	"fmt"
	"unsafe"

	"starling/tensor/simd"
)

// Dense multiplication. The two shapes that matter have a small side that stays
// in cache and a tall side that is read once:
//
//	tall · small     rows are independent: the small matrix is packed into panels
//	                 (transposed on the way if asked), blocks of rows go through the
//	                 tiles of tensor/simd and, still in cache, through op.After
//	tallᵀ · tall     the sum runs over the tall side: see cpu_matmul_tall.go
//
// Where there is a matrix unit, a bfloat16 left side goes to it (cpu_matmul_amx.go), and
// float32 on both sides in two parts or in three (cpu_matmul_parts.go; to 9 to 48 columns
// cpu_matmul_narrow.go, and gradients of weights of so many cpu_matmul_outer_thirds.go and cpu_matmul_outer_halves.go).
// Rows of float32 to up to eight columns are dot products (cpu_matmul_dots.go), and those of up to sixteen numbers keep
// weights in registers (cpu_matmul_fan.go). Large ones of 17 to 48 numbers to 33 to 48 columns go past the caches
// (cpu_matmul_square.go). Without a matrix unit, rows of few columns are read as they lie (cpu_matmul_eights.go).
// Where enough of a float32 side is zero, zeros are skipped (cpu_matmul_lists.go).

func (c *CPU) MatMul(dst, a, b Matrix, op MatMul) {
	checkMatMul(dst, a, b, op)
	switch {
	case dst.Rows == 0 || dst.Cols == 0:
	case op.TransA && op.TransB:
		t := c.Scratch(b.dtype, b.Cols, b.Rows)
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
	m, ka := a.Rows, a.Cols
	if op.TransA {
		m, ka = ka, m
	}
	kb, n := b.Rows, b.Cols
	if op.TransB {
		kb, n = n, kb
	}
	if ka != kb || dst.Rows != m || dst.Cols != n {
		panic(fmt.Sprintf("tensor: MatMul of %v and %v into %v (TransA %v, TransB %v): the sizes do not fit",
			a, b, dst, op.TransA, op.TransB))
	}
	for _, x := range []Matrix{dst, a, b} {
		if x.dtype != F32 && x.dtype != BF16 {
			panic(fmt.Sprintf("tensor: MatMul on the CPU has no %v", x.dtype))
		}
	}
	if bias := op.After.Bias; !bias.IsZero() && bias.Cols != n {
		panic(fmt.Sprintf("tensor: MatMul into %d columns with a bias of %d", n, bias.Cols))
	}
}

// tallSmall: dst = after(a · op(b)), by blocks of rows.
func (c *CPU) tallSmall(dst, a, b Matrix, op MatMul) {
	if c.level >= simd.AMX && a.dtype == BF16 && a.Cols > 0 {
		c.tallSmall16(dst, a, b, op)
		return
	}
	if c.square(dst, a, b, op) {
		done := c.tallSmallSquare(dst, a, b, op)
		if done == dst.Rows {
			return
		}
		dst, a = dst.Slice(done, dst.Rows), a.Slice(done, a.Rows)
	}
	if c.fan(dst, a, b, op) {
		c.tallSmallFan(dst, a, b, op)
		return
	}
	if c.dots(a, b, dst.Cols) {
		c.tallSmallDots(dst, a, b, op)
		return
	}
	if c.narrow(a, b, dst.Cols) {
		c.tallSmallNarrow(dst, a, b, op)
		return
	}
	if c.splits(a, b, a.Cols, dst.Cols) || c.shallow(a, b, dst.Cols) {
		c.tallSmallParts(dst, a, b, op)
		return
	}
	if c.listTime(a, dst.Cols, false) < listLimit {
		c.tallSmallLists(dst, a, b, op)
		return
	}
	if c.eights(a, b, dst.Cols) {
		c.tallSmallEights(dst, a, b, op)
		return
	}
	c.tallSmallTiles(dst, a, b, op)
}

// tallSmallTiles is tallSmall by tiles in registers.
func (c *CPU) tallSmallTiles(dst, a, b Matrix, op MatMul) {
	g := c.newProduct(a.Cols, dst.Cols)
	panels := c.packSmall(b, op.TransB, g)
	room := c.Scratch(F32, c.threads, g.block*simd.LeftPitch) // a block of a
	tiles := make([]perCore[simd.Tile], c.threads)
	c.rowBlocks(dst, a, op, g.block, g.leastBlocks(), func(sum, in Matrix, thread int) {
		c.block(g, &tiles[thread].of, sum, in, panels, room.row(thread), op.Add)
	})
	c.Free(room)
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

func (c *CPU) newProduct(k, n int) product {
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

// inTurns hands out rows in turns of up to 32 blocks: while a block is computed its follower is asked for, which is lost,
// and worse, where that one is another core's (a tenth of a product of 256 columns and 40 in turns of eight blocks). A
// turn is at most its share of half of what is left, down to so many blocks at least, so that all cores end at about the
// same time. Rows do not depend on each other, so the cut may depend on threads.
func (c *CPU) inTurns(rows, block, least int, body func(lo, hi, thread int)) {
	var starts []int
	for lo := 0; lo < rows; {
		starts = append(starts, lo)
		lo += block * max(least, min(32, (rows-lo)/(2*c.threads*block)))
	}
	starts = append(starts, rows)
	c.run(len(starts)-1, func(turn, thread int) { body(starts[turn], starts[turn+1], thread) })
}

// rowBlocksRoom is how many float32 each core takes for blocks of so many rows.
func rowBlocksRoom(dst Matrix, block int) int {
	if dst.dtype == F32 {
		return 1
	}
	return block * dst.Cols
}

// rowBlocks has product make float32 sums of blocks of rows, at least so many blocks a core, in dst itself or, where that
// is of another type, in room of a core's own; what comes after follows while they are near.
func (c *CPU) rowBlocks(dst, a Matrix, op MatMul, block, least int, product func(sum, in Matrix, thread int)) {
	n := dst.Cols
	sums := c.rooms(F32, rowBlocksRoom(dst, block))
	c.inTurns(dst.Rows, block, least, func(lo, hi, thread int) {
		for ; lo < hi; lo += block {
			end := min(hi, lo+block)
			out, in := dst.Slice(lo, end), a.Slice(lo, end)
			sum := out
			if dst.dtype != F32 {
				sum = dense(sums.row(thread), out.Rows, n)
				if op.Add {
					c.activateSerial(sum, out, After{})
				}
			}
			product(sum, in, thread)
			if sum.base() != out.base() || !op.After.Empty() {
				c.activateSerial(out, sum, op.After.slice(lo, end))
			}
		}
	})
	c.Free(sums)
}

// packSmall packs op(b) into panels of the tile's width, one panel after another.
func (c *CPU) packSmall(b Matrix, trans bool, g product) Matrix {
	small := b
	if b.dtype != F32 {
		small = c.Scratch(F32, b.Rows, b.Cols)
		c.activateSerial(small, b, After{})
	}
	panels := c.Scratch(F32, g.panelCount, g.k*g.nr)
	// A panel is a few microseconds: hand them out only when there is much to do.
	each := max(1, (1<<16)/max(1, g.k*g.nr))
	c.forRows(g.panelCount, each, func(lo, hi, _, _ int) {
		for p := lo; p < hi; p++ {
			if trans {
				simd.PackPanelTransposed(g.level, panels.row(p), small.f32, g.k, g.n, small.stride, p*g.nr, g.nr)
			} else {
				simd.PackPanel(panels.row(p), small.f32, g.k, g.n, small.stride, p*g.nr, g.nr)
			}
		}
	})
	if b.dtype != F32 {
		c.Free(small)
	}
	return panels
}

// block computes one block of rows: dst (+)= a · panels. While it does, it asks for
// the rows of a that follow.
func (c *CPU) block(g product, t *simd.Tile, dst, a, panels Matrix, left []float32, add bool) {
	if g.k == 0 {
		if !add {
			zeroRows(dst)
		}
		return
	}
	t.ARow, t.AStep, t.CRow = 4*simd.LeftPitch, 4, 4*dst.stride
	abase, bbase, cbase := unsafe.Pointer(&left[0]), panels.base(), dst.base()
	for k := 0; k < g.k; k += g.depth {
		t.K = min(g.depth, g.k-k)
		t.Add = flag(add || k > 0)
		part := a.Columns(k, k+t.K)
		// Spread over all tiles of this block, the first rows with the first piece: so many bytes each step of k.
		t.Ahead = uintptr(a.base()) + uintptr(a.dtype.Size()*(dst.Rows*a.stride+k*dst.Rows))
		t.AheadStep = (a.dtype.Size()*g.mr + g.panelCount - 1) / g.panelCount
		for p := range g.panelCount {
			t.Cols = min(g.nr, g.n-p*g.nr)
			t.B = unsafe.Add(bbase, 4*(p*g.k+k)*g.nr)
			for r := 0; r < dst.Rows; r += g.mr {
				if p == 0 { // the tile finds its rows in the nearest cache
					c.copyLeft(left[r*simd.LeftPitch:], part.Slice(r, min(r+g.mr, dst.Rows)))
				}
				t.A = unsafe.Add(abase, r*t.ARow)
				t.C = unsafe.Add(cbase, 4*(r*dst.stride+p*g.nr))
				t.Run(g.level, min(g.mr, dst.Rows-r))
				t.Ahead += uintptr(t.K * t.AheadStep)
			}
		}
	}
}

// copyLeft copies a part of a block's rows to where tiles read them.
func (c *CPU) copyLeft(left []float32, a Matrix) {
	if a.dtype == F32 {
		simd.CopyLeft(c.level, left, a.f32, a.Rows, a.Cols, a.stride)
		return
	}
	to := Matrix{Rows: a.Rows, Cols: a.Cols, dtype: F32, stride: simd.LeftPitch, f32: left}
	c.activateSerial(to, a, After{})
}

// slice is the same for rows lo to hi of the matrix it was made for.
func (a After) slice(lo, hi int) After {
	a.Dropout = a.Dropout.Slice(lo, hi)
	return a
}

// ColumnSum adds each chunk's rows by itself and then the chunks in order.
func (c *CPU) ColumnSum(dst, src Matrix, add bool) {
	if dst.Rows != 1 || dst.Cols != src.Cols || dst.dtype != F32 {
		panic(fmt.Sprintf("tensor: ColumnSum of %v into %v", src, dst))
	}
	out := dst.f32
	if !add {
		clear(out)
	}
	if src.Rows == 0 || src.Cols == 0 {
		return
	}
	// At least 64 rows a chunk, so that the sums of chunks are few beside the rows.
	size := max(64, rowChunk(src.Cols*src.dtype.Size()))
	sums := c.Scratch(F32, (src.Rows+size-1)/size, src.Cols)
	c.forRows(src.Rows, size, func(lo, hi, chunk, _ int) {
		s := sums.row(chunk)
		clear(s)
		part := src.Slice(lo, hi)
		if src.dtype == BF16 {
			simd.AddRows16(c.level, s, part.b16, part.Rows, part.Cols, part.stride)
		} else {
			simd.AddRows(c.level, s, part.f32, part.Rows, part.Cols, part.stride)
		}
	})
	simd.AddRows(c.level, out, sums.f32, sums.Rows, sums.Cols, sums.stride)
	c.Free(sums)
}

// dense is a float32 matrix without gaps in memory that is at least as large.
func dense(mem []float32, rows, cols int) Matrix {
	return Matrix{Rows: rows, Cols: cols, dtype: F32, stride: cols, f32: mem[:rows*cols]}
}

func zeroRows(m Matrix) {
	for i := range m.Rows {
		clear(m.row(i))
	}
}

// transpose: both of the same type.
func transpose(dst, src Matrix) {
	for i := range dst.Rows {
		for j := range dst.Cols {
			if dst.dtype == F32 {
				dst.f32[i*dst.stride+j] = src.f32[j*src.stride+i]
			} else {
				dst.b16[i*dst.stride+j] = src.b16[j*src.stride+i]
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
