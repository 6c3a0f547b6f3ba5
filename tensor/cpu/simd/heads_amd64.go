package simd

import "unsafe"

// noEntries stands for the entries that the loops over dense rows do not have.
var noEntries int64

// dotArgs is what the assembly reads: the order of its fields is known to asm/attend.
type dotArgs struct {
	x               unsafe.Pointer // the first head's last load
	xStride, xHead  int            // bytes from row to row and head to head
	y               unsafe.Pointer
	yStride, yHead  int
	rows, heads     int
	whole           int    // bytes of x from a head's last load to its first
	tail            uint64 // columns of the last
	parts, partsEnd unsafe.Pointer
	out             *float32
}

// dots512 computes x_h · y_h for all heads of rows from r on, one after the other, as many as
// out has. Rows of y are of the same type as
// those of x or, where their stride is 0, one of float32, for bfloat16 in the order of lanes.
func dots512(x, y Strided, out []float32, r, heads, width int) {
	var room [16 * 17]float32
	bf16 := x.B16 != nil
	each, tail := vectorsOf(width, bf16)
	parts := lineOf(room[:])
	d := dotArgs{
		rows: len(out) / heads, heads: heads, whole: -64 * (each - 1), tail: tail,
		parts: parts, partsEnd: unsafe.Add(parts, 64*16), out: &out[0],
	}
	d.x, d.xStride = x.at(r, 0)
	d.y, d.yStride = y.at(r, 0)
	d.xHead = width * x.size()
	d.yHead = d.xHead
	last := -d.whole
	d.x = unsafe.Add(d.x, last)
	switch raw := (*byte)(unsafe.Pointer(&d)); {
	case !bf16:
		d.y = unsafe.Add(d.y, last)
		dotHeads512(raw)
	case y.B16 != nil:
		d.y = unsafe.Add(d.y, last)
		dotHeads512b16(raw)
	default:
		d.y, d.yHead = unsafe.Add(d.y, 2*last), 128*each
		dotHeadsRow512b16(raw)
	}
}

// dotWorkspace is how many dot products are made before they go to their places.
const dotWorkspace = 1024

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
	if level < AVX512 || a.Heads > dotWorkspace {
		return false
	}
	with := a.A
	if a.Z.B16 != nil {
		with = arrangeHeads(a.A, a.Width)
	}
	y := Strided{F32: with}
	if a.Score.Stride == a.Heads {
		dots512(a.Z, y, a.Score.F32[:a.Rows*a.Heads], 0, a.Heads, a.Width)
		return true
	}
	var list [dotWorkspace]float32
	for r, n := 0, 0; r < a.Rows; r += n {
		n = min(dotWorkspace/a.Heads, a.Rows-r)
		dots512(a.Z, y, list[:n*a.Heads], r, a.Heads, a.Width)
		for i := range n {
			copy(a.Score.F32[(r+i)*a.Score.Stride:], list[i*a.Heads:(i+1)*a.Heads])
		}
	}
	return true
}

// arrangeHeads is arrange for each of a row's heads.
func arrangeHeads(row []float32, width int) []float32 {
	block := (width + 31) &^ 31
	list := make([]float32, len(row)/width*block)
	for h := range len(row) / width {
		arrange(list[h*block:][:block], row[h*width:(h+1)*width], true)
	}
	return list
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
		s.headShape, s.tail = panelShape(cols, bf16)
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
	if level < AVX512 || a.Width == 0 || (a.Dst.B16 != nil) != (a.DDst.B16 != nil) {
		return false
	}
	var list [dotWorkspace]float32
	for r, n := 0, 0; r < a.Rows; r += n {
		n = min(dotWorkspace/a.Heads, a.Rows-r)
		dots512(a.DDst, a.Dst, list[:n*a.Heads], r, a.Heads, a.Width)
		a.pack(r, list[:n*a.Heads])
	}
	return true
}

// pack packs the rows from r on, whose heads' delta are given.
func (a *AttentionPack) pack(r int, delta []float32) {
	size, p := packRow(a.Heads), packLanes(a.Heads)
	for ; len(delta) > 0; r, delta = r+1, delta[a.Heads:] {
		right, top, inv := a.Right.F32[r*a.Right.Stride:], a.Max.F32[r*a.Max.Stride:], a.Inv.F32[r*a.Inv.Stride:]
		for k := 0; k < a.Heads; k += p {
			to := a.Packed[r*size+4*k:]
			if p == 4 && a.Heads-k >= 4 { // arrays, which are copied without a call
				*(*[4]float32)(to) = [4]float32(right[k:])
				*(*[4]float32)(to[4:]) = [4]float32(top[k:])
				*(*[4]float32)(to[8:]) = [4]float32(inv[k:])
				*(*[4]float32)(to[12:]) = [4]float32(delta[k:])
				continue
			}
			for i := range min(p, a.Heads-k) {
				to[i], to[p+i], to[2*p+i], to[3*p+i] = right[k+i], top[k+i], inv[k+i], delta[k+i]
			}
		}
	}
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
		edge: (*float32)(unsafe.Add(unsafe.Pointer(&edge[0]),
			4*int(ptr[0])*heads)), heads: heads, swaps: swapsFrom(heads),
	}
	sumEntries512((*byte)(unsafe.Pointer(&s)))
	return true
}
