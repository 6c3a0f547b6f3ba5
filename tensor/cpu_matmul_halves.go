package tensor

import (
	"unsafe"

	"starling/tensor/simd"
)

// Products of float32 rows on a matrix unit that knows half precision, each number in two parts (see simd.Halves):
// half the products of cpu_matmul_split.go, whose cuts into blocks, groups and slices these are.

// farResult is how many bytes a result has that is not in any cache near when it is written. Asking for it first
// is then worth a tenth of a shallow product (100 columns to 256), and costs a twentieth where it is near.
const farResult = 16 << 20

func (c *CPU) halves() bool { return c.level >= simd.AMXFP16 }

// shallow reports whether a product of few columns to many goes by halves: from most of a block on. 32 to 47 columns to
// 256, the gradient before a last layer, take 0.55-0.8 of the time that tiles in registers do.
func (c *CPU) shallow(a, b Matrix, cols int) bool {
	return c.halves() && a.dtype == F32 && b.dtype == F32 && a.Cols >= 24 && cols > 48
}

// tallSmallHalves: dst = after(a · op(b)), by blocks of rows.
func (c *CPU) tallSmallHalves(dst, a, b Matrix, op MatMul) {
	n, cols, blocks := dst.Cols, up32(dst.Cols), up32(a.Cols)/32
	pieces := (a.Cols + splitDepth - 1) / splitDepth
	depth := (blocks + pieces - 1) / pieces // blocks of a piece
	panels, backs := c.halveSmall(b, op.TransB, a.Cols, n)
	left := c.Scratch(BF16, c.threads, splitRows/32*depth*simd.HalfBlock)
	room := c.Scratch(F32, c.threads, simd.RoomHalves+splitRows+splitRows*cols)
	tiles := make([]perCore[simd.Halves], c.threads)
	c.inTurns(dst.Rows, splitRows, max(1, (1<<22)/(splitRows*32*blocks*cols)), func(lo, hi, thread int) {
		t, strips, mine := &tiles[thread].of, left.row16(thread), room.row(thread)
		backA, sums := mine[simd.RoomHalves:simd.RoomHalves+splitRows], mine[simd.RoomHalves+splitRows:]
		t.Room, t.BackA, t.BackB = unsafe.Pointer(&mine[0]), unsafe.Pointer(&backA[0]), backs.base()
		for ; lo < hi; lo += splitRows {
			end := min(hi, lo+splitRows)
			out, in := dst.Slice(lo, end), a.Slice(lo, end)
			sum := out
			far := !op.Add && past(out.block(0), dst.Bytes()).Past
			if out.Rows%32 != 0 || dst.dtype != F32 || cols != n || far && !op.After.Empty() {
				sum = dense(sums, out.Rows, cols).Columns(0, n)
				if op.Add {
					c.activateSerial(sum, out, After{})
				}
			}
			t.C, t.CRow = sum.base(), 4*sum.stride
			t.Past = flag(far && sum.base() == out.base() && depth == blocks)
			t.Own = flag(4*dst.Rows*dst.stride >= farResult && t.Past == 0)
			t.Rows, t.Panels = up32(out.Rows)/32, cols/32
			t.BPanel = 2 * panels.stride
			for first := 0; first < blocks; first += depth {
				t.Depth = min(depth, blocks-first)
				part := in.Columns(32*first, min(in.Cols, 32*(first+t.Depth)))
				c.halveStrips(strips, backA, part, t.Depth)
				t.A, t.APanel = unsafe.Pointer(&strips[0]), 2*t.Depth*simd.HalfBlock
				t.B = unsafe.Add(panels.base(), 2*first*simd.HalfBlock)
				t.Add = flag(op.Add || first > 0)
				t.Ahead = uintptr(part.base()) + uintptr(4*splitRows*a.stride)
				t.AheadStep = min(1024, 4096/t.Panels)
				t.Run(c.level)
			}
			if sum.base() != out.base() || !op.After.Empty() {
				c.finish(out, sum, op.After.slice(lo, end), dst.Bytes())
			}
		}
	})
	c.Free(left)
	c.Free(room)
	c.Free(backs)
	c.Free(panels)
}

// halveStrips halves rows into strips of so many blocks.
func (c *CPU) halveStrips(dst []uint16, back []float32, a Matrix, blocks int) {
	for i := 0; i < a.Rows; i += 32 {
		strip := a.Slice(i, min(a.Rows, i+32))
		simd.HalveRows(c.level, dst[i/32*blocks*simd.HalfBlock:], back[i:], strip.f32, strip.Rows, strip.Cols, strip.stride)
	}
}

// halveSmall halves op(b), k x n, into panels, one a row, and says what takes the scales of columns back.
func (c *CPU) halveSmall(b Matrix, trans bool, k, n int) (panels, backs Matrix) {
	blocks := up32(k) / 32
	panels = c.Scratch(BF16, up32(n)/32, blocks*simd.HalfBlock)
	backs = c.Scratch(F32, panels.Rows, 32)
	c.forRows(panels.Rows, max(1, 64/blocks), func(lo, hi, _, _ int) {
		to, back := panels.b16[lo*panels.stride:], backs.f32[32*lo:32*hi]
		if !trans {
			part := b.Columns(32*lo, min(n, 32*hi))
			simd.HalvePairs(c.level, to, back, part.f32, k, part.Cols, part.stride, panels.stride)
			return
		}
		c.halveStrips(to, back, b.Slice(32*lo, min(n, 32*hi)), blocks)
		simd.TurnHalves(c.level, to, (hi-lo)*blocks)
	})
	return panels, backs
}

// tallTallHalves is tallTall: a slice of a is halved as a whole, and its tiles turned; of b a few panels at a time,
// just before they are multiplied.
func (c *CPU) tallTallHalves(dst, a, b Matrix, op MatMul) {
	m, n := up32(dst.Rows), up32(dst.Cols)
	g := newSplitGroups(a.Rows, m, n, 192)
	panel := g.depth / 32 * simd.HalfBlock
	roomA := m / 32 * panel
	wide := min(n/32, 4)
	room := c.Scratch(BF16, c.threads, roomA+wide*panel)
	backs := c.Scratch(F32, c.threads, simd.RoomHalves+m+32*wide)
	sums := c.Scratch(F32, g.groups, m*n)
	tiles := make([]perCore[simd.Halves], c.threads)
	c.run(g.groups, func(group, thread int) {
		t, mine, back := &tiles[thread].of, room.row16(thread), backs.row(thread)
		left, right := mine[:roomA], mine[roomA:]
		backA, backB := back[simd.RoomHalves:simd.RoomHalves+m], back[simd.RoomHalves+m:]
		lo, hi := g.start(group), g.start(group+1)
		sum := dense(sums.row(group), m, n)
		if lo >= hi {
			zeroRows(sum)
		}
		for first := lo; lo < hi; lo += g.depth {
			end := min(hi, lo+g.depth)
			partA, partB := a.Slice(lo, end), b.Slice(lo, end)
			simd.HalvePairs(c.level, left, backA, partA.f32, partA.Rows, partA.Cols, partA.stride, panel)
			t.Depth, t.Rows, t.Panels = up32(partA.Rows)/32, m/32, 1
			for i := range t.Rows {
				simd.TurnHalves(c.level, left[i*panel:], t.Depth)
			}
			t.A, t.APanel, t.BPanel = unsafe.Pointer(&left[0]), 2*panel, 2*panel
			t.BackA, t.Room = unsafe.Pointer(&backA[0]), unsafe.Pointer(&back[0])
			t.CRow, t.Add = 4*sum.stride, flag(lo > first)
			steps := t.Depth * t.Rows
			next := nextSlice(partA, partB, steps*n/32)
			for j := range n / 32 {
				at := j % wide
				if at == 0 {
					some := partB.Columns(32*j, min(partB.Cols, 32*(j+wide)))
					simd.HalvePairs(c.level, right, backB, some.f32, some.Rows, some.Cols, some.stride, panel)
				}
				t.B, t.BackB, t.C = unsafe.Pointer(&right[at*panel]), unsafe.Pointer(&backB[32*at]), unsafe.Pointer(&sum.f32[32*j])
				t.Ahead, t.AheadStep = next.take(steps)
				t.Run(c.level)
			}
		}
	})
	c.Free(room)
	c.Free(backs)
	c.addGroups(dst, sums, n, op)
	c.Free(sums)
}
