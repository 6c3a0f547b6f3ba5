package simd

import (
	"math"
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
	ptr             *int64
	index           *uint32
	rows            int
	packed          *float32
	packStride      int // numbers
	left            unsafe.Pointer
	leftStride      int
	out             *float32
	outStep         int
	lanes, group    int
	heads           uint64
	swaps           uint64
	slope           uint64
	tables          *[3][16]uint32
	drop, threshold uint64
	scale           uint64
	keys            *uint64
	srcIDs          *uint32
	firstSrc        uint64
	perm            *uint32
	edge            *float32
	edgeHeads       int
	dots            *float32
	dleft           unsafe.Pointer
	dleftStride     int
	last            *uint32
	lastPlace       *uint32 // last, for perm
	add             uint64  // gradients of scores are added to their destinations', not put to their entries' places
}

type attendRowArgs struct {
	ptr               *int64
	index             *uint32
	rows              int
	src               unsafe.Pointer
	srcStride         int
	dst               unsafe.Pointer
	dstStride         int
	vectors           int // of 16 float32, or blocks of 32 bfloat16
	mask              uint64
	mode              int
	weights           *float32
	gap               int
	patterns          *uint32
	prefetch          int
	last              *uint32
	inv               unsafe.Pointer
	invStride         int
	scale             uint64
	heads             uint64
	z                 unsafe.Pointer
	zStride           int
	zbuf              *float32
	dots              *float32
	segments, heads16 uint64
	swaps             uint64
	parts, partsEnd   unsafe.Pointer
	places            *[16]uint32
	shape             int
}

func bits(x float32) uint64 { return uint64(math.Float32bits(x)) }

// laneTables are what lanes stand for with the given heads: lane l is head l%P of entry l/P.
func laneTables(heads, firstHead int) *[3][16]uint32 {
	var t [3][16]uint32
	p := Lanes(heads)
	for l := range 16 {
		t[0][l], t[1][l] = uint32(l%p), uint32(l/p)
		c := uint32(drawHead)
		t[2][l] = uint32(firstHead+l%p) * c * drawC0
	}
	return &t
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

// swapsFrom allows sums to add lanes l and l^d for d >= least, swapsUnder for d < limit.
func swapsFrom(least int) uint64 { return ^swapsUnder(least) }

func swapsUnder(limit int) uint64 {
	s := uint64(0)
	for i, d := range [4]int{1, 2, 4, 8} {
		if d < limit {
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

// panelCols is how many columns one call sums, and the length of its pattern.
const panelCols = 256

// pattern fills p with the head of each lane of a panel's vectors: columns
// from col on of heads of the given width. Bfloat16 has even columns, then odd ones, of each 32.
func pattern(p []float32, col, cols, width int, bf16 bool) *uint32 {
	words := unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(p))), panelCols)
	for i := range words {
		c := i
		if bf16 { // laneOf, the other way round
			c = i&^31 + i%16*2 + i>>4&1
		}
		words[i] = uint32(min(col+c, col+cols-1) / width)
	}
	return &words[0]
}

// aheadOf is how many bytes of index to look ahead for rows of src: asking
// for rows that are in cache anyway only costs.
func aheadOf(src Strided) int { return aheadFrom(src, 16<<20) }

// attendAhead is aheadOf for attention, whose lists need the core's own cache too: 7,000 rows of 128 bfloat16 numbers,
// 1.8 MB, took 10.6 ns an entry forward and 30 backward without asking, 9.0 and 25 with.
func attendAhead(src Strided) int { return aheadFrom(src, 1<<20) }

func aheadFrom(src Strided, bytes int) int {
	if 4*len(src.F32)+2*len(src.B16) < bytes {
		return 0
	}
	return 4 * prefetchEntries
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

func attendFast(level Level, a *Attention) bool {
	bf16 := a.Z.B16 != nil
	if level < AVX512 || (!bf16 && a.Dst.B16 != nil) || len(a.Left.F32) >= 1<<31 {
		return false
	}
	p, cols := Lanes(a.Heads), a.Heads*a.Width
	work := a.Work
	patterns := work[:(cols+panelCols-1)/panelCols*panelCols]
	work = work[len(patterns):]
	for c := 0; c < cols; c += panelCols {
		pattern(patterns[c:], c, min(panelCols, cols-c), a.Width, bf16)
	}
	w := attendArgs{
		index: unsafe.SliceData(a.Index), left: unsafe.SliceData(a.Left.F32), leftStride: a.Left.Stride,
		out: &work[0], lanes: p, group: 16 / p, heads: headLanes(a.Heads), swaps: swapsFrom(p),
		slope: bits(a.Slope), tables: laneTables(a.Heads, a.Drop.FirstHead),
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
		a.sum512(level, r, n, &work[0], patterns)
	}
	return true
}

// at is the address of column c of row r and the bytes between rows.
func (s *Strided) at(r, c int) (p unsafe.Pointer, stride int) {
	p, stride = s.start()
	return unsafe.Add(p, r*stride+c*s.size()), stride
}

// sum512 sums rows r to r+n with weights, in panels of columns.
func (a *Attention) sum512(level Level, r, n int, weights *float32, patterns []float32) {
	bf16 := a.Z.B16 != nil
	s := attendRowArgs{
		ptr: &a.Ptr[r], index: unsafe.SliceData(a.Index), rows: n, weights: weights, gap: 4 * Lanes(a.Heads),
		scale: bits(1), heads: 1<<a.Heads - 1, mode: modeOf(level, a.Dst),
	}
	if a.Drop.On {
		s.scale = bits(a.Drop.Scale)
	}
	if to := a.Ptr[r+n]; to > a.Ptr[r] {
		s.prefetch, s.last = attendAhead(a.Z), &a.Index[to-1]
	}
	for c := 0; c < a.Heads*a.Width; c += panelCols {
		s.vectors, s.mask = vectorsOf(min(panelCols, a.Heads*a.Width-c), bf16)
		s.src, s.srcStride = a.Z.at(0, c)
		s.dst, s.dstStride = a.Dst.at(r, c)
		s.inv, s.invStride = a.Inv.at(r, 0)
		s.patterns = (*uint32)(unsafe.Pointer(&patterns[c]))
		switch raw := (*byte)(unsafe.Pointer(&s)); {
		case bf16 && (a.Width%32 == 0 || a.Heads == 1):
			attendSumWhole512b16(raw)
		case bf16:
			attendSum512b16(raw)
		default:
			attendSum512(raw)
		}
	}
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

// headPass is a run of heads whose wide rows one call of the backward pass does. Either heads are
// whole vectors, a power of two of them (each is not 0), or vectors hold several.
type headPass struct {
	first, heads int
	each         int    // vectors a head
	perVector    int    // heads in a vector
	segments     uint64 // lanes of a vector of sums that are a head's
	swaps        uint64
}

// headPasses cuts heads into passes of at most panelCols columns.
func headPasses(heads, width int, bf16 bool) (list [MaxHeads]headPass, n int) {
	unit := 16
	if bf16 {
		unit = 32
	}
	for h := 0; h < heads; n++ {
		p := headPass{first: h, heads: 1, each: (width + unit - 1) / unit}
		switch {
		case width%unit == 0:
			for most := min(heads-h, panelCols/width); 2*p.heads <= most; {
				p.heads *= 2
			}
		case heads > 1 && width < unit && width&(width-1) == 0 && width >= unit/16 && (heads*width <= unit || heads*width%unit == 0):
			lane := width * 16 / unit
			p = headPass{first: h, heads: heads - h, perVector: unit / width, swaps: swapsUnder(lane)}
			for l := 0; l < 16; l += lane {
				p.segments |= 1 << l
			}
		}
		list[n] = p
		h += p.heads
	}
	return list, n
}

// with is s with how dot products are made, which go to dots, s.gap bytes apart. parts has room for foldParts vectors.
// It gives s back, as what is stored through a pointer would go to the heap.
func (p headPass) with(s attendRowArgs, dots *float32, parts unsafe.Pointer, places *[16]uint32) attendRowArgs {
	s.dots = (*float32)(unsafe.Add(unsafe.Pointer(dots), 4*p.first))
	if p.each == 0 {
		s.heads, s.heads16 = uint64(4*p.perVector), 1<<min(p.perVector, p.heads)-1
		s.segments, s.swaps = p.segments, p.swaps
		return s
	}
	s.shape, s.parts, s.partsEnd, s.places = 32*p.heads+p.each, parts, unsafe.Add(parts, 64*foldParts), places
	for l := range places {
		places[l] = uint32(l/p.heads*(s.gap/4) + l%p.heads)
	}
	return s
}

// lineOf is where the first cache line in work starts.
func lineOf(work []float32) unsafe.Pointer {
	p := unsafe.Pointer(unsafe.SliceData(work))
	return unsafe.Add(p, -uintptr(p)&63)
}

func attendGradFast(level Level, a *AttentionGrad) bool {
	bf16 := a.DDst.B16 != nil
	if level < AVX512 || (a.Z.B16 != nil) != bf16 || (!bf16 && a.DZ.B16 != nil) || a.Width > panelCols ||
		len(a.Packed) >= 1<<31 || len(a.Edge) >= 1<<31 || a.Sums != nil && !SumsScores(a.Heads) {
		return false
	}
	p := Lanes(a.Heads)
	passes, count := headPasses(a.Heads, a.Width, bf16)
	work := a.Work
	patterns := work[:count*panelCols]
	zbuf := work[len(patterns):][:panelCols]
	work = work[len(patterns)+panelCols:]
	parts := lineOf(work)
	work = work[16*(foldParts+1):]
	for k, x := range passes[:count] { // only vectors of several heads look at it
		pattern(patterns[k*panelCols:], x.first*a.Width, x.heads*a.Width, a.Width, bf16)
	}
	step := len(work) / 4 &^ 15
	w := attendGradArgs{
		index: unsafe.SliceData(a.Index), packed: unsafe.SliceData(a.Packed), packStride: 4 * p,
		out: &work[0], outStep: 4 * step, lanes: p, group: 16 / p, heads: headLanes(a.Heads), swaps: swapsFrom(p),
		slope: bits(a.Slope), tables: laneTables(a.Heads, a.Drop.FirstHead),
		drop: onOff(a.Drop.On), threshold: uint64(a.Drop.Threshold) << 16, scale: bits(a.Drop.Scale),
		keys: unsafe.SliceData(a.Keys), perm: unsafe.SliceData(a.Perm), dots: &work[3*step],
		edgeHeads: a.EdgeHeads,
	}
	switch {
	case a.Sums != nil:
		w.edge, w.edgeHeads, w.perm, w.add = &a.Sums[0], p, unsafe.SliceData(a.Index), 1
	case len(a.Edge) > 0:
		w.edge = &a.Edge[a.Drop.FirstHead]
	}
	for r, n := 0, 0; r < a.Rows; r += n {
		n = rowsWithin(a.Ptr, r, a.Rows, step/p-16)
		w.rows, w.ptr = n, &a.Ptr[r]
		if to := a.Ptr[r+n]; to > a.Ptr[r] && len(a.Packed) > cached {
			w.last = &a.Index[to-1]
			if w.lastPlace = &a.Perm[to-1]; a.Sums != nil {
				w.lastPlace = w.last
			}
		}
		w.left, w.leftStride = a.Left.at(r, 0)
		w.dleft, w.dleftStride = a.DLeft.at(r, 0)
		w.firstSrc = uint64(a.Drop.FirstSrc + uint32(r))
		if a.Drop.SrcIDs != nil {
			w.srcIDs = &a.Drop.SrcIDs[r]
		}
		raw := (*byte)(unsafe.Pointer(&w))
		switch p {
		case 4:
			attendGradWeightsFour512(raw)
		case 8:
			attendGradWeightsEight512(raw)
		default:
			attendGradWeights512(raw)
		}
		for k, x := range passes[:count] {
			a.pass512(level, r, n, x, &w, &patterns[k*panelCols], &zbuf[0], parts)
		}
		switch {
		case a.Heads == 4 && w.edgeHeads == 4:
			attendGradScoresFour512(raw)
		case a.Heads == 8 && w.edgeHeads == 8:
			attendGradScoresEight512(raw)
		default:
			attendGradScores512(raw)
		}
	}
	return true
}

// pass512 does the wide rows of some heads for rows r to r+n.
func (a *AttentionGrad) pass512(level Level, r, n int, x headPass, w *attendGradArgs, patterns, zbuf *float32, parts unsafe.Pointer) {
	bf16 := a.DDst.B16 != nil
	col := x.first * a.Width
	s := attendRowArgs{
		ptr: &a.Ptr[r], index: unsafe.SliceData(a.Index), rows: n, gap: 4 * w.lanes,
		weights:  (*float32)(unsafe.Add(unsafe.Pointer(w.out), 4*x.first)),
		patterns: (*uint32)(unsafe.Pointer(patterns)), zbuf: zbuf, mode: modeOf(level, a.DZ),
	}
	var places [16]uint32
	s = x.with(s, w.dots, parts, &places)
	if to := a.Ptr[r+n]; to > a.Ptr[r] {
		s.prefetch, s.last = attendAhead(a.DDst), &a.Index[to-1]
	}
	s.vectors, s.mask = vectorsOf(x.heads*a.Width, bf16)
	s.src, s.srcStride = a.DDst.at(0, col)
	s.dst, s.dstStride = a.DZ.at(r, col)
	s.z, s.zStride = a.Z.at(r, col)
	switch raw := (*byte)(unsafe.Pointer(&s)); {
	case bf16 && x.each > 0:
		attendGradHeads512b16(raw)
	case bf16:
		attendGradLanes512b16(raw)
	case x.each > 0:
		attendGradHeads512(raw)
	default:
		attendGradLanes512(raw)
	}
}
