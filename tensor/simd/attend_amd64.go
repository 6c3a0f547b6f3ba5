package simd

import (
	"math"
	"slices"
	"unsafe"
)

//go:generate sh -c "cd asm && go run ./attend -out ../attend_amd64.s -stubs ../attend_stubs_amd64.go -pkg simd"

// attendArgs, attendGradArgs and attendRowArgs are what the assembly reads: the
// order of their fields is known to asm/attend, and each takes eight bytes.
type attendArgs struct {
	ptr                  *int64
	index                *uint32
	rows                 int
	left                 *float32
	leftStride           int // numbers
	right                unsafe.Pointer
	rightStride          int // bytes, as all others
	max                  unsafe.Pointer
	maxStride            int
	inv                  unsafe.Pointer
	invStride            int
	out                  *float32
	lanes, group         int // floats an entry, entries a vector
	heads                uint64
	swaps                uint64
	slope                uint64
	tables               *[3][16]uint32
	drop, threshold, key uint64
	dstIDs               *uint32
	firstDst             uint64
	srcIDs               *uint32
	firstSrc             uint64
	last                 *uint32 // the last entry, whose row may be asked for early; nil: none
}

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
	together              int // heads, if at least four: they are whole lines of packed's
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
	add                   uint64 // gradients of scores are added to their destinations', not put to their entries' places
	room                  [8]uintptr
}

type attendRowArgs struct {
	ptr       *int64
	index     *uint32
	rows      int
	src       unsafe.Pointer
	srcStride int
	dst       unsafe.Pointer
	dstStride int
	mode      int
	weights   *float32
	gap       int
	patterns  *uint32
	loop      int // of vectors or blocks, heads that whole ones are of or 0, and 1 for bfloat16 rows that are asked for
	prefetch  int
	last      *uint32
	inv       unsafe.Pointer
	invStride int
	scale     uint64
	heads     uint64
	z         unsafe.Pointer
	zbuf      *float32
	headShape
}

// headShape is how a row is cut into runs of vectors of float32, or blocks of bfloat16. For loops that make dot products a run is a head, or
// heads that share a vector, and what is left: the last of a row, not to reach behind it, starts shift bytes earlier.
type headShape struct {
	each, whole                int    // vectors or blocks a run, and bytes of all but the last
	headBytes, lastByte, shift int    // lastByte is from the last vector's first
	tail                       uint64 // columns of the row's last vector or block
	evens, odds                uint64 // lanes of those of other heads, of a block in two vectors
	kind                       int    // of loads
	places                     *places
	few                        uint64 // 1 if all are of the last four vectors
}

// Kinds of loads: sixteen float32, 32 bfloat16, or sixteen of them.
const (
	floatLoads = iota
	pairLoads
	singleLoads
)

// places is where the loads of a row are, in bytes, by the first of the vectors that they are summed in: below zero where there are none.
type places struct{ from, to [panelCols / 16]int }

// placesOf lists the loads of runs, each of so many columns and with room for as many sums.
func (s *headShape) placesOf(runs, cols, room int, src, dst Strided) (p places) {
	block := 16
	if s.kind == pairLoads {
		block = 32
	}
	for i := range p.from {
		p.from[i], p.to[i] = -1, -1
	}
	for r := range runs {
		for i := range s.each {
			col := r*cols + i*block
			if r == runs-1 && i == s.each-1 {
				col -= s.shift / src.size()
			}
			v := (panelCols - (runs-1-r)*room - (s.each-i)*block) / 16
			p.from[v], p.to[v] = col*src.size(), col*dst.size()
		}
	}
	return p
}

func bits(x float32) uint64 { return uint64(math.Float32bits(x)) }

// laneTables are what lanes stand for with the given heads: lane l is head l%P of entry l/P.
func laneTables(heads, firstHead int) (t [3][16]uint32) {
	p := Lanes(heads)
	for l := range 16 {
		t[0][l], t[1][l] = uint32(l%p), uint32(l/p)
		c := uint32(drawHead)
		t[2][l] = uint32(firstHead+l%p) * c * drawC0
	}
	return t
}

// headLanes is a bit for each lane that is a head.
func headLanes(heads int) uint64 {
	p, mask := Lanes(heads), uint64(0)
	for l := range 16 {
		if l%p < heads {
			mask |= 1 << l
		}
	}
	return mask
}

// swapsFrom allows sums to add lanes l and l^d for d >= least.
func swapsFrom(least int) uint64 {
	s := uint64(0)
	for i, d := range [4]int{1, 2, 4, 8} {
		if d >= least {
			s |= 0xffff << (16 * i)
		}
	}
	return s
}

func onOff(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// rowsWithin is how many rows from r on have at most limit entries together; at least one.
func rowsWithin(ptr []int64, r, rows, limit int) int {
	hi := r + 1
	for hi < rows && ptr[hi+1]-ptr[r] <= int64(limit) {
		hi++
	}
	return hi - r
}

// pattern fills p with the head of each lane of a panel's vectors, as far as there are any its last: columns
// from col on of heads of the given width. Bfloat16 has even columns, then odd ones, of each 32.
func pattern(p []float32, col, cols, width int, bf16 bool) *uint32 {
	words := unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(p))), panelCols)
	first := unusedCols(cols, bf16)
	clear(words[:first])
	for i := range panelCols - first {
		c := i
		if bf16 { // laneOf, the other way round
			c = i&^31 + i%16*2 + i>>4&1
		}
		words[first+i] = uint32(min(col+c, col+cols-1) / width)
	}
	return &words[0]
}

// unusedCols is where the vectors or blocks of so many columns start in a panel.
func unusedCols(cols int, bf16 bool) int {
	block := 16
	if bf16 {
		block = 32
	}
	return panelCols - (cols+block-1)/block*block
}

// aheadOf is how many bytes of index to look ahead for rows of src: asking
// for rows that are in cache anyway only costs.
func aheadOf(src Strided) int { return aheadFrom(src, 16<<20) }

// attendAhead is aheadOf for attention, whose lists need the core's own cache too: 7,000 rows of 128 bfloat16 numbers,
// 1.8 MB, took 10.6 ns an entry forward and 30 backward without asking, 9.0 and 25 with.
func attendAhead(src Strided) int { return aheadFrom(src, 1<<20) }

func aheadFrom(src Strided, bytes int) int {
	if within(src, bytes) {
		return 0
	}
	return 4 * prefetchEntries
}

func within(src Strided, bytes int) bool { return 4*len(src.F32)+2*len(src.B16) < bytes }

// gradAsk is which loop the backward pass takes over wide rows of src, of each vectors or blocks a head, and how many bytes of index it
// looks ahead: 0, which short rows have, asks for none, 1 for rows that come soon, 2 for what no cache has. It is done with short rows
// long before they would come: one head of 40 bfloat16 numbers takes 20 ns an entry asked for 24 ahead, 25 asked for 8 ahead. Long ones
// of bfloat16, which keep many instructions waiting for a line, are always asked for.
func (p headPass) gradAsk(src Strided, width, each int) (loop, ahead int) {
	bf16 := src.B16 != nil
	short := p.heads == 1 || p.heads/p.share <= 4 && (p.share > 1 || width <= 16)
	switch long := p.share == 1 && p.heads*each >= 8; {
	case short && attendAhead(src) == 0 && !(long && bf16):
		return 0, 0
	case !long:
		return 1, 4*min(max(4096/(p.heads*width*src.size()), prefetchEntries), 24) - 4
	case bf16 || len(src.F32) < 1<<20:
		return 1, 4 * 4
	}
	return 2, 4 * 16
}

// cached is how many numbers are taken to stay in a core's caches.
const cached = 1 << 17

// prefetchEntries is how far ahead source rows are asked for. Bfloat16 rows, which keep
// more instructions waiting for each line, need it most.
const prefetchEntries = 8

// vectorsOf is the number of vectors or blocks of cols columns, and the mask of the last.
func vectorsOf(cols int, bf16 bool) (n int, mask uint64) {
	if bf16 {
		return (cols + 31) / 32, 0xffffffff >> (-cols & 31)
	}
	return (cols + 15) / 16, 0xffff >> (-cols & 15)
}

// panelShape is that of a panel, one run, and the mask of its last vector or block.
func panelShape(cols int, bf16 bool) (s headShape, mask uint64) {
	if bf16 {
		s.kind = pairLoads
	}
	s.each, mask = vectorsOf(cols, bf16)
	s.whole = 64 * (s.each - 1)
	return s, mask
}

func attendFast(level Level, a *Attention) bool {
	bf16 := a.Z.B16 != nil
	if level < AVX512 || (!bf16 && a.Dst.B16 != nil) || len(a.Left.F32) >= 1<<31 {
		return false
	}
	p, cols := Lanes(a.Heads), a.Heads*a.Width
	work := a.Work
	patterns := work[:(cols+panelCols-1)/panelCols*panelCols]
	stage := work[len(patterns):][:panelCols]
	work = work[len(patterns)+panelCols:]
	for c := 0; c < cols; c += panelCols {
		pattern(patterns[c:], c, min(panelCols, cols-c), a.Width, bf16)
	}
	tables := laneTables(a.Heads, a.Drop.FirstHead)
	w := attendArgs{
		index: unsafe.SliceData(a.Index), left: unsafe.SliceData(a.Left.F32), leftStride: a.Left.Stride,
		out: &work[0], lanes: p, group: 16 / p, heads: headLanes(a.Heads), swaps: swapsFrom(p),
		slope: bits(a.Slope), tables: &tables,
		drop: onOff(a.Drop.On), threshold: uint64(a.Drop.Threshold) << 16, key: a.Drop.Key,
		srcIDs: unsafe.SliceData(a.Drop.SrcIDs), firstSrc: uint64(a.Drop.FirstSrc),
	}
	if a.Drop.SrcIDs != nil {
		w.firstSrc = 0
	}
	limit := len(work)/p - 16
	for r, n := 0, 0; r < a.Rows; r += n {
		n = rowsWithin(a.Ptr, r, a.Rows, limit)
		w.rows, w.ptr, w.out = n, &a.Ptr[r], &work[0]
		if to := a.Ptr[r+n]; to > a.Ptr[r] && len(a.Left.F32) > cached {
			w.last = &a.Index[to-1]
		}
		w.right, w.rightStride = a.Right.at(r, 0)
		w.max, w.maxStride = a.Max.at(r, 0)
		w.inv, w.invStride = a.Inv.at(r, 0)
		w.firstDst = uint64(a.Drop.FirstDst + uint32(r))
		if a.Drop.DstIDs != nil {
			w.dstIDs = &a.Drop.DstIDs[r]
		}
		switch raw := (*byte)(unsafe.Pointer(&w)); {
		case a.Heads == 4 && a.Left.Stride == 4:
			attendWeightsFour512(raw)
		case a.Heads == 8 && a.Left.Stride == 8:
			attendWeightsEight512(raw)
		default:
			attendWeights512(raw)
		}
		a.sum512(level, r, n, &work[0], patterns, &stage[0])
	}
	return true
}

// at is the address of column c of row r and the bytes between rows.
func (s *Strided) at(r, c int) (p unsafe.Pointer, stride int) {
	p, stride = s.start()
	return unsafe.Add(p, r*stride+c*s.size()), stride
}

// sum512 sums rows r to r+n with weights, in panels of columns.
func (a *Attention) sum512(level Level, r, n int, weights *float32, patterns []float32, stage *float32) {
	bf16 := a.Z.B16 != nil
	s := attendRowArgs{
		ptr: &a.Ptr[r], index: unsafe.SliceData(a.Index), rows: n, gap: 4 * Lanes(a.Heads),
		scale: bits(1), heads: 1<<a.Heads - 1, zbuf: stage,
	}
	if a.Drop.On {
		s.scale = bits(a.Drop.Scale)
	}
	if to := a.Ptr[r+n]; to > a.Ptr[r] {
		s.prefetch, s.last = attendAhead(a.Z), &a.Index[to-1]
	}
	var rounded places // where rows are by which the processor does not round
	for c := 0; c < a.Heads*a.Width; c += panelCols {
		cols := min(panelCols, a.Heads*a.Width-c)
		s.src, s.srcStride = a.Z.at(0, c)
		s.dst, s.dstStride = a.Dst.at(r, c)
		s.inv, s.invStride = a.Inv.at(r, 0)
		s.mode = modeOf(level, a.Dst)
		if a.Stream && linesOnly(s.dst, s.dstStride, cols*a.Dst.size()) && s.mode != modeBF16 && (a.Dst.B16 != nil) == bf16 {
			s.mode |= modeStream
		}
		s.patterns = (*uint32)(unsafe.Pointer(&patterns[c]))
		s.headShape, s.tail = panelShape(cols, bf16)
		if bf16 && s.mode&modeNative == 0 {
			rounded = s.placesOf(1, cols, panelCols, a.Z, a.Dst)
			s.places = &rounded
		}
		first, heads := wholeHeads(c, cols, a.Width, bf16)
		s.weights = (*float32)(unsafe.Add(unsafe.Pointer(weights), 4*first))
		s.loop = 64*sumVectors(s.each, heads, bf16) + 2*heads
		if bf16 && s.prefetch > 0 {
			s.loop++
		}
		if raw := (*byte)(unsafe.Pointer(&s)); bf16 {
			attendSum512b16(raw)
		} else {
			attendSum512(raw)
		}
	}
}

// wholeHeads is the heads of a panel of columns, a power of two, if each vector or block is of one of them, and the first; or 0, 0.
func wholeHeads(col, cols, width int, bf16 bool) (first, heads int) {
	block := 16
	if bf16 {
		block = 32
	}
	first = col / width
	heads = (col+cols-1)/width + 1 - first
	if heads == 1 || width%block == 0 && col%width == 0 && cols%width == 0 && heads == Lanes(heads) {
		return first, heads
	}
	return 0, 0
}

// sumVectors is how many vectors or blocks the loop is written for that sums rows of each, of so many whole heads.
func sumVectors(each, heads int, bf16 bool) int {
	if bf16 && each > 4 && heads <= 1 {
		return Lanes(each)
	}
	return each
}

// linesOnly says whether rows are whole cache lines.
func linesOnly(p unsafe.Pointer, stride, bytes int) bool {
	return (uintptr(p)|uintptr(stride)|uintptr(bytes))&63 == 0
}

// modeOf is how rows of dst are written.
func modeOf(level Level, dst Strided) int {
	switch {
	case dst.B16 == nil:
		return 0
	case level >= AMX:
		return modeBF16 | modeNative
	}
	return modeBF16
}

// headPass is a run of heads, a power of two, whose wide rows one call does.
type headPass struct {
	first, heads int
	share        int // how many share a vector, or block
}

// headPasses cuts heads into passes whose sums fit the registers. Narrow heads, where a vector reaches over more than two, go one
// by one unless they share vectors.
func headPasses(heads, width int, bf16 bool) (list [MaxHeads]headPass, n int) {
	block, whole := blockCols(width, bf16), 16
	if bf16 {
		whole = 32
	}
	most := 1
	if width >= 8 {
		most = panelCols / block / ((width + block - 1) / block)
	}
	for h := 0; h < heads; n++ {
		p := headPass{h, 1, 1}
		for 2*p.heads <= min(heads-h, most) {
			p.heads *= 2
		}
		for share := 2; share <= 4; share *= 2 {
			if share*width == whole && heads-h >= share {
				p = headPass{h, share, share}
				for 2*p.heads <= heads-h {
					p.heads *= 2
				}
			}
		}
		list[n] = p
		h += p.heads
	}
	return list, n
}

// blockCols is how many columns of a head are loaded at once: a vector's or, of more than 16 of bfloat16, two vectors'.
func blockCols(width int, bf16 bool) int {
	if bf16 && width > 16 {
		return 32
	}
	return 16
}

// shape is how heads of the given width are loaded.
func (p headPass) shape(width int, bf16 bool) headShape {
	heads, run := p.heads/p.share, p.share*width // those that share are like one wider
	block, size := blockCols(run, bf16), 4
	if bf16 {
		size = 2
	}
	rest, each := (run-1)%block+1, (run+block-1)/block
	s := headShape{
		each: each, whole: size * block * (each - 1),
		headBytes: size * run, lastByte: size*rest - 1, tail: 1<<rest - 1, evens: 1<<rest - 1,
	}
	if heads*run >= block {
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

// loops is the number of the first of the loops for heads of the given shape.
func (p headPass) loops(s headShape) int {
	n := 128*p.heads + 32*(p.share-1) + 1
	if s.kind != floatLoads {
		n += 2
	}
	if p.share == 1 && s.each == 1 && s.kind != pairLoads {
		n-- // a single vector
	}
	return 8 * n
}

// room is how many numbers of a row the loops have room for a head, or heads that share a vector or block. It has the last of them.
func (p headPass) room(width int, bf16 bool) int {
	if block := blockCols(width, bf16); p.share > 1 || block == 16 && width <= block {
		return block
	}
	return panelCols / p.heads
}

// batch is the bytes in index of entries that the backward pass does at once, whole groups: many where rows of src are in a core's own
// cache and instructions limit, one group where lines are waited for, which wants as little as possible between two of them.
// 40,000 rows of 4 heads of 64 take 61 ns an entry in float32 by groups and 68 by eight, 35 and 38 in bfloat16; 7,000 rows of 4 heads
// of 32 in bfloat16 12.7 and 11.7.
func (p headPass) batch(src Strided) int {
	if within(src, 2<<20) {
		return 4 * min(batchEntries, batchGroups*16/p.heads)
	}
	return 4 * 16 / p.heads
}

// lineOf is where the first cache line in work starts.
func lineOf(work []float32) unsafe.Pointer {
	p := unsafe.Pointer(unsafe.SliceData(work))
	return unsafe.Add(p, -uintptr(p)&63)
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
	if p.heads >= 4 {
		w.together = p.heads
	}
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
	if bf16 && p.heads >= 4 && a.Width%32 == 0 && linesOnly(w.src, w.srcStride, 64) {
		w.loop, w.prefetch = 1+w.each, max(w.prefetch, 4*16) // a loop for heads of so many lines
	}
	w.loop += p.loops(w.headShape)
	run := p.share * a.Width
	list := w.placesOf(p.heads/p.share, run, p.room(run, bf16), a.DDst, a.DZ)
	w.places, w.few = &list, onOff(slices.Max(list.from[:12]) < 0)
	w.dst, w.dstStride = a.DZ.at(r, col)
	if a.Stream && w.mode != modeBF16 && (a.DZ.B16 != nil) == bf16 && linesOnly(w.dst, w.dstStride, run*a.DZ.size()) {
		w.mode |= modeStream
	}
	w.z, w.zStride = a.Z.at(r, col)
	w.left, w.leftStride = a.Left.at(r, p.first)
	w.dleft, w.dleftStride = a.DLeft.at(r, p.first)
	attendGrad512((*byte)(unsafe.Pointer(&w)))
}
