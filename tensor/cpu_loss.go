package tensor

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"unsafe"

	"starling/tensor/simd"
)

// CrossEntropy is the loss of single-label classification. rows must be distinct;
// none at all means every row.
func (c *CPU) CrossEntropy(dlogits, logits Matrix, labels, rows Index, scale float64) (loss float64, correct int) {
	const op = "CrossEntropy"
	sameShape(op, logits, dlogits)
	noF64(op, logits, dlogits)
	if labels.Len() != logits.Rows {
		panic(fmt.Sprintf("tensor: CrossEntropy: %d labels for %d rows", labels.Len(), logits.Rows))
	}
	list := c.ascending(op, rows, logits.Rows)
	if logits.Rows == 0 || logits.Cols == 0 {
		return 0, 0
	}
	size := lossChunk(logits)
	chunks := (logits.Rows + size - 1) / size
	losses, hits := make([]float64, chunks), make([]int, chunks)
	room := c.softmaxRoom(size, logits.Cols)
	defer c.Free(room)
	c.forRows(logits.Rows, size, func(lo, hi, k, thread int) {
		mine := within(list, lo, hi, logits.Rows)
		buf := room.row(thread)
		s := c.softmaxPart(buf, size, dlogits, logits)
		s.Scale, s.Labels = float32(scale), &labels.v[0]
		if !s.SeesLabels(c.level) {
			checkLabels(labels.v, mine, logits.Cols)
		}
		c.softmaxRows(&s, dlogits, mine, lo, hi)
		if int(slices.Max(s.Seen[:])) >= logits.Cols {
			checkLabels(labels.v, mine, logits.Cols)
		}
		losses[k], hits[k] = simd.LogSum(c.level, buf[:len(mine)], buf[size:size+len(mine)]), s.Correct
	})
	for k := range losses {
		loss, correct = loss+losses[k], correct+hits[k]
	}
	return loss * scale, correct
}

// softmaxRows runs s on some of the rows from lo to hi; the others of dst, if there is one, become zero. Of short rows s
// sees to that on the way, unless these are so few that computing them with empty lanes takes longer.
func (c *CPU) softmaxRows(s *simd.Softmax, dst Matrix, list []uint32, lo, hi int) {
	if len(list) == hi-lo {
		c.softmaxAll(s, lo, hi)
		return
	}
	if len(list) > 0 {
		s.List, s.Rows, s.First = &list[0], len(list), lo
		inPlace, least := s.X.Data == s.Dst.Data, 32
		if inPlace { // lines between are read as well, to write to them
			least = 8
		}
		s.Fill = least*len(list) >= hi-lo && !dst.IsZero() && dst.contiguous() && s.Fills(c.level)
		s.X.Far = s.X.Far && (s.Fill && inPlace || mostLines(len(list), hi-lo, s.X.Stride))
		s.Run(c.level)
	}
	switch {
	case dst.IsZero():
	case s.Fill:
		c.zeroOthers(dst, nil, s.First, hi)
	default:
		c.zeroOthers(dst, list, lo, hi)
	}
}

// mostLines says whether so many rows of n, spread evenly, are in half of all lines and more: then these are read faster
// one after another than row by row.
func mostLines(listed, n, rowBytes int) bool {
	const line = 64
	return 2*listed*(rowBytes+line) >= n*rowBytes
}

// softmaxAll runs s on all rows from lo to hi, which need no list: they are then asked for as they lie.
func (c *CPU) softmaxAll(s *simd.Softmax, lo, hi int) {
	s.X, s.Dst, s.Rows = s.X.Rows(lo), s.Dst.Rows(lo), hi-lo
	if s.Labels != nil {
		s.Labels = (*uint32)(unsafe.Add(unsafe.Pointer(s.Labels), 4*lo))
	}
	s.Run(c.level)
}

// lossChunk is how many rows of logits a core looks at in one go.
func lossChunk(logits Matrix) int {
	return passChunk(logits.Rows, logits.Cols*2*logits.dtype.Size())
}

// wholeLines is a chunk of rows, rounded down to whole lines where rows are side by side.
func wholeLines(rows int) int {
	if rows > 32 {
		rows &^= 31
	}
	return rows
}

// softmaxRoom has a row a thread: the sums and gaps of a chunk, then two rows of exponentials.
func (c *CPU) softmaxRoom(size, cols int) Matrix {
	return c.Scratch(F32, c.threads, softmaxWidth(size, cols))
}

func softmaxWidth(size, cols int) int { return 2*size + 2*padded(cols) + apart }

func (c *CPU) softmaxPart(room []float32, size int, dst, src Matrix) simd.Softmax {
	x := src.block(0)
	return simd.Softmax{
		X: x, Dst: dst.turnedResult(0, dst.Cols <= simd.ShortRow && dst.dtype == src.dtype, x), Cols: src.Cols,
		Sum: &room[0], Gap: &room[size], Exp: &room[2*size],
	}
}

// ascending is the list of rows in ascending order; all n rows where there is no list.
func (c *CPU) ascending(op string, rows Index, n int) []uint32 {
	list := rows.v
	if rows.IsZero() {
		list = make([]uint32, n)
		for i := range list {
			list[i] = uint32(i)
		}
	}
	if !c.strictlyAscending(list) {
		list = slices.Clone(list)
		slices.Sort(list)
		for i, r := range list[1:] {
			if r == list[i] {
				panic(fmt.Sprintf("tensor: %s: row %d is given twice", op, r))
			}
		}
	}
	if k := len(list); k > 0 && int(list[k-1]) >= n {
		panic(fmt.Sprintf("tensor: %s: row %d of a matrix of %d", op, list[k-1], n))
	}
	return list
}

func (c *CPU) strictlyAscending(list []uint32) bool {
	var not atomic.Bool
	c.forRows(len(list), 64<<10, func(lo, hi, _, _ int) {
		if !simd.Ascending(c.level, list[lo:min(hi+1, len(list))]) {
			not.Store(true)
		}
	})
	return !not.Load()
}

// checkLabels panics if a listed row has no class for a label.
func checkLabels(labels, list []uint32, classes int) {
	for _, r := range list {
		if int(labels[r]) >= classes {
			panic(fmt.Sprintf("tensor: CrossEntropy: label %d of row %d, with %d classes", labels[r], r, classes))
		}
	}
}

// within is the part in [lo,hi) of an ascending list of some of n rows.
func within(list []uint32, lo, hi, n int) []uint32 {
	return list[before(list, lo, n):before(list, hi, n)]
}

// before is how many of the list come before a row. Rows are often spread evenly: it is looked for near where it would
// then be, for each step far from there waits for memory.
func before(list []uint32, row, n int) int {
	lo := row * len(list) / n
	hi := lo
	for step := 1; lo > 0 && int(list[lo-1]) >= row; step *= 2 {
		lo, hi = max(0, lo-step), lo-1
	}
	for step := 1; hi < len(list) && int(list[hi]) < row; step *= 2 {
		lo, hi = hi+1, min(len(list), hi+step)
	}
	more, _ := slices.BinarySearch(list[lo:hi], uint32(row))
	return lo + more
}

// zeroOthers zeroes the rows in [lo,hi) that are not in list.
func (c *CPU) zeroOthers(m Matrix, list []uint32, lo, hi int) {
	if len(list) == hi-lo {
		return
	}
	zero := func(lo, hi int) { c.clearRows(m.Slice(lo, hi), m.Bytes() >= streamBytes) }
	if width := m.Cols * m.dtype.Size(); m.contiguous() && width < shortRow { // a few rows may take less than a call
		all := m.bytes()
		zero = func(lo, hi int) { clear(all[lo*width : hi*width]) }
	}
	for len(list) > 0 {
		if first := int(list[0]); lo < first {
			zero(lo, first)
		}
		n := runLength(list)
		lo, list = int(list[0])+n, list[n:]
	}
	if lo < hi {
		zero(lo, hi)
	}
	simd.Settle()
}

// shortRow is how many bytes a row has at least that is zeroed past the caches.
const shortRow = 256

// BCE is the loss of multi-label classification. rows must be distinct; none at
// all means every row.
func (c *CPU) BCE(dlogits, logits, targets Matrix, rows Index, scale float64) float64 {
	return c.rowLoss("BCE", dlogits, logits, targets, rows, func(mine []uint32) (loss float64) {
		for len(mine) > 0 {
			n := runLength(mine)
			first := int(mine[0])
			loss += c.bceRows(dlogits, logits, targets, first, first+n, scale)
			mine = mine[n:]
		}
		return loss
	}) * scale
}

// rowLoss adds up a loss over rows, chunk by chunk; of writes the gradients of the rows
// that it is given, those of all others become zero.
func (c *CPU) rowLoss(op string, dlogits, logits, targets Matrix, rows Index, of func(mine []uint32) float64) (loss float64) {
	sameShape(op, logits, dlogits, targets)
	noF64(op, logits, dlogits, targets)
	list := c.ascending(op, rows, logits.Rows)
	if logits.Rows == 0 || logits.Cols == 0 {
		return 0
	}
	size := passChunk(logits.Rows, logits.Cols*3*logits.dtype.Size())
	losses := make([]float64, (logits.Rows+size-1)/size)
	c.forRows(logits.Rows, size, func(lo, hi, k, _ int) {
		mine := within(list, lo, hi, logits.Rows)
		losses[k] = of(mine)
		if !dlogits.IsZero() {
			c.zeroOthers(dlogits, mine, lo, hi)
		}
	})
	for _, l := range losses {
		loss += l
	}
	return loss
}

// runLength is how many rows at the start of an ascending list follow each other.
func runLength(list []uint32) int {
	if n := len(list); int(list[n-1]-list[0]) == n-1 {
		return n
	}
	n := 1
	for list[n] == list[n-1]+1 { // not to the end
		n++
	}
	return n
}

func (c *CPU) bceRows(dlogits, logits, targets Matrix, lo, hi int, scale float64) (loss float64) {
	bytes := dlogits.Bytes()
	ms := []Matrix{dlogits, logits, targets}
	for i, m := range ms {
		if !m.IsZero() {
			ms[i] = m.Slice(lo, hi)
		}
	}
	oneRow(ms) // numbers do not care which row they are in
	b := simd.BCE{X: ms[1].block(0), T: ms[2].block(0), Rows: ms[1].Rows, Cols: ms[1].Cols, Scale: float32(scale)}
	if !dlogits.IsZero() {
		b.Dst = past(ms[0].block(0), bytes, b.X, b.T)
	}
	for k := range b.Product {
		b.Product[k] = 1
	}
	b.Run(c.level)
	loss = b.Linear + logProduct(b.Product[:])
	for _, e := range b.Exponent {
		loss += float64(e) * math.Ln2
	}
	return loss
}

// oneRow sees each of the matrices as one row, if none of them has gaps.
func oneRow(ms []Matrix) {
	for _, m := range ms {
		if !m.IsZero() && !m.contiguous() {
			return
		}
	}
	for i, m := range ms {
		if !m.IsZero() {
			ms[i] = m.Reshape(1, m.Rows*m.Cols)
		}
	}
}

// logProduct is the logarithm of a product that may be too large to write down: of the
// factors' mantissas, and their exponents.
func logProduct(factors []float64) float64 {
	product, exponent := 1.0, 0
	for _, f := range factors {
		m, e := math.Frexp(f)
		product, exponent = product*m, exponent+e
	}
	return math.Log(product) + float64(exponent)*math.Ln2
}

// Softmax of each row.
func (c *CPU) Softmax(dst, src Matrix) {
	sameShape("Softmax", dst, src)
	noF64("Softmax", dst, src)
	if src.Cols == 0 || src.Rows == 0 {
		return
	}
	size := lossChunk(src)
	room := c.softmaxRoom(size, src.Cols)
	defer c.Free(room)
	c.forRows(src.Rows, size, func(lo, hi, _, thread int) {
		s := c.softmaxPart(room.row(thread), size, dst, src)
		s.Scale = 1
		c.softmaxAll(&s, lo, hi)
	})
}

// Argmax of each row.
func (c *CPU) Argmax(dst []uint32, src Matrix) {
	noF64("Argmax", src)
	if len(dst) != src.Rows {
		panic(fmt.Sprintf("tensor: Argmax: %d places for %d rows", len(dst), src.Rows))
	}
	if src.Cols == 0 {
		clear(dst)
		return
	}
	c.byRows([]Matrix{src}, func(lo, hi int) {
		a := simd.Argmax{X: src.block(lo), Rows: hi - lo, Cols: src.Cols, Dst: &dst[lo]}
		a.Run(c.level)
	})
}
