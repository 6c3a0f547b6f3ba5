package tensor

import (
	"fmt"
	"math"
	"unsafe"

	"starling/tensor/simd"
)

// Element-wise work reads and writes memory and computes little, so it is cut
// into chunks of rows that fit the second-level cache, each one call of a loop in
// package simd.

// block is the rows of m from row i on.
func (m Matrix) block(i int) simd.Block {
	if m.Rows <= i || m.Cols == 0 || m.IsZero() {
		return simd.Block{}
	}
	size := m.dtype.Size()
	b := simd.Block{Data: unsafe.Add(m.base(), i*m.stride*size), BF16: m.dtype == BF16}
	if m.Rows > 1 {
		b.Stride = m.stride * size
	}
	return b
}

// result is the block of a matrix that is computed from others.
func (m Matrix) result(i int, from ...simd.Block) simd.Block {
	return past(m.block(i), m.Bytes(), from...)
}

// past has a block of a matrix of so many bytes written past the caches if these will not
// hold it, unless its lines are in them anyway because they are read too.
func past(b simd.Block, bytes int64, from ...simd.Block) simd.Block {
	b.Past = bytes >= streamBytes && (uintptr(b.Data)|uintptr(b.Stride))&63 == 0
	for _, f := range from {
		b.Past = b.Past && f.Data != b.Data
	}
	return b
}

// vector is the numbers of a 1 x n parameter, or nil for none.
func (m Matrix) vector(op, name string, n int) *float32 {
	if m.IsZero() {
		return nil
	}
	if m.Rows*m.Cols != n || m.dtype != F32 || !m.contiguous() {
		panic(fmt.Sprintf("tensor: %s: %s is %v, want %d float32", op, name, m, n))
	}
	if n == 0 {
		return nil
	}
	return &m.f32[0]
}

// sameShape panics unless all matrices that are given have the shape of the first.
func sameShape(op string, first Matrix, others ...Matrix) {
	for _, m := range others {
		if !m.IsZero() && (m.Rows != first.Rows || m.Cols != first.Cols) {
			panic(fmt.Sprintf("tensor: %s: %v beside %v", op, m, first))
		}
	}
}

// noF64 panics when a matrix is float64: kernels compute in float32.
func noF64(op string, ms ...Matrix) {
	for _, m := range ms {
		if m.dtype == F64 {
			panic(fmt.Sprintf("tensor: %s of %v, want float32 or bfloat16", op, m))
		}
	}
}

// Narrow rows waste lanes and time between rows. Where rows are alike, several of
// them are seen as one long row: of about flatRow numbers where columns do not
// matter either, else of about foldRow, with the columns' parameters repeated.
const flatRow, foldRow = 4096, 512

// repeats is how many rows of a number of columns make a row of about size; a
// multiple of sixteen where it can be, so that the long row is whole vectors.
func repeats(size, cols int) int {
	k := size / max(1, cols)
	if k >= 16 {
		k &^= 15
	}
	return max(1, k)
}

// fold sees each k rows of the matrices as one; the last rows, fewer than k, are
// returned as they were. It does nothing, and returns nil, where rows have gaps or are few.
func fold(k int, ms []Matrix) (rest []Matrix) {
	rows := ms[0].Rows
	for _, m := range ms {
		if !m.IsZero() && !m.contiguous() {
			return nil
		}
	}
	if k < 2 || rows < k || ms[0].Cols == 0 {
		return nil
	}
	rest = make([]Matrix, len(ms))
	for i, m := range ms {
		if m.IsZero() {
			continue
		}
		rest[i] = m.Slice(rows/k*k, rows)
		m.Rows, m.Cols, m.stride = rows/k, k*m.Cols, k*m.Cols
		ms[i] = m
	}
	return rest
}

// repeated is the n numbers at v k times over.
func repeated(v *float32, n, k int) *float32 {
	if v == nil {
		return nil
	}
	long := make([]float32, 0, n*k)
	for range k {
		long = append(long, unsafe.Slice(v, n)...)
	}
	return &long[0]
}

// byRows runs body on chunks of rows of all matrices that are given.
func (c *CPU) byRows(ms []Matrix, body func(lo, hi int)) {
	bytes := 0
	for _, m := range ms {
		if !m.IsZero() {
			bytes += m.Cols * m.dtype.Size()
		}
	}
	c.forRows(ms[0].Rows, rowChunk(bytes), func(lo, hi, _, _ int) { body(lo, hi) })
}

// Zero sets all numbers to zero.
func (c *CPU) Zero(m Matrix) {
	ms := []Matrix{m}
	rest := fold(repeats(flatRow, m.Cols), ms)
	past := m.Bytes() >= streamBytes
	c.byRows(ms, func(lo, hi int) {
		c.clearRows(ms[0].Slice(lo, hi), past)
		simd.Settle()
	})
	for _, r := range rest {
		c.clearRows(r, past)
	}
	simd.Settle()
}

// clearRows zeroes rows, past the caches if they are of a matrix that these do not hold.
func (c *CPU) clearRows(m Matrix, past bool) {
	switch {
	case m.Rows*m.Cols == 0:
	case !m.contiguous():
		for i := range m.Rows {
			c.clearRows(m.Slice(i, i+1), past)
		}
	case past:
		simd.ClearPast(c.level, m.bytes())
	default:
		clear(m.bytes())
	}
}

// Copy converts src to dst's type.
func (c *CPU) Copy(dst, src Matrix) {
	sameShape("Copy", dst, src)
	if dst.dtype == F64 || src.dtype == F64 {
		combineWide(dst, 1, src, 0, Matrix{})
		return
	}
	c.mapRows(dst, src, Matrix{}, simd.Map{})
}

// Combine computes a·x + b·y.
func (c *CPU) Combine(dst Matrix, a float64, x Matrix, b float64, y Matrix) {
	sameShape("Combine", dst, x, y)
	if dst.dtype == F64 || x.dtype == F64 || y.dtype == F64 {
		combineWide(dst, a, x, b, y)
		return
	}
	c.mapRows(dst, x, y, simd.Map{Combine: true, Alpha: float32(a), Beta: float32(b)})
}

// mapRows runs m on all rows.
func (c *CPU) mapRows(dst, src, other Matrix, m simd.Map) {
	cols, k := dst.Cols, 1
	switch {
	case m.Drop.On || m.Stat != nil: // rows differ
	case m.Center == nil && m.Scale == nil && m.Bias == nil:
		k = repeats(flatRow, cols)
	default:
		k = repeats(foldRow, cols)
	}
	ms := []Matrix{dst, src, other}
	rest := fold(k, ms)
	if rest != nil {
		m.Center, m.Scale, m.Bias = repeated(m.Center, cols, k), repeated(m.Scale, cols, k), repeated(m.Bias, cols, k)
		c.mapChunks(rest, m)
	}
	c.mapChunks(ms, m)
}

// mapChunks runs m on the rows of dst, src and other, chunk by chunk.
func (c *CPU) mapChunks(ms []Matrix, m simd.Map) {
	c.byRows(ms, func(lo, hi int) {
		part := m
		part.Src, part.Other = ms[1].block(lo), ms[2].block(lo)
		part.Dst = ms[0].result(lo, part.Src, part.Other)
		part.Rows, part.Cols = hi-lo, ms[0].Cols
		part.Drop = m.Drop.Rows(lo)
		if m.Stat != nil {
			part.Stat = (*float32)(unsafe.Add(unsafe.Pointer(m.Stat), lo*m.StatStride))
		}
		part.Run(c.level)
	})
}

// get and set reach one number of any type. They serve the few small float64
// matrices of this device, the sums of batch norm.
func (m Matrix) get(i, j int) float64 {
	switch k := i*m.stride + j; m.dtype {
	case F32:
		return float64(m.f32[k])
	case BF16:
		return float64(simd.FromBF16(m.b16[k]))
	default:
		return m.f64[k]
	}
}

func (m Matrix) set(i, j int, x float64) {
	switch k := i*m.stride + j; m.dtype {
	case F32:
		m.f32[k] = float32(x)
	case BF16:
		m.b16[k] = simd.ToBF16(float32(x))
	default:
		m.f64[k] = x
	}
}

func combineWide(dst Matrix, a float64, x Matrix, b float64, y Matrix) {
	for i := range dst.Rows {
		for j := range dst.Cols {
			v := a * x.get(i, j)
			if !y.IsZero() {
				v += b * y.get(i, j)
			}
			dst.set(i, j, v)
		}
	}
}

// Activate computes dropout(act(src + bias)).
func (c *CPU) Activate(dst, src Matrix, after After) {
	sameShape("Activate", dst, src)
	noF64("Activate", dst, src)
	c.mapRows(dst, src, Matrix{}, after.steps("Activate", dst))
}

// activateSerial is Activate on the calling goroutine, for kernels that finish a
// few rows while these are in cache. after belongs to exactly these rows.
func (c *CPU) activateSerial(dst, src Matrix, after After) {
	m := after.steps("Activate", dst)
	m.Dst, m.Src, m.Rows, m.Cols = dst.block(0), src.block(0), dst.Rows, dst.Cols
	m.Run(c.level)
}

// steps are the steps of a map that do what after says to the rows of dst.
func (a After) steps(op string, dst Matrix) simd.Map {
	return simd.Map{
		Bias: a.Bias.vector(op, "bias", dst.Cols),
		Act:  uint8(a.Act),
		Drop: a.Dropout.draws(op, dst.Rows),
	}
}

// draws are the dropout's draws for all rows of a matrix.
func (d Dropout) draws(op string, rows int) simd.Drop {
	if d.P == 0 {
		return simd.Drop{}
	}
	s := simd.Drop{
		On: true, Key: d.Key, First: d.First, Threshold: d.threshold(),
		Scale: float32(d.scale()), Keep: float32(1 / d.scale()),
	}
	if !d.IDs.IsZero() {
		if len(d.IDs.v) != rows {
			panic(fmt.Sprintf("tensor: %s: dropout has %d ids for %d rows", op, len(d.IDs.v), rows))
		}
		if rows > 0 {
			s.IDs = &d.IDs.v[0]
		}
	}
	return s
}

// ActivateGrad computes the gradient before an activation.
func (c *CPU) ActivateGrad(dx, dy, y Matrix, after After, dbias Matrix) {
	const op = "ActivateGrad"
	sameShape(op, dx, dy, y)
	noF64(op, dx, dy, y)
	g := simd.ActGrad{Act: uint8(after.Act), Drop: after.Dropout.draws(op, dx.Rows)}
	k := 1
	if after.Act == ReLU || !g.Drop.On { // no draws, so rows are alike
		k = repeats(foldRow, dx.Cols)
	}
	ms := []Matrix{dx, dy, y}
	run := func(ms []Matrix, lo, hi int, sums *float32) {
		part := g
		part.Dy, part.Y = ms[1].block(lo), ms[2].block(lo)
		part.Dx = ms[0].result(lo, part.Dy, part.Y)
		part.Rows, part.Cols = hi-lo, ms[0].Cols
		part.Drop = g.Drop.Rows(lo)
		part.Sums = sums
		part.Run(c.level)
	}
	if dbias.IsZero() {
		if rest := fold(k, ms); rest != nil {
			run(rest, 0, rest[0].Rows, nil)
		}
		c.byRows(ms, func(lo, hi int) { run(ms, lo, hi, nil) })
		return
	}
	dbias.vector(op, "dbias", dx.Cols)
	c.sumColumns(k, ms, [][]float32{dbias.f32}, func(ms []Matrix, lo, hi int, sums []float32) {
		run(ms, lo, hi, &sums[0])
	})
}

// maxChunks bounds the partial sums of an operation that sums over rows.
const maxChunks = 128

// sumChunk is how many rows make a chunk of such an operation, and how many rows
// of it are worked on at a time.
func sumChunk(ms []Matrix) (chunk, step int) {
	bytes := 0
	for _, m := range ms {
		if !m.IsZero() {
			bytes += m.Cols * m.dtype.Size()
		}
	}
	step = rowChunk(bytes)
	chunk = (ms[0].Rows + maxChunks - 1) / maxChunks
	return max(step, (chunk+step-1)/step*step), step
}

// sumColumns runs body on steps of rows of ms, k rows seen as one where that can
// be. body adds to sums, one float32 a column for each of dst, the second's at
// padded(cols). They go into dst by way of float64, in order of rows.
func (c *CPU) sumColumns(k int, ms []Matrix, dst [][]float32, body func(ms []Matrix, lo, hi int, sums []float32)) {
	rest := fold(k, ms)
	c.sumSteps(ms, dst, body)
	if rest != nil {
		c.sumSteps(rest, dst, body)
	}
}

func (c *CPU) sumSteps(ms []Matrix, dst [][]float32, body func(ms []Matrix, lo, hi int, sums []float32)) {
	rows, cols := ms[0].Rows, ms[0].Cols
	if rows == 0 || cols == 0 {
		return
	}
	room := padded(cols)
	n := len(dst)*room + apart
	chunk, step := sumChunk(ms)
	partial := c.Scratch(F64, (rows+chunk-1)/chunk, n)
	defer c.Free(partial)
	each := c.Scratch(F32, c.threads, n)
	defer c.Free(each)
	c.forRows(rows, chunk, func(lo, hi, k, thread int) {
		sums, total := each.row(thread), partial.row64(k)
		clear(total)
		for i := lo; i < hi; i += step {
			clear(sums)
			body(ms, i, min(i+step, hi), sums)
			for j, x := range sums {
				total[j] += float64(x)
			}
		}
	})
	total := addRows(partial)
	for k, d := range dst {
		for j, x := range folded(total[k*room:k*room+cols], len(d)) {
			d[j] = float32(float64(d[j]) + x)
		}
	}
}

// folded adds up the sums of rows that were seen as one: each n of them.
func folded(sums []float64, n int) []float64 {
	for lo := n; lo < len(sums); lo += n {
		for j := range n {
			sums[j] += sums[lo+j]
		}
	}
	return sums[:n]
}

// apart is how many numbers lie between sums of different chunks. Processors fetch some lines beyond those they
// use, which takes them from the core that adds to the next sums: a tenth of the time of ColumnSums.
const apart = 128

// padded is the room the sums of n columns take: loops store whole vectors.
func padded(n int) int { return (n + 15) / 16 * 16 }

// addRows adds all rows of a float64 matrix to the first, in order.
func addRows(m Matrix) []float64 {
	total := m.row64(0)
	for i := 1; i < m.Rows; i++ {
		for j, x := range m.row64(i) {
			total[j] += x
		}
	}
	return total
}

// Dot is the sum of products of equal places.
func (c *CPU) Dot(x, y Matrix) float64 {
	sameShape("Dot", x, y)
	if x.dtype == F64 || y.dtype == F64 {
		return dotWide(x, y)
	}
	ms := []Matrix{x, y}
	rest := fold(repeats(flatRow, x.Cols), ms)
	sum := c.dotRows(ms[0], ms[1])
	if rest != nil {
		sum += c.dotRows(rest[0], rest[1])
	}
	return sum
}

func dotWide(x, y Matrix) (sum float64) {
	for i := range x.Rows {
		for j := range x.Cols {
			sum += x.get(i, j) * y.get(i, j)
		}
	}
	return sum
}

func (c *CPU) dotRows(x, y Matrix) float64 {
	if x.Rows == 0 || x.Cols == 0 {
		return 0
	}
	chunk, step := sumChunk([]Matrix{x, y})
	partial := make([]float64, (x.Rows+chunk-1)/chunk)
	c.forRows(x.Rows, chunk, func(lo, hi, k, _ int) {
		d := simd.Dot{Cols: x.Cols}
		for i := lo; i < hi; i += step {
			d.X, d.Y, d.Rows = x.block(i), y.block(i), min(i+step, hi)-i
			d.Run(c.level)
		}
		partial[k] = d.Sum
	})
	sum := 0.0
	for _, p := range partial {
		sum += p
	}
	return sum
}

// Finite reports whether all numbers are finite.
func (c *CPU) Finite(m Matrix) bool {
	if m.dtype == F64 {
		return finiteWide(m)
	}
	ms := []Matrix{m}
	rest := fold(repeats(flatRow, m.Cols), ms)
	return c.finiteRows(ms[0]) && (rest == nil || c.finiteRows(rest[0]))
}

func finiteWide(m Matrix) bool {
	for i := range m.Rows {
		for _, x := range m.row64(i) {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return false
			}
		}
	}
	return true
}

func (c *CPU) finiteRows(m Matrix) bool {
	if m.Rows == 0 || m.Cols == 0 {
		return true
	}
	chunk, step := sumChunk([]Matrix{m})
	bad := make([]bool, (m.Rows+chunk-1)/chunk)
	c.forRows(m.Rows, chunk, func(lo, hi, k, _ int) {
		for i := lo; i < hi && !bad[k]; i += step {
			f := simd.Finite{X: m.block(i), Rows: min(i+step, hi) - i, Cols: m.Cols}
			f.Run(c.level)
			bad[k] = f.Bad
		}
	})
	for _, b := range bad {
		if b {
			return false
		}
	}
	return true
}
