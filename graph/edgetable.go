package graph

import (
	"bufio"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// An EdgeTable writes what edges have beside their ends: weights, times and features, where repeated edges may become
// one. Its rows are given in the order in which the sorter was given the edges:
//
//	s := w.Sorter(n, expected, false, opt)
//	s.Number()
//	t, err := w.EdgeTable(weights, times, dim)
//	defer t.Close()
//	t.Put(…)                   // for every s.Add, in its order
//	…; s.Finish()
//	t.Write(Sum, nil, nil)
type EdgeTable struct {
	w                        *Writer
	dim                      int
	weights, times, features *spill
}

// Repeats says what becomes of edges that are listed more than once.
type Repeats string

// What repeated edges become.
const (
	First Repeats = "first" // the first stays
	Keep  Repeats = "keep"  // all stay
	Sum   Repeats = "sum"   // one edge: weights and features are added up
	Mean  Repeats = "mean"  // one edge: weights and features are averaged
	Count Repeats = "count" // one edge, whose weight says how many there were; features are averaged
)

// AllRepeats are the values of Repeats.
var AllRepeats = []Repeats{Sum, Mean, Count, Keep, First}

// Joins tells whether repeated edges become one that has something of all.
func (r Repeats) Joins() bool { return r == Sum || r == Mean || r == Count }

// spill is a nameless file of rows.
type spill struct {
	f    *os.File
	buf  *bufio.Writer
	size int64
	all  []byte // mapped
}

func (w *Writer) spill(wanted bool) (*spill, error) {
	if !wanted {
		return nil, nil
	}
	f, err := w.Scratch()
	return &spill{f: f, buf: bufio.NewWriterSize(f, 1<<20)}, err
}

func (s *spill) put(b []byte) error {
	if s == nil {
		return nil
	}
	s.size += int64(len(b))
	_, err := s.buf.Write(b)
	return err
}

func (s *spill) mapped() (err error) {
	if s == nil {
		return nil
	}
	if err = s.buf.Flush(); err == nil {
		s.all, err = mapFile(s.f, s.size)
	}
	return err
}

func (s *spill) close() {
	if s != nil {
		unmapFile(s.all)
		s.f.Close()
		s.all = nil
	}
}

// spilled are the rows of a file that is mapped.
func spilled[T element](s *spill) []T {
	if s == nil || s.all == nil {
		return nil
	}
	return fromBytes[T](s.all)
}

// EdgeTable starts a table of edges, with dim features of each.
func (w *Writer) EdgeTable(weights, times bool, dim int) (t *EdgeTable, err error) {
	t = &EdgeTable{w: w, dim: dim}
	if t.weights, err = w.spill(weights); err == nil {
		if t.times, err = w.spill(times); err == nil {
			t.features, err = w.spill(dim > 0)
		}
	}
	if err != nil {
		t.Close()
	}
	return t, err
}

// Close frees the table.
func (t *EdgeTable) Close() {
	for _, s := range []*spill{t.weights, t.times, t.features} {
		s.close()
	}
}

// Put appends rows; what the table does not have is nil. A missing feature is NaN.
func (t *EdgeTable) Put(weights []float32, times []int64, features []float32) error {
	if err := t.weights.put(asBytes(weights)); err != nil {
		return err
	}
	if err := t.times.put(asBytes(times)); err != nil {
		return err
	}
	return t.features.put(asBytes(features))
}

// Write writes the table in the order of the sorted edges. Features of every edge go to look, if any, in a first pass,
// and may be changed by finish in the second.
func (t *EdgeTable) Write(r Repeats, look func(row []float32), finish func(row []float32) error) error {
	for _, s := range []*spill{t.weights, t.times, t.features} {
		if err := s.mapped(); err != nil {
			return err
		}
	}
	g, numbers, closing, err := t.w.takeNumbered(r.Joins())
	if err != nil {
		return err
	}
	defer closing()
	c := &joiner{t: t, g: g, numbers: numbers, repeats: r, row: make([]float32, t.dim),
		weights: spilled[float32](t.weights), times: spilled[int64](t.times), features: spilled[float32](t.features)}
	if look != nil && t.dim > 0 {
		if err := c.each(func(*joined) error { look(c.row); return nil }); err != nil {
			return err
		}
	}
	if err := c.write(finish); err != nil {
		return err
	}
	return t.w.weighSymmetry()
}

// takeNumbered maps the sorted edges and where each was listed. Their files are then gone: of the edges only if they are
// to be written again.
func (w *Writer) takeNumbered(rewritten bool) (g *CSR, numbers []uint32, closing func() error, err error) {
	d := &Dataset{Dir: w.tmp, Meta: w.Meta, maps: map[string][]byte{}}
	if err = d.loadGraph(); err == nil {
		var bits []float32
		bits, err = array[float32](d, numbersFile, w.Meta.Edges)
		numbers = fromBytes[uint32](asBytes(bits))
	}
	gone := []string{numbersFile}
	if rewritten {
		gone = append(gone, "indptr.npy", "indices.npy")
	}
	for _, name := range gone {
		if err == nil {
			delete(w.Meta.Arrays, name)
			err = os.Remove(filepath.Join(w.tmp, name))
		}
	}
	if err != nil {
		d.Close()
		return nil, nil, nil, err
	}
	return d.Graph, numbers, d.Close, nil
}

// joiner makes edges of the rows of a table.
type joiner struct {
	t        *EdgeTable
	g        *CSR
	numbers  []uint32 // of each edge: its row
	repeats  Repeats
	weights  []float32
	times    []int64
	features []float32
	row      []float32 // features of the edge at hand
	sums     []float64
	counts   []int
}

// joined is an edge, or one that several became.
type joined struct {
	source uint32
	target int64
	weight float32
	time   int64
}

// each goes over the edges in order; the features are in row.
func (c *joiner) each(use func(*joined) error) error {
	var e joined
	for v := range int64(c.g.Nodes()) {
		for at := c.g.Indptr[v]; at < c.g.Indptr[v+1]; {
			end := at + 1
			for c.repeats.Joins() && end < c.g.Indptr[v+1] && c.g.Indices[end] == c.g.Indices[at] {
				end++
			}
			e = joined{source: c.g.Indices[at], target: v}
			c.join(&e, c.numbers[at:end])
			if err := use(&e); err != nil {
				return err
			}
			at = end
		}
	}
	return nil
}

// join makes one edge of rows. Its time is the latest: it was not there before.
func (c *joiner) join(e *joined, rows []uint32) {
	if c.times != nil {
		e.time = c.times[rows[0]]
		for _, n := range rows[1:] {
			e.time = max(e.time, c.times[n])
		}
	}
	if c.repeats == Count {
		e.weight = float32(len(rows))
	} else if c.weights != nil {
		var sum float64
		for _, n := range rows {
			sum += float64(c.weights[n])
		}
		if c.repeats == Mean {
			sum /= float64(len(rows))
		}
		e.weight = float32(sum)
	}
	if c.t.dim == 0 {
		return
	}
	if len(rows) == 1 {
		at := int(rows[0]) * c.t.dim
		copy(c.row, c.features[at:at+c.t.dim])
		return
	}
	c.joinFeatures(rows)
}

// joinFeatures adds up or averages features, of those that are there.
func (c *joiner) joinFeatures(rows []uint32) {
	if c.sums == nil {
		c.sums, c.counts = make([]float64, c.t.dim), make([]int, c.t.dim)
	}
	clear(c.sums)
	clear(c.counts)
	for _, n := range rows {
		at := int(n) * c.t.dim
		for k, x := range c.features[at : at+c.t.dim] {
			if x == x {
				c.sums[k] += float64(x)
				c.counts[k]++
			}
		}
	}
	for k, sum := range c.sums {
		switch {
		case c.counts[k] == 0:
			c.row[k] = float32(math.NaN())
		case c.repeats == Sum:
			c.row[k] = float32(sum)
		default:
			c.row[k] = float32(sum / float64(c.counts[k]))
		}
	}
}

// edgeArrays are the arrays that write fills, one element or row per edge.
type edgeArrays struct {
	indices  *buffered[uint32]
	weights  *buffered[float32]
	times    *buffered[int64]
	features *buffered[float32]
}

// write writes all arrays.
func (c *joiner) write(finish func(row []float32) error) (err error) {
	w, edges := c.t.w, int64(0)
	if c.repeats.Joins() {
		if edges, err = c.writeOffsets(); err != nil {
			return err
		}
	} else {
		edges = w.Meta.Edges
	}
	var a edgeArrays
	if a.indices, err = newBuffered[uint32](w, c.repeats.Joins(), "indices.npy", edges); err != nil {
		return err
	}
	if a.weights, err = newBuffered[float32](w, c.weights != nil || c.repeats == Count, "weights.npy", edges); err != nil {
		return err
	}
	if a.times, err = newBuffered[int64](w, c.times != nil, edgeTimesFile, edges); err != nil {
		return err
	}
	if w.Meta.EdgeDim = c.t.dim; c.t.dim > 0 {
		if a.features, err = newBuffered[float32](w, true, "edge_features.npy", edges, int64(c.t.dim)); err != nil {
			return err
		}
	}
	err = c.each(func(e *joined) error {
		if finish != nil && c.t.dim > 0 {
			if err := finish(c.row); err != nil {
				return err
			}
		}
		a.indices.add(e.source)
		a.weights.add(e.weight)
		a.times.add(e.time)
		return a.features.add(c.row...)
	})
	for _, close := range []func(error) error{a.indices.close, a.weights.close, a.times.close, a.features.close} {
		err = close(err)
	}
	w.Meta.Edges = edges
	return err
}

// writeOffsets writes where rows begin once repeated edges are one.
func (c *joiner) writeOffsets() (edges int64, err error) {
	indptr := make([]int64, 1, 1<<16)
	a, err := c.t.w.Array("indptr.npy", "<i8", int64(c.g.Nodes())+1)
	if err != nil {
		return 0, err
	}
	for v := range int64(c.g.Nodes()) {
		row := c.g.Indices[c.g.Indptr[v]:c.g.Indptr[v+1]]
		for i, u := range row {
			if i == 0 || u != row[i-1] {
				edges++
			}
		}
		if indptr = append(indptr, edges); len(indptr) == cap(indptr) {
			if err := WriteSlice(a, indptr); err != nil {
				a.Abort()
				return 0, err
			}
			indptr = indptr[:0]
		}
	}
	if err := WriteSlice(a, indptr); err != nil {
		a.Abort()
		return 0, err
	}
	return edges, a.Close()
}

// buffered writes an array some elements at a time; nil does nothing.
type buffered[T element] struct {
	a     *ArrayWriter
	buf   []T
	err   error
	check string // the field of numbers that must be finite
}

func newBuffered[T element](w *Writer, wanted bool, name string, shape ...int64) (*buffered[T], error) {
	if !wanted {
		return nil, nil
	}
	a, err := w.Array(name, descrOf[T](), shape...)
	return &buffered[T]{a: a, check: strings.TrimSuffix(name, ".npy")}, err
}

func (b *buffered[T]) add(x ...T) error {
	if b == nil || b.err != nil {
		return nil
	}
	if b.buf = append(b.buf, x...); len(b.buf) >= 1<<16 {
		b.flush()
	}
	return b.err
}

func (b *buffered[T]) flush() {
	if numbers, ok := any(b.buf).([]float32); ok {
		b.err = checkFinite(b.check, numbers, 1)
	}
	if b.err == nil {
		b.err = WriteSlice(b.a, b.buf)
	}
	b.buf = b.buf[:0]
}

// close completes the array, or after an error only closes it.
func (b *buffered[T]) close(before error) error {
	if b == nil {
		return before
	}
	if b.err == nil {
		b.flush()
	}
	if before == nil {
		before = b.err
	}
	if before != nil {
		b.a.Abort()
		return before
	}
	return b.a.Close()
}

// weighSymmetry looks again whether edges have their reverse, now that they have weights.
func (w *Writer) weighSymmetry() error {
	if !w.Meta.Symmetric {
		return nil
	}
	g, closing, err := w.Written()
	if err != nil {
		return err
	}
	defer closing()
	w.Meta.Symmetric = g.Symmetric()
	return nil
}

// RepeatsNamed is a value of Repeats by its name; ok is false if there is none.
func RepeatsNamed(name string) (r Repeats, ok bool) {
	return Repeats(name), slices.Contains(AllRepeats, Repeats(name))
}
