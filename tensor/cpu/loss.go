package cpu

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"unsafe"

	"starling/tensor"
	"starling/tensor/cpu/simd"
)

// Loss is a loss over rows and its gradient.
func (c *Device) Loss(sums, dlogits, logits Matrix, op tensor.Loss) {
	name := op.Kind.String()
	tensor.NeedShape(name+": sums", sums, 1, 2, F64)
	tensor.NeedSameShape(name, logits, dlogits, op.Targets)
	noF64(name, logits, dlogits, op.Targets)
	out := row64Of(sums, 0)
	switch op.Kind {
	case tensor.CrossEntropy:
		loss, correct := c.crossEntropy(dlogits, logits, op.Labels, op.Rows, op.Scale)
		out[0], out[1] = loss, float64(correct)
	case tensor.BCE:
		out[0], out[1] = c.bce(dlogits, logits, op.Targets, op.Rows, op.Scale), 0
	case tensor.SquaredError:
		out[0], out[1] = c.squaredError(dlogits, logits, op.Targets, op.Rows, op.Scale), 0
	}
}

// crossEntropy is the loss of single-label classification.
func (c *Device) crossEntropy(dlogits, logits Matrix, labels, rows Index, scale float64) (loss float64, correct int) {
	tensor.Need(labels.Len() == logits.Rows, "CrossEntropy: %d labels for %d rows", labels.Len(), logits.Rows)
	list := c.ascending("CrossEntropy", rows, logits.Rows)
	if logits.Rows == 0 || logits.Cols == 0 {
		return 0, 0
	}
	size := lossChunk(logits)
	chunks := (logits.Rows + size - 1) / size
	losses, hits := make([]float64, chunks), make([]int, chunks)
	workspace := c.softmaxWorkspace(size, logits.Cols)
	defer c.Free(workspace)
	c.forRows(logits.Rows, size, func(lo, hi, k, thread int) {
		mine := within(list, lo, hi, logits.Rows)
		buf := rowOf(workspace, thread)
		s := c.softmaxPart(buf, size, dlogits, logits)
		s.Scale, s.Labels = float32(scale), &entriesOf(labels)[0]
		checkLabels(entriesOf(labels), mine, logits.Cols)
		c.softmaxRows(&s, dlogits, mine, lo, hi)
		losses[k], hits[k] = simd.LogSum(c.level, buf[:len(mine)], buf[size:size+len(mine)]), s.Correct
	})
	for k := range losses {
		loss, correct = loss+losses[k], correct+hits[k]
	}
	return loss * scale, correct
}

// softmaxRows runs s on some of the rows from lo to hi; the others of dst, if there is one, become zero.
func (c *Device) softmaxRows(s *simd.Softmax, dst Matrix, list []uint32, lo, hi int) {
	if len(list) == hi-lo {
		c.softmaxAll(s, lo, hi)
		return
	}
	if len(list) > 0 {
		s.List, s.Rows = &list[0], len(list)
		s.Run(c.level)
	}
	if !dst.IsZero() {
		c.zeroOthers(dst, list, lo, hi)
	}
}

// softmaxAll runs s on all rows from lo to hi, which need no list.
func (c *Device) softmaxAll(s *simd.Softmax, lo, hi int) {
	s.X, s.Dst, s.Rows = s.X.Rows(lo), s.Dst.Rows(lo), hi-lo
	if s.Labels != nil {
		s.Labels = (*uint32)(unsafe.Add(unsafe.Pointer(s.Labels), 4*lo))
	}
	s.Run(c.level)
}

// lossChunk is how many rows of logits a core looks at in one go.
func lossChunk(logits Matrix) int {
	return passChunk(logits.Rows, logits.Cols*2*logits.Type().Size())
}

// wholeLines is a chunk of rows, rounded down to whole lines where rows are side by side.
func wholeLines(rows int) int {
	if rows > 32 {
		rows &^= 31
	}
	return rows
}

// softmaxWorkspace has a row a thread: the sums and gaps of a chunk, then two rows of exponentials.
func (c *Device) softmaxWorkspace(size, cols int) Matrix {
	return c.Scratch(F32, c.threads, softmaxWidth(size, cols))
}

func softmaxWidth(size, cols int) int { return 2*size + 2*padded(cols) + apart }

func (c *Device) softmaxPart(workspace []float32, size int, dst, src Matrix) simd.Softmax {
	x := blockOf(src, 0)
	return simd.Softmax{
		X: x, Dst: resultOf(dst, 0, x), Cols: src.Cols,
		Sum: &workspace[0], Gap: &workspace[size], Exp: &workspace[2*size],
	}
}

// ascending is the list of rows in ascending order; all n rows where there is no list.
func (c *Device) ascending(op string, rows Index, n int) []uint32 {
	list := entriesOf(rows)
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

func (c *Device) strictlyAscending(list []uint32) bool {
	var not atomic.Bool
	c.forRows(len(list), 64<<10, func(lo, hi, _, _ int) {
		for i := lo; i < min(hi, len(list)-1); i++ {
			if list[i] >= list[i+1] {
				not.Store(true)
				return
			}
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
func (c *Device) zeroOthers(m Matrix, list []uint32, lo, hi int) {
	if len(list) == hi-lo {
		return
	}
	zero := func(lo, hi int) { c.clearRows(m.Slice(lo, hi), m.Bytes() >= streamBytes) }
	if width := m.Cols * m.Type().Size(); m.Contiguous() && width < shortRow { // a few rows may take less than a call
		all := bytesOf(m)
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
	simd.StoreFence()
}

// shortRow is how many bytes a row has at least that is zeroed by non-temporal stores.
const shortRow = 256

// bce is the loss of multi-label classification.
func (c *Device) bce(dlogits, logits, targets Matrix, rows Index, scale float64) float64 {
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
func (c *Device) rowLoss(op string, dlogits, logits, targets Matrix, rows Index,
	of func(mine []uint32) float64) (loss float64) {
	list := c.ascending(op, rows, logits.Rows)
	if logits.Rows == 0 || logits.Cols == 0 {
		return 0
	}
	size := passChunk(logits.Rows, logits.Cols*3*logits.Type().Size())
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

func (c *Device) bceRows(dlogits, logits, targets Matrix, lo, hi int, scale float64) (loss float64) {
	bytes := dlogits.Bytes()
	ms := []Matrix{dlogits, logits, targets}
	for i, m := range ms {
		if !m.IsZero() {
			ms[i] = m.Slice(lo, hi)
		}
	}
	oneRow(ms) // numbers do not care which row they are in
	b := simd.BCE{X: blockOf(ms[1], 0), T: blockOf(ms[2], 0), Rows: ms[1].Rows, Cols: ms[1].Cols, Scale: float32(scale)}
	if !dlogits.IsZero() {
		b.Dst = nonTemporal(blockOf(ms[0], 0), bytes, b.X, b.T)
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
		if !m.IsZero() && !m.Contiguous() {
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
func (c *Device) Softmax(dst, src Matrix) {
	tensor.NeedSameShape("Softmax", dst, src)
	noF64("Softmax", dst, src)
	if src.Cols == 0 || src.Rows == 0 {
		return
	}
	size := lossChunk(src)
	workspace := c.softmaxWorkspace(size, src.Cols)
	defer c.Free(workspace)
	c.forRows(src.Rows, size, func(lo, hi, _, thread int) {
		s := c.softmaxPart(rowOf(workspace, thread), size, dst, src)
		s.Scale = 1
		c.softmaxAll(&s, lo, hi)
	})
}

// Argmax of each row.
func (c *Device) Argmax(dst Index, src Matrix) {
	noF64("Argmax", src)
	tensor.Need(dst.Len() == src.Rows, "Argmax: %d places for %d rows", dst.Len(), src.Rows)
	out := entriesOf(dst)
	if src.Cols == 0 {
		clear(out)
		return
	}
	c.byRows([]Matrix{src}, func(lo, hi int) {
		a := simd.Argmax{X: blockOf(src, lo), Rows: hi - lo, Cols: src.Cols, Dst: &out[lo]}
		a.Run(c.level)
	})
}
