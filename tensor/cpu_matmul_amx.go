package tensor

import (
	"unsafe"

	"starling/tensor/simd"
)

// Products of bfloat16 rows on the matrix unit, four to ten times the rate of
// float32. It works in tiles of 32 x 32 x 32, so edges are padded on the way: the
// rows of a block in scratch, the small side when it is packed. Sums are float32
// throughout. A float32 small side, that is weights, is rounded to bfloat16 first.

func up32(n int) int { return (n + 31) &^ 31 }

// tallSmall16: dst = after(a · op(b)) for bfloat16 a, by blocks of rows.
func (c *CPU) tallSmall16(dst, a, b Matrix, op MatMul) {
	const block = 64
	depth, cols := up32(a.Cols), up32(dst.Cols)
	panels := c.packSmall16(b, op.TransB, depth, dst.Cols)
	sums, rows := c.Scratch(F32, c.threads, block*cols), c.Scratch(BF16, c.threads, block*depth)
	tiles := make([]perCore[simd.Tiles16], c.threads)
	c.inTurns(dst.Rows, block, max(1, (1<<22)/max(1, 2*block*depth*cols)), func(lo, hi, thread int) {
		for ; lo < hi; lo += block {
			end := min(hi, lo+block)
			out, in := dst.Slice(lo, end), a.Slice(lo, end)
			whole := in.Rows%32 == 0
			sum := out
			if !whole || dst.dtype != F32 || cols != dst.Cols {
				sum = dense(sums.row(thread), out.Rows, cols).Columns(0, out.Cols)
				if op.Add {
					c.activateSerial(sum, out, After{})
				}
			}
			if !whole || depth != a.Cols {
				in = padRows(rows.row16(thread), in, depth)
			}
			t := &tiles[thread].of
			t.A, t.B, t.C = in.base(), panels.base(), sum.base()
			t.ARow, t.CRow, t.Add = 2*in.stride, 4*sum.stride, flag(op.Add)
			t.Depth, t.Rows, t.Panels = depth/32, up32(in.Rows)/32, cols/32
			// The block that follows, spread over all steps of this one.
			t.Ahead = uintptr(a.Slice(lo, end).base()) + uintptr(2*block*a.stride)
			t.AheadStep = min(512, 2048/t.Panels)
			t.Run(c.level)
			if sum.base() != out.base() || !op.After.Empty() {
				c.activateSerial(out, sum, op.After.slice(lo, end))
			}
		}
	})
	c.Free(rows)
	c.Free(sums)
	c.Free(panels)
}

// packSmall16 packs op(b), rounded to bfloat16, for the matrix unit.
func (c *CPU) packSmall16(b Matrix, trans bool, depth, n int) Matrix {
	small := b
	if b.dtype != F32 {
		small = c.Scratch(F32, b.Rows, b.Cols)
		c.activateSerial(small, b, After{})
	}
	k := b.Rows
	if trans {
		k = b.Cols
	}
	panels := c.Scratch(BF16, up32(n)/32, depth*32)
	c.forRows(panels.Rows, max(1, (1<<15)/(depth*32)), func(lo, hi, _, _ int) {
		for p := lo; p < hi; p++ {
			simd.PackPairsPanel(panels.row16(p), small.f32, k, n, small.stride, p*32, depth/32, trans)
		}
	})
	if b.dtype != F32 {
		c.Free(small)
	}
	return panels
}

// padRows copies rows to mem with zeros up to depth columns. Rows past the last are
// whatever mem holds: they make rows of sums that nobody reads.
func padRows(mem []uint16, rows Matrix, depth int) Matrix {
	for i := range rows.Rows {
		d := mem[i*depth : (i+1)*depth]
		clear(d[copy(d, rows.row16(i)):])
	}
	return Matrix{Rows: rows.Rows, Cols: depth, dtype: BF16, stride: depth, b16: mem}
}

// tallTall16 is tallTall for bfloat16 on both sides: a slice of a is transposed, one
// of b is packed in pairs.
func (c *CPU) tallTall16(dst, a, b Matrix, op MatMul) {
	m, n := up32(dst.Rows), up32(dst.Cols)
	g := newTallTall(c.level, a.Rows, m, n)
	roomA, roomB, tail := m*g.depth, n*g.depth, 32*max(m, n)
	room := c.Scratch(BF16, c.threads, roomA+roomB+tail)
	sums := c.Scratch(F32, g.groups, m*n)
	tiles := make([]perCore[simd.Tiles16], c.threads)
	c.run(g.groups, func(group, thread int) {
		mine := room.row16(thread)
		s := slice16{t: &tiles[thread].of, left: mine[:roomA], right: mine[roomA : roomA+roomB], tail: mine[roomA+roomB:],
			sum: dense(sums.row(group), m, n), level: c.level}
		lo := group * g.rows
		hi := min(a.Rows, lo+g.rows)
		if lo >= hi {
			zeroRows(s.sum)
		}
		for first := lo; lo < hi; lo += g.depth {
			end := min(hi, lo+g.depth)
			s.run(a.Slice(lo, end), b.Slice(lo, end), lo > first)
		}
	})
	c.Free(room)
	c.addGroups(dst, sums, n, op)
	c.Free(sums)
}

// slice16 is what one thread needs to add a slice of rows to the sums of its group.
type slice16 struct {
	level             simd.Level
	t                 *simd.Tiles16
	left, right, tail []uint16
	sum               Matrix
}

func (s slice16) run(a, b Matrix, add bool) {
	depth := up32(a.Rows)
	whole := a.Rows &^ 31
	simd.PackTransposed(s.level, s.left, a.b16, whole, a.Cols, a.stride, depth)
	simd.PackPairs(s.level, s.right, b.b16, whole, b.Cols, b.stride, 32*depth)
	if whole < depth {
		rest := s.rest(a, whole)
		simd.PackTransposed(s.level, s.left[whole:], rest.b16, 32, a.Cols, rest.stride, depth)
		rest = s.rest(b, whole)
		simd.PackPairs(s.level, s.right[32*whole:], rest.b16, 32, b.Cols, rest.stride, 32*depth)
	}
	t := s.t
	t.A = unsafe.Pointer(&s.left[0])
	t.ARow, t.CRow, t.Add = 2*depth, 4*s.sum.stride, flag(add)
	t.Depth, t.Rows, t.Panels = depth/32, s.sum.Rows/32, 1
	steps := t.Depth * t.Rows
	next := nextSlice(a, b, steps*s.sum.Cols/32)
	for j := 0; j < s.sum.Cols; j += 32 {
		t.B = unsafe.Pointer(&s.right[j*depth])
		t.C = unsafe.Pointer(&s.sum.f32[j])
		t.Ahead, t.AheadStep = next.take(steps)
		t.Run(s.level)
	}
}

// rest is the rows of m from lo on, fewer than 32, with rows of zeros after them.
func (s slice16) rest(m Matrix, lo int) Matrix {
	clear(s.tail[:32*m.Cols])
	padRows(s.tail, m.Slice(lo, m.Rows), m.Cols)
	return Matrix{Rows: 32, Cols: m.Cols, dtype: BF16, stride: m.Cols, b16: s.tail}
}
