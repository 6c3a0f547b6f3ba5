package simd

import "unsafe"

// noEntries stands for the entries that the loops over dense rows do not have.
var noEntries int64

// dots512 computes, for the rows of x, out = x_h · y_h a head. y is as many
// rows of the same type, or, when row is not nil, that one row.
//
// Of each row of out, together heads lie side by side, those that follow four times as far.
func dots512(x, y Strided, row []float32, out *float32, outStride, together, rows, heads, width int) {
	bf16 := x.B16 != nil
	var buf [panelCols + 16*(foldParts+1)]float32
	var places [16]uint32
	place := func(head int) int { return head/together*4*together + head%together }
	passes, count := headPasses(heads, width, bf16)
	for _, p := range passes[:count] {
		col := p.first * width
		parts := lineOf(buf[panelCols:])
		s := attendRowArgs{
			ptr: &noEntries, rows: rows, gap: 4 * outStride, zbuf: &buf[0], headShape: p.shape(width, bf16),
			dots: (*float32)(unsafe.Add(unsafe.Pointer(out), 4*place(p.first))), parts: parts, partsEnd: unsafe.Add(parts, 64*foldParts), places: &places,
		}
		for l := range places {
			places[l] = uint32(l/p.heads*outStride + place(p.first+l%p.heads) - place(p.first))
		}
		s.mask = s.tail
		s.src, s.srcStride = x.at(0, col)
		switch {
		case row == nil:
			s.z, s.zStride = y.at(0, col)
		case bf16:
			p.arrange(buf[:panelCols], row[col:], width)
		default:
			s.z = unsafe.Pointer(&row[col])
		}
		if raw := (*byte)(unsafe.Pointer(&s)); bf16 {
			dotHeads512b16(raw)
		} else {
			dotHeads512(raw)
		}
	}
}

// arrange puts heads of a row into the order of lanes in which dot products with bfloat16 take them.
func (p headPass) arrange(buf, row []float32, width int) {
	heads, width := p.heads/p.share, p.share*width
	block, room := blockCols(width, true), p.room(width, true)
	n := (width - 1) / block * block
	for h := range heads {
		head := row[h*width:][:width]
		to := buf[(h+1)*room-n-block:][:n+block]
		arrange(to[:n], head[:n], block == 32)
		head = head[n:]
		if h == heads-1 && heads*width >= block { // the last block ends with the row
			head = row[heads*width-block:][:block]
		}
		arrange(to[n:], head, block == 32)
	}
}

// laneOf is where the assembly keeps column c of a panel: bfloat16 has the even
// columns of each 32, then the odd ones.
func laneOf(c int, bf16 bool) int {
	if bf16 {
		return c&^31 + c>>1&15 + c&1<<4
	}
	return c
}

// arrange puts a row into the order of lanes, zeros after it.
func arrange(buf, row []float32, bf16 bool) {
	clear(buf)
	for c, x := range row {
		buf[laneOf(c, bf16)] = x
	}
}

func headDotFast(level Level, a *HeadDots) bool {
	if level < AVX512 || a.Heads > MaxHeads || a.Width > panelCols {
		return false
	}
	dots512(a.Z, Strided{}, a.A, &a.Score.F32[0], a.Score.Stride, MaxHeads, a.Rows, a.Heads, a.Width)
	return true
}

func headDotGradFast(level Level, a *HeadDots) bool {
	bf16 := a.Z.B16 != nil
	hasDZ := a.DZ.F32 != nil || a.DZ.B16 != nil
	if level < AVX512 || a.Heads > MaxHeads || hasDZ && (a.DZ.B16 != nil) != bf16 {
		return false
	}
	var room [3*panelCols + 16]float32 // stores and loads that are whole lines
	list := unsafe.Slice((*[panelCols]float32)(lineOf(room[:])), 3)
	sum, row, heads := &list[0], &list[1], &list[2]
	for c := 0; c < a.Heads*a.Width; c += panelCols {
		cols := min(panelCols, a.Heads*a.Width-c)
		clear(sum[:])
		first := unusedCols(cols, bf16)
		arrange(row[first:], a.A[c:c+cols], bf16)
		s := attendRowArgs{
			ptr: &noEntries, rows: a.Rows, weights: &a.Score.F32[0], gap: 4 * a.Score.Stride, heads: 1<<a.Heads - 1,
			patterns: pattern(heads[:], c, cols, a.Width, bf16), zbuf: &sum[0], z: unsafe.Pointer(&row[0]),
		}
		s.headShape, s.mask = panelShape(cols, bf16)
		s.src, s.srcStride = a.Z.at(0, c)
		if hasDZ {
			s.dst, s.dstStride = a.DZ.at(0, c)
			s.mode = modeOf(level, a.DZ)
		}
		if raw := (*byte)(unsafe.Pointer(&s)); bf16 {
			headGrad512b16(raw)
		} else {
			headGrad512(raw)
		}
		for k := range cols {
			a.DA[c+k] += sum[first+laneOf(k, bf16)]
		}
	}
	return true
}

func packAttentionFast(level Level, a *AttentionPack) bool {
	if level < AVX512 || a.Width > panelCols || (a.Dst.B16 != nil) != (a.DDst.B16 != nil) {
		return false
	}
	n, p := packRow(a.Heads), packLanes(a.Heads)
	dots512(a.DDst, a.Dst, nil, &a.Packed[3*p], n, p, a.Rows, a.Heads, a.Width)
	for r := range a.Rows {
		right, top, inv := a.Right.F32[r*a.Right.Stride:], a.Max.F32[r*a.Max.Stride:], a.Inv.F32[r*a.Inv.Stride:]
		for k := 0; k < a.Heads; k += p {
			to := a.Packed[r*n+4*k:]
			if p == 4 && a.Heads-k >= 4 { // arrays, which are copied without a call
				*(*[4]float32)(to) = [4]float32(right[k:])
				*(*[4]float32)(to[4:]) = [4]float32(top[k:])
				*(*[4]float32)(to[8:]) = [4]float32(inv[k:])
				continue
			}
			for i := range min(p, a.Heads-k) {
				to[i], to[p+i], to[2*p+i] = right[k+i], top[k+i], inv[k+i]
			}
		}
	}
	return true
}

// sumEntriesArgs is what sumEntries512 reads.
type sumEntriesArgs struct {
	ptr       *int64
	rows      int
	edge      *float32
	dst       *float32
	dstStride int
	heads     int
	swaps     uint64
}

func sumEntriesFast(level Level, dst Strided, ptr []int64, edge []float32, heads int) bool {
	if level < AVX512 || heads > 16 || heads&(heads-1) != 0 || len(edge) == 0 {
		return false
	}
	s := sumEntriesArgs{
		ptr: &ptr[0], rows: len(ptr) - 1, dst: &dst.F32[0], dstStride: 4 * dst.Stride,
		edge: (*float32)(unsafe.Add(unsafe.Pointer(&edge[0]), 4*int(ptr[0])*heads)), heads: heads, swaps: swapsFrom(heads),
	}
	sumEntries512((*byte)(unsafe.Pointer(&s)))
	return true
}
