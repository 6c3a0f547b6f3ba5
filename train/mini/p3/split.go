package p3

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"starling/coflow"
	"starling/exchange"
	"starling/graph"
	"starling/nn"
	"starling/tensor"
	"starling/train"
	"starling/train/batch"
	"starling/wire"
)

// columns are some columns of the features of all vertices.
type columns struct {
	lo, hi, all int
	kind        graph.FeatureKind
	rows        graph.Features
}

// encodeColumns writes columns of all rows: numbers in their type, or of sparse rows the lengths,
// columns and values.
func encodeColumns(f *graph.Features, lo, hi int) (b []byte) {
	put := binary.LittleEndian
	switch f.Kind() {
	case graph.BFloat16:
		b = make([]byte, 0, 2*f.Rows*(hi-lo))
	case graph.Dense:
		b = make([]byte, 0, 4*f.Rows*(hi-lo))
	}
	for v := range f.Rows {
		switch f.Kind() {
		case graph.Sparse:
			b = appendColumns(b, f, v, uint32(lo), uint32(hi))
		case graph.BFloat16:
			b, _ = binary.Append(b, put, f.BF16[v*f.Cols+lo:v*f.Cols+hi])
		default:
			b, _ = binary.Append(b, put, f.F32[v*f.Cols+lo:v*f.Cols+hi])
		}
	}
	return b
}

// appendColumns writes how many entries of a sparse row are in the columns, and these.
func appendColumns(b []byte, f *graph.Features, v int, lo, hi uint32) []byte {
	at, n := len(b), uint32(0)
	b = append(b, 0, 0, 0, 0)
	for e := f.Indptr[v]; e < f.Indptr[v+1]; e++ {
		if c := f.Indices[e]; c >= lo && c < hi {
			b = binary.LittleEndian.AppendUint32(b, c-lo)
			b, _ = binary.Append(b, binary.LittleEndian, f.Values[e])
			n++
		}
	}
	binary.LittleEndian.PutUint32(b[at:], n)
	return b
}

// grow takes memory for rows of dense features.
func (c *columns) grow(rows int) {
	switch n := rows * (c.hi - c.lo); c.kind {
	case graph.BFloat16:
		c.rows.BF16 = make([]uint16, 0, n)
	case graph.Dense:
		c.rows.F32 = make([]float32, 0, n)
	}
}

// append adds rows that encodeColumns wrote.
func (c *columns) append(b []byte, rows int) error {
	f, width := &c.rows, c.hi-c.lo
	f.Rows, f.Cols = f.Rows+rows, width
	switch {
	case c.kind == graph.Sparse:
		return c.appendSparse(b, rows)
	case c.kind == graph.BFloat16 && len(b) == 2*rows*width:
		f.BF16 = append(f.BF16, make([]uint16, rows*width)...)
		binary.Decode(b, binary.LittleEndian, f.BF16[len(f.BF16)-rows*width:])
	case c.kind == graph.Dense && len(b) == 4*rows*width:
		f.F32 = append(f.F32, make([]float32, rows*width)...)
		binary.Decode(b, binary.LittleEndian, f.F32[len(f.F32)-rows*width:])
	default:
		return fmt.Errorf("%d bytes for %d rows of %d columns", len(b), rows, width)
	}
	return nil
}

func (c *columns) appendSparse(b []byte, rows int) error {
	r, f := exchange.NewReader(b), &c.rows
	if f.Indptr == nil {
		f.Indptr = []int64{0}
	}
	for range rows {
		for range r.Number() {
			f.Indices, f.Values = append(f.Indices, r.Number()), append(f.Values, r.Float())
			if r.Short() || f.Indices[len(f.Indices)-1] >= uint32(f.Cols) {
				return fmt.Errorf("%d bytes are not %d sparse rows of %d columns", len(b), rows, f.Cols)
			}
		}
		f.Indptr = append(f.Indptr, int64(len(f.Indices)))
	}
	return nil
}

// gather copies rows of vertices.
func (c *columns) gather(to []float32, vertices []uint32) []float32 {
	width := c.hi - c.lo
	to = slices.Grow(to[:0], len(vertices)*width)[:len(vertices)*width]
	for i, v := range vertices {
		if width > 0 {
			c.rows.CopyRow(to[i*width:(i+1)*width], v)
		}
	}
	return to
}

// firstBlock is the first block of a worker's batch, and this worker's columns of its sources.
type firstBlock struct {
	*batch.Batch
	rows  []float32
	scale float64 // of what dropout of the input has left; 1: there is none

	// While steps use it.
	on     *batch.Blocks // nil: products are of rows
	x, sum tensor.Matrix
}

// decodeRows reads what encodeRows wrote.
func (f *firstBlock) decodeRows(r *exchange.Reader, size int, nodes int64) error {
	dst, src := int(r.Number()), int(r.Number())
	if want := 8 + 4*src; dst > src || size != want {
		return fmt.Errorf("%d bytes for %d vertices of %d destinations, expected %d", size, src, dst, want)
	}
	f.Reset(0, 0, 1)
	f.Blocks[0].Dst, f.Blocks[0].Src = dst, src
	f.Vertices = r.Numbers(src)
	if slices.ContainsFunc(f.Vertices, func(v uint32) bool { return int64(v) >= nodes }) {
		return fmt.Errorf("a vertex is none of %d", nodes)
	}
	return nil
}

// decode reads what encodeFirst wrote, or encodeRows. What does not fit is refused: it may come from another
// build.
func (f *firstBlock) decode(b []byte, nodes int64, rows bool) error {
	r := exchange.NewReader(b)
	if rows {
		return f.decodeRows(r, len(b), nodes)
	}
	dst, src, edges, weights, rowWeights := int(r.Number()), int(r.Number()), int(r.Number()), int(r.Number()),
		int(r.Number())
	own := r.Number() != 0
	if want := 24 + 12*src + 12*dst + 4*(edges+weights+rowWeights); dst > src || len(b) != want {
		return fmt.Errorf("%d bytes for a block of %d edges from %d vertices to %d, expected %d", len(b), edges, src,
			dst, want)
	}
	f.Reset(0, 0, 1)
	x := &f.Blocks[0]
	x.Dst, x.Src, x.OwnDegrees = dst, src, own
	f.Vertices = r.Numbers(src)
	f.Pulled.Known.NoLoops, f.Pulled.Known.All = r.Doubles(src), r.Doubles(dst)
	for _, n := range r.Numbers(dst) {
		x.Indptr = append(x.Indptr, x.Indptr[len(x.Indptr)-1]+int64(n))
	}
	x.Indices, x.Weights, x.RowWeights = r.Numbers(edges), r.Floats(weights), r.Floats(rowWeights)
	if int(x.Indptr[dst]) != edges || slices.ContainsFunc(x.Indices, func(u uint32) bool { return int(u) >= src }) ||
		slices.ContainsFunc(f.Vertices, func(v uint32) bool { return int64(v) >= nodes }) {
		return fmt.Errorf("a block whose edges are not of its %d vertices", src)
	}
	return nil
}

// split is the features of all vertices by columns, as one worker of many has them: it computes
// its part of the first layer of all workers' batches. It is nn's SplitRows.
type split struct {
	site     *train.Site
	columns  *columns
	ids      []uint32 // of all vertices, by number in the partition, where the input has dropout
	draws    func(epoch, number int) tensor.Dropout
	delay    int  // batches whose products begin ahead of their steps
	byRows   bool // products are of rows, not of sums
	host     *batch.Host
	loops    bool
	rowType  tensor.DType
	dev      tensor.Device
	own      []*nn.Param // the weights of products
	products int         // of a step

	// Of the step at hand: the batch, the first blocks of all workers' batches, and how many products and gradients of
	// products there have been.
	batch       *batch.Batch
	blocks      []*firstBlock
	next, grads int
	ahead       func() []*batch.Batch // that come after it
	versions    []version
	err         error
	// Messages of gradients to workers and from them.
	out, in [][]byte
	free    []*product // whose memory is used again
}

// join gets what is known once there is a loop, whose batches are on a host.
func (s *split) join(f *train.Loop, h *batch.Host, loops bool) {
	s.dev, s.rowType, s.loops = f.Dev, f.Dev.RowType(f.Opt.Rows), loops
	h.First, s.host = s, h.OfBlocks(true)
	n := s.site.End.Size()
	s.out, s.in = make([][]byte, n), make([][]byte, n)
	s.own, s.products = owned(f.Model), len(f.Model.SplitProducts())
}

// Sums: where products are of sums, nothing goes back over first blocks.
func (s *split) Sums() bool { return !s.byRows }

// The messages of a batch.
const (
	stepSize    = exchange.FreeSteps // and after it the block
	stepProduct = stepSize + 2       // and after it other products
)

func splitKey(b *batch.Batch, step int, t coflow.Type, backward bool) wire.Key {
	return wire.Key{Step: uint32(step), Coflow: coflow.ID{Epoch: uint32(b.Epoch), Batch: uint32(b.Number), Layer: 0,
		Type: t, Backward: backward}}
}

// others are the other workers, beginning with the next.
func (s *split) others() []int { return batch.Others(s.site.End.Rank(), 0, s.site.End.Size()) }

// tell gives the first block of a batch to all workers and takes theirs, with the rows that it
// will need.
func (s *split) tell(ctx context.Context, b *batch.Batch, message []byte) error {
	messages := slices.Repeat([][]byte{message}, s.site.End.Size())
	id := splitKey(b, stepSize, coflow.Inputs, false).Coflow
	in, err := batch.Swap(ctx, s.site.End, s.others(), id, stepSize,
		batch.MostBlock(s.site.Part.Book), messages)
	if err != nil {
		return err
	}
	for _, q := range s.others() {
		if !s.site.MemoryOnly { // else nothing came: others' blocks take about what this one takes
			messages[q] = in[q]
		}
	}
	for q, f := range s.kept(b).blocks {
		if err := f.decode(messages[q], s.site.Part.Book.Nodes, s.byRows); err != nil {
			return fmt.Errorf("worker %d's first block: %w", q, err)
		}
		f.rows = s.columns.gather(f.rows, f.Vertices)
		f.drop(s.draws(b.Epoch, b.Number), s.columns, s.ids)
		if !s.byRows {
			f.Prepare()
		}
	}
	return nil
}

// firsts are the first blocks of all workers' batches, kept with this worker's, and their products under way.
type firsts struct {
	blocks   []*firstBlock
	products []*product
}

func (s *split) kept(b *batch.Batch) *firsts {
	f, ok := b.Kept.(*firsts)
	if !ok {
		f = &firsts{}
		for range s.site.End.Size() {
			f.blocks = append(f.blocks, &firstBlock{Batch: batch.NewBatch(s.host)})
		}
		b.Kept = f
	}
	return f
}

// Begin is the input of a batch's step.
func (s *split) Begin(b *batch.Batch) nn.Input {
	s.batch, s.blocks, s.next, s.grads = b, s.kept(b).blocks, 0, 0
	s.remember()
	return nn.Input{Split: s}
}

func (s *split) Failure() error { return s.err }

// slice is the rows of a first layer's weights that the columns meet.
func (s *split) slice(m tensor.Matrix) tensor.Matrix { return m.Slice(s.columns.lo, s.columns.hi) }

// number is the bytes of one in a partial sum.
func (s *split) number() int { return s.dev.Type().Size() }

// Product is the sums of a first layer that adds up its neighbours' features.
func (s *split) Product(reduce nn.Reduction, y tensor.Matrix, w, r *nn.Param) {
	s.compute(y, dst, func(f *firstBlock, to tensor.Matrix) { s.multiply(f, reduce, to, w, r) })
}

// Sources is the number of rows of the batch at hand.
func (s *split) Sources() int { return src(s.blocks[s.site.End.Rank()]) }

// Rows is rows of a first layer that transforms them first.
func (s *split) Rows(own bool, z, w tensor.Matrix) {
	s.compute(z, rowsOf(own), func(f *firstBlock, to tensor.Matrix) {
		if s.columns.hi == s.columns.lo {
			s.dev.Zero(to)
			return
		}
		s.load(f)
		s.dev.MatMul(to, f.x.Slice(0, to.Rows), s.slice(w), tensor.MatMul{})
	})
}

// rowsOf is the number of rows of a product over a block: of its destinations or of its sources.
func rowsOf(own bool) func(f *firstBlock) int {
	if own {
		return dst
	}
	return src
}

func dst(f *firstBlock) int { return f.Blocks[0].Dst }
func src(f *firstBlock) int { return f.Blocks[0].Src }

// multiply is this worker's part of the first layer over a block. It keeps what the gradient
// needs.
func (s *split) multiply(f *firstBlock, reduce nn.Reduction, y tensor.Matrix, w, r *nn.Param) {
	if f.on == nil {
		f.on = batch.NewBlocks(s.dev, s.loops, tensor.Matrix{})
	}
	f.on.Begin(f.Batch)
	if s.columns.hi == s.columns.lo {
		s.dev.Zero(y)
		return
	}
	s.load(f)
	f.sum, _ = f.on.Constant(reduce, f.x)
	s.dev.MatMul(y, f.sum, s.slice(w.Value), tensor.MatMul{})
	if r != nil {
		s.dev.MatMul(y, f.x.Slice(0, y.Rows), s.slice(r.Value), tensor.MatMul{Add: true})
	}
}

// load puts a block's columns on the device, until it is released.
func (s *split) load(f *firstBlock) {
	if !f.x.IsZero() {
		return
	}
	width := s.columns.hi - s.columns.lo
	f.x = s.dev.Scratch(s.rowType, len(f.Vertices), width)
	s.dev.Copy(f.x, s.dev.FromHost(len(f.Vertices), width, f.rows))
	if f.scale != 1 {
		s.dev.Combine(f.x, f.scale, f.x, 0, tensor.Matrix{})
	}
}

// release frees what a step kept of the first blocks.
func (s *split) release() {
	for _, f := range s.blocks {
		if !f.x.IsZero() {
			s.dev.Free(f.x)
		}
		f.x, f.sum = tensor.Matrix{}, tensor.Matrix{}
		if f.on != nil {
			f.on.End()
		}
	}
}

func (s *split) ProductGrad(_ nn.Reduction, g tensor.Matrix, w, r *nn.Param) {
	s.eachGrad(g, dst, func(f *firstBlock, theirs tensor.Matrix) {
		s.dev.MatMul(s.slice(w.Grad), f.sum, theirs, tensor.MatMul{TransA: true, Add: true})
		if r != nil {
			s.dev.MatMul(s.slice(r.Grad), f.x.Slice(0, dst(f)), theirs, tensor.MatMul{TransA: true, Add: true})
		}
	})
}

func (s *split) RowsGrad(own bool, dz, dw tensor.Matrix) {
	rows := rowsOf(own)
	s.eachGrad(dz, rows, func(f *firstBlock, theirs tensor.Matrix) {
		s.dev.MatMul(s.slice(dw), f.x.Slice(0, rows(f)), theirs, tensor.MatMul{TransA: true, Add: true})
	})
}

// eachGrad gives all workers the gradients of a product's rows, and goes through theirs. The last of a step releases
// its blocks.
func (s *split) eachGrad(g tensor.Matrix, rows func(f *firstBlock) int, add func(f *firstBlock, theirs tensor.Matrix)) {
	s.exchange(g, rows)
	for q, f := range s.blocks {
		theirs := g
		if q != s.site.End.Rank() {
			theirs = s.dev.Scratch(g.Type(), rows(f), g.Cols)
			if s.err == nil && !s.site.MemoryOnly {
				s.dev.Unpack(theirs, s.in[q], tensor.Packing{})
			}
		}
		if !f.x.IsZero() {
			add(f, theirs)
		}
		if q != s.site.End.Rank() {
			s.dev.Free(theirs)
		}
	}
	if s.grads++; s.grads == s.next {
		s.release()
	}
}

// exchange sends every other worker the gradients of this one's rows, and takes theirs.
func (s *split) exchange(g tensor.Matrix, rows func(f *firstBlock) int) {
	end, key := s.site.End, splitKey(s.batch, stepProduct+s.grads, coflow.Rows, true)
	var pending []*wire.Pending
	for _, q := range s.others() {
		n := g.Cols * rows(s.blocks[q]) * g.Type().Size()
		s.in[q] = slices.Grow(s.in[q][:0], n)[:n]
		pending = append(pending, end.Recv(q, key, wire.Gradient, s.in[q]))
	}
	for _, q := range s.others() {
		s.out[q] = slices.Grow(s.out[q][:0], int(g.Bytes()))[:g.Bytes()]
		s.dev.Pack(s.out[q], g, tensor.Packing{})
		pending = append(pending, end.Send(q, key, wire.Gradient, s.out[q]))
	}
	s.wait(pending)
}

// wait waits for messages, and keeps the first failure.
func (s *split) wait(pending []*wire.Pending) {
	if err := s.site.Waiting("partial sums", func() error {
		return batch.WaitAll(s.site.Ctx, pending)
	}); err != nil && s.err == nil {
		s.err = err
	}
}
