package cpu

import (
	"math"
	"unsafe"

	"starling/tensor/cpu/simd"
)

// Products that skip zeros, in registers. Of what relu and dropout leave, and of the gradient before them, three
// numbers of four are zero. Rows of such a side, in pieces of up to 64 numbers, become compressed rows of the others, and
// each of these adds its multiple of a row of the other side, of which some panels stay in the nearest cache.

// Zero skipping is faster where zeros are many and the other side is wide. Of the time without them a product takes about
//
//	making / columns of the other side + adding · share of numbers that are not zero
//
// skipCost has the two, measured at shares of 0.1 to 0.5 and 64 to 602 columns (BenchmarkZeroSkipping);
// transposed is for compressed columns. AMX without fp16 keeps what is not a gradient of weights: of
// its speed at good moments zero skipping has 0.8 to 1.1 there, at a share of a quarter. With fp16 it keeps all.
func skipCost(level simd.Level, transposed bool) (making, adding float64) {
	switch {
	case level == simd.AMX && transposed:
		return 85, 2.2
	case level == simd.AVX512 && transposed:
		return 50, 1.2
	case level == simd.AVX512:
		return 26, 1.2
	case level == simd.AVX2:
		return 90, 1.15
	}
	return math.Inf(1), 0
}

// skipLimit is the time, of that without, from which on zeros are not skipped.
const skipLimit = 0.92

// skipTime is about how long a product takes with m's rows compressed, or its columns, of the
// time without, or skipLimit
// where that is too long. zeros is the share of zeros that the caller expects of m.
func (c *Device) skipTime(m Matrix, cols int, zeros float32, columns bool) float64 {
	making, adding := skipCost(c.gemm, columns)
	making /= float64(max(1, cols))
	if zeros == 0 || making > skipLimit || m.Type() != F32 || m.Rows < skipBlock || m.Cols < 32 {
		return skipLimit
	}
	return making + adding*float64(1-zeros)
}

// skipBlock is how many rows go through the panels together.
const skipBlock = 64

// compressedFloats is the space of a compressed row.
const compressedFloats = int(unsafe.Sizeof(simd.CompressedRow{})) / 4

// compressedIn is n compressed rows in memory of float32.
func compressedIn(mem []float32, n int) []simd.CompressedRow {
	return unsafe.Slice((*simd.CompressedRow)(unsafe.Pointer(&mem[:n*compressedFloats][0])), n)
}

// tallSmallSkipping: dst = after(a · op(b)), by blocks of rows.
func (c *Device) tallSmallSkipping(dst, a, b Matrix, op MatMul) {
	k, n, cols := a.Cols, dst.Cols, up32(dst.Cols)
	pieces := c.packPieces(b, op.TransB, k, n)
	workspace := c.Scratch(F32, c.threads, skipBlock*(compressedFloats+cols))
	tiles := make([]perCore[simd.CompressedTile], c.threads)
	c.blockRanges(dst.Rows, skipBlock, max(1, (1<<21)/(2*skipBlock*k*cols)), func(lo, hi, thread int) {
		mine, t := rowOf(workspace, thread), &tiles[thread].of
		compact := compressedIn(mine, skipBlock)
		for ; lo < hi; lo += skipBlock {
			end := min(hi, lo+skipBlock)
			out, in := dst.Slice(lo, end), a.Slice(lo, end)
			sum := out
			if dst.Type() != F32 || cols != n {
				sum = part(workspace, thread, skipBlock*compressedFloats, out.Rows, cols).Columns(0, n)
				if op.Add {
					c.activateSerial(sum, out, Epilogue{})
				}
			}
			t.Compressed, t.Rows, t.CRow = &compact[0], out.Rows, 4*sum.Stride()
			next := nextBlock(in, c.compressedRuns(n)*pieces.Rows*in.Rows)
			for i := range pieces.Rows {
				part := in.Columns(i*simd.CompressedDepth, min(k, (i+1)*simd.CompressedDepth))
				simd.CompressRows(c.level, compact, f32Of(part), part.Rows, part.Cols, part.Stride())
				t.Add = flag(op.Add || i > 0)
				c.runCompressed(t, sum, rowOf(pieces, i), &next)
			}
			if baseOf(sum) != baseOf(out) || !op.Epilogue.Empty() {
				c.activateSerial(out, sum, op.Epilogue.Slice(lo, end))
			}
		}
	})
	c.Free(workspace)
	c.Free(pieces)
}

// packPieces packs op(b), k x n, in pieces as deep as compressed rows, one per row.
func (c *Device) packPieces(b Matrix, trans bool, k, n int) Matrix {
	small, p := b, simd.CompressedPacking(c.level)
	if b.Type() != F32 {
		small = c.Scratch(F32, b.Rows, b.Cols)
		c.activateSerial(small, b, Epilogue{})
	}
	pieces := c.Scratch(F32, (k+simd.CompressedDepth-1)/simd.CompressedDepth, p.Size(n))
	c.run(pieces.Rows, func(i, _ int) {
		lo, hi := i*simd.CompressedDepth, min(k, (i+1)*simd.CompressedDepth)
		if !trans {
			pack(c.level, rowOf(pieces, i), small.Slice(lo, hi), p)
			return
		}
		for j := 0; j < n; j += p.Width {
			simd.PackPanelTransposed(c.level, rowOf(pieces, i)[j*p.Depth:], f32Of(small)[lo:], hi-lo, n, small.Stride(),
				j, p.Width)
		}
	})
	if b.Type() != F32 {
		c.Free(small)
	}
	return pieces
}

// runCompressed multiplies compressed rows with all panels. Meanwhile it prefetches what is next.
func (c *Device) runCompressed(t *simd.CompressedTile, sum Matrix, panels []float32, next *prefetch) {
	p := simd.CompressedPacking(c.level)
	for j := 0; j < sum.Cols; j += simd.CompressedPanels * p.Width {
		t.B, t.C = unsafe.Pointer(&panels[j*p.Depth]), unsafe.Add(baseOf(sum), 4*j)
		t.Ahead, t.AheadStep = next.take(t.Rows)
		t.Run(c.level, min(simd.CompressedPanels, simd.Panels(sum.Cols-j, p.Width)))
	}
}

// compressedRuns is how often runCompressed runs a tile for n columns.
func (c *Device) compressedRuns(n int) int {
	return simd.Panels(n, simd.CompressedPanels*simd.CompressedPacking(c.level).Width)
}

// tallTallSkipping is tallTall with compressed columns of a.
func (c *Device) tallTallSkipping(dst, a, b Matrix, op MatMul) {
	m, n := dst.Rows, up32(dst.Cols)
	g := newSplitGroups(a.Rows, m, n, simd.CompressedDepth)
	p := simd.CompressedPacking(c.level)
	const transposed = 16 * simd.CompressedDepth
	sizeA := m * compressedFloats
	workspace := c.Scratch(F32, c.threads, sizeA+transposed+p.Size(n))
	sums := c.Scratch(F32, g.groups, m*n)
	tiles := make([]perCore[simd.CompressedTile], c.threads)
	c.run(g.groups, func(group, thread int) {
		mine, t := rowOf(workspace, thread), &tiles[thread].of
		compact, columns, panels := compressedIn(mine, m), mine[sizeA:sizeA+transposed], mine[sizeA+transposed:]
		lo, hi := g.start(group), g.start(group+1)
		sum := part(sums, group, 0, m, n)
		if lo >= hi {
			zeroRows(sum)
		}
		t.Compressed, t.Rows, t.CRow = &compact[0], m, 4*n
		for first := lo; lo < hi; lo += g.depth {
			end := min(hi, lo+g.depth)
			partA, partB := a.Slice(lo, end), b.Slice(lo, end)
			c.compressColumns(compact, columns, partA)
			pack(c.level, panels, partB, p)
			t.Add = flag(lo > first)
			next := nextSlice(partA, partB, c.compressedRuns(n)*m)
			c.runCompressed(t, sum, panels, &next)
		}
	})
	c.Free(workspace)
	c.addGroups(dst, sums, n, op)
	c.Free(sums)
}

// compressColumns compresses a's columns, sixteen at a time, which columns has space for.
func (c *Device) compressColumns(compact []simd.CompressedRow, columns []float32, a Matrix) {
	for j := 0; j < a.Cols; j += 16 {
		some := a.Columns(j, min(a.Cols, j+16))
		simd.PackPanelTransposed(c.level, columns, f32Of(some), some.Cols, some.Rows, some.Stride(), 0,
			simd.CompressedDepth)
		simd.CompressRows(c.level, compact[j:], columns, some.Cols, some.Rows, simd.CompressedDepth)
	}
}
