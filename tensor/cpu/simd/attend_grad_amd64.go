package simd

import (
	"slices"
	"unsafe"
)

// attendGradArgs is what the assembly of the backward pass reads, as attendArgs.
type attendGradArgs struct {
	ptr       *int64
	index     *uint32
	rows      int
	src       unsafe.Pointer
	srcStride int
	dst       unsafe.Pointer
	dstStride int
	z         unsafe.Pointer
	zStride   int
	headShape
	mode                  int
	loop                  int // how wide rows are asked for, see gradAsk
	prefetch              int
	last                  *uint32 // the last entry, whose wide row may be asked for early
	ask                   *uint32 // the same for what coefficients are made of; nil: none
	buf                   unsafe.Pointer
	packed                *float32
	packStride, packLanes int // numbers from row to row and from one kind to the next
	lanes                 int // heads
	heads                 uint64
	groupBytes            int // of a vector's entries in index
	batchBytes            int // the same of the groups that are done at once
	tables                *[3][16]uint32
	left                  unsafe.Pointer
	leftStride            int
	dleft                 unsafe.Pointer
	dleftStride           int
	slope                 uint64
	drop, threshold       uint64
	scale                 uint64
	keys                  *uint64
	srcIDs                *uint32
	firstSrc              uint64
	edge                  *float32
	edgeStride            int // numbers
	perm                  *uint32
	// gradients of scores are added to their destinations', not put to their entries' places
	add  uint64
	room [8]uintptr
}

func attendGradFast(level Level, a *AttentionGrad) bool {
	bf16 := a.DDst.B16 != nil
	if level < AVX512 || (a.Z.B16 != nil) != bf16 || (!bf16 && a.DZ.B16 != nil) || a.Width > panelCols ||
		len(a.Packed) >= 1<<31 {
		return false
	}
	passes, count := headPasses(a.Heads, a.Width, bf16)
	for r, n := 0, a.Rows; r < a.Rows; r += n {
		if count > 1 { // the next pass still finds the rows' pages
			n = rowsWithin(a.Ptr, r, a.Rows, 1024)
		}
		for _, p := range passes[:count] {
			a.pass512(level, p, r, n, bf16)
		}
	}
	return true
}

// pass512 does some of the heads for rows r to r+n.
func (a *AttentionGrad) pass512(level Level, p headPass, r, n int, bf16 bool) {
	col, tables := p.first*a.Width, laneTables(p.heads, a.Drop.FirstHead+p.first)
	w := attendGradArgs{
		ptr: &a.Ptr[r], index: unsafe.SliceData(a.Index), rows: n, headShape: p.shape(a.Width, bf16),
		mode: modeOf(level, a.DZ), buf: lineOf(a.Work),
		packStride: packRow(a.Heads), packLanes: packLanes(a.Heads),
		lanes: p.heads, heads: 1<<p.heads - 1, groupBytes: 4 * 16 / p.heads, batchBytes: p.batch(a.DDst),
		tables: &tables, slope: bits(a.Slope),
		drop: onOff(a.Drop.On), threshold: uint64(a.Drop.Threshold) << 16, scale: bits(a.Drop.Scale), keys: unsafe.SliceData(a.Keys),
		firstSrc:   uint64(a.Drop.FirstSrc + uint32(r)),
		edgeStride: a.EdgeHeads, perm: unsafe.SliceData(a.Perm),
	}
	w.src, w.srcStride = a.DDst.at(0, col)
	if a.Drop.SrcIDs != nil {
		w.srcIDs = &a.Drop.SrcIDs[r]
	}
	if to := a.Ptr[r+n]; to > a.Ptr[r] {
		w.loop, w.prefetch = p.gradAsk(a.DDst, a.Width, w.each)
		w.last = &a.Index[to-1]
		w.packed = &a.Packed[packPlace(a.Heads, p.first)]
		if len(a.Packed) > cached/8 { // a group has few entries, whose misses it waits for one group at a time
			w.ask = w.last
		}
		if a.Sums != nil {
			w.edge, w.perm, w.add = &a.Sums[a.Drop.FirstHead+p.first], w.index, 1
		} else {
			w.edge = &a.Edge[a.Drop.FirstHead+p.first]
		}
	}
	w.loop += p.loops(w.headShape)
	list := w.placesOf(p.heads, a.Width, p.room(a.Width, bf16), a.DDst, a.DZ)
	w.places, w.few = &list, onOff(slices.Max(list.from[:12]) < 0)
	w.dst, w.dstStride = a.DZ.at(r, col)
	if a.Stream && w.mode != modeBF16 && (a.DZ.B16 != nil) == bf16 &&
		linesOnly(w.dst, w.dstStride, a.Width*a.DZ.size()) {
		w.mode |= modeStream
	}
	w.z, w.zStride = a.Z.at(r, col)
	w.left, w.leftStride = a.Left.at(r, p.first)
	w.dleft, w.dleftStride = a.DLeft.at(r, p.first)
	attendGrad512((*byte)(unsafe.Pointer(&w)))
}

// headPass is one head, or usualHeads, whose wide rows one call does.
type headPass struct{ first, heads int }

// headPasses cuts heads into passes whose sums fit the registers. Narrow heads, where a vector
// reaches over more than two,
// go one by one.
func headPasses(heads, width int, bf16 bool) (list [MaxHeads]headPass, n int) {
	block := blockCols(width, bf16)
	for h := 0; h < heads; n++ {
		p := headPass{h, 1}
		if width >= 8 && heads-h >= usualHeads && usualHeads*((width+block-1)/block) <= panelCols/block {
			p.heads = usualHeads
		}
		list[n] = p
		h += p.heads
	}
	return list, n
}

// shape is how heads of the given width are loaded.
func (p headPass) shape(width int, bf16 bool) headShape {
	block, size := blockCols(width, bf16), 4
	if bf16 {
		size = 2
	}
	rest, each := (width-1)%block+1, (width+block-1)/block
	s := headShape{
		each: each, whole: size * block * (each - 1),
		headBytes: size * width, lastByte: size*rest - 1, tail: 1<<rest - 1, evens: 1<<rest - 1,
	}
	if p.heads*width >= block {
		s.shift = size * (block - rest)
		s.tail <<= block - rest
	}
	switch {
	case block == 32:
		s.kind, s.evens, s.odds = pairLoads, 1<<((rest+1)/2)-1, 1<<(rest/2)-1
	case bf16:
		s.kind = singleLoads
	}
	return s
}

// room is how many numbers of a row the loops hold a head. It has the last of them.
func (p headPass) room(width int, bf16 bool) int {
	if block := blockCols(width, bf16); block == 16 && width <= block {
		return block
	}
	return panelCols / p.heads
}

// loops is the number of the first of the loops for heads of the given shape.
func (p headPass) loops(s headShape) int {
	n := 4*p.heads + 1
	if s.kind != floatLoads {
		n += 2
	}
	if s.each == 1 && s.kind != pairLoads {
		n-- // a single vector
	}
	return 8 * n
}

// gradAsk is which loop the backward pass takes over wide rows of src, of each vectors or
// blocks a head, and how many bytes of index it
// looks ahead: 0, which short rows have, asks for none, 1 for rows that come soon, 2 for what
// no cache has. It is done with short rows
// long before they would come: one head of 40 bfloat16 numbers takes 20 ns an entry asked for
// 24 ahead, 25 asked for 8 ahead. Long ones
// of bfloat16, which keep many instructions waiting for a line, are always asked for.
func (p headPass) gradAsk(src Strided, width, each int) (loop, ahead int) {
	bf16 := src.B16 != nil
	short := p.heads == 1 || width <= 16
	switch long := p.heads*each >= 8; {
	case short && attendAhead(src) == 0 && !(long && bf16):
		return 0, 0
	case !long:
		return 1, 4*min(max(4096/(p.heads*width*src.size()), prefetchEntries), 24) - 4
	case bf16 || len(src.F32) < 1<<20:
		return 1, 4 * 4
	}
	return 2, 4 * 16
}

// batch is the bytes in index of entries that the backward pass does at once, whole groups:
// many where rows of src are in a core's own
// cache and instructions limit, one group where lines are waited for, which wants as little as
// possible between two of them.
// 40,000 rows of 4 heads of 64 take 61 ns an entry in float32 by groups and 68 by eight, 35 and
// 38 in bfloat16; 7,000 rows of 4 heads
// of 32 in bfloat16 12.7 and 11.7.
func (p headPass) batch(src Strided) int {
	if within(src, 2<<20) {
		return 4 * min(batchEntries, batchGroups*16/p.heads)
	}
	return 4 * 16 / p.heads
}
