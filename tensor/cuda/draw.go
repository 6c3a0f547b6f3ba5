package cuda

import (
	"fmt"
	"math"
	"unsafe"

	"starling/tensor"
	"starling/tensor/cuda/driver"
	"starling/tensor/cuda/execution"
	"starling/tensor/cuda/memory"
)

// drawing draws batches of a graph that is on the GPU: kernels/draw.cu. It has a stream and memory of its own, so that
// the goroutine that draws may wait for sizes while another one computes; a batch is complete when Draw returns, and
// its memory is used again when the stream that computes has come to Done.
type drawing struct {
	d   *Device
	run *execution.Stream
	mem *memory.Memory
	of  tensor.Neighbourhoods // without its slices
	n   int                   // vertices of the graph

	indptr, indices, factor, where Matrix
	// Of the batch at hand: of scans and sorts, and of blocks whose loops change.
	sums, counts, rawPtr, raw Matrix
	keys, places              [2]Matrix
	totals                    Matrix // sums of scans, in memory of the host
	total                     []int64
	batches                   []*drawnBatch
}

// drawArgs is DrawArgs of kernels/draw.cu.
type drawArgs struct {
	indptr, indices, vertices, where, ptr, index, sums, total, count uintptr
	n, chunk, fanout, replace, first                                 int64
	key                                                              uint64
	factor, scale, rawPtr, raw                                       uintptr
	form, byID                                                       int64
}

// mostEntries is how many edges a block may have: their places are numbers of 31 bits.
const mostEntries = math.MaxInt32 - 1

// NewDrawing puts a graph on the GPU, on a stream of its own.
func (d *Device) NewDrawing(of tensor.Neighbourhoods) tensor.Drawing {
	g := &drawing{d: d, of: of, n: len(of.Indptr) - 1}
	run, err := execution.NewFirst(d.run.GPU, PTX)
	if err != nil {
		d.run.Fail(err)
	}
	g.run, g.mem = run, memory.New(run)
	run.NoGraphs()
	d.drawings = append(d.drawings, g)
	defer g.mem.Enter()()
	g.indptr, g.indices = keep(g, tensor.I64, of.Indptr), keep(g, U32, of.Indices)
	if of.Factor != nil {
		g.factor = keep(g, F64, of.Factor)
	}
	g.of.Indptr, g.of.Indices, g.of.Factor = nil, nil, nil
	g.where = g.mem.Piece(U32, max(g.n, 1), 1)
	const unseen = 0xff
	run.Library("cuMemsetD8Async", run.GPU.Fill, uint64(at(g.where)), unseen, uint64(g.where.Bytes()), uint64(run.Handle))
	g.sums = g.mem.Piece(tensor.I64, mostChunks, 1)
	staging, bytes := g.mem.Staging(8 * (2 + 2*len(of.Layers)))
	g.totals, g.total = staging, numbersOf[int64](bytes)
	run.Wait()
	return g
}

// keep copies a list to the GPU.
func keep[T any](g *drawing, t DType, list []T) Matrix {
	m := g.mem.Piece(t, max(len(list), 1), 1)
	if len(list) > 0 && !m.Unbacked() {
		g.mem.CopyIn(at(m), unsafe.Pointer(unsafe.SliceData(list)), t.Size()*len(list))
	}
	return m
}

func numbersOf[T any](b []byte) []T {
	var x T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(x)))
}

// DrawingFits reports whether a drawing takes less than half of what is free: measuring needs the rest.
func (d *Device) DrawingFits(of tensor.Neighbourhoods, seeds, batches int) bool {
	return drawingBytes(of, seeds, batches) < d.run.GPU.FreeMemory()/2
}

// drawingBytes is a bound of what is not small.
func drawingBytes(of tensor.Neighbourhoods, seeds, batches int) int64 {
	n := int64(len(of.Indptr) - 1)
	kept, batch, most := 8*n+4*int64(len(of.Indices))+4*n+8*int64(len(of.Factor)), int64(0), int64(0)
	rows := int64(seeds)
	for layer := len(of.Layers) - 1; layer >= 0; layer-- {
		l := of.Layers[layer]
		entries := int64(len(of.Indices))
		if l.Fanout >= 0 {
			entries = min(entries, rows*int64(l.Fanout))
		}
		batch += 4*entries + 12*rows
		most = max(most, entries)
		if !l.ByID {
			rows = min(n, rows+entries)
			batch += 8*entries + 8*rows
		}
	}
	return kept + int64(batches)*(batch+8*rows)*5/4 + 24*most
}

// mostChunks is into how many chunks a scan is cut.
const mostChunks = 1024

// scan launches the two kernels of a scan over at most n tasks.
func (g *drawing) scan(sums, put string, a drawArgs, n int, launched func(grid size3, a *drawArgs)) {
	n = max(n, 1)
	chunk := (n + threads*mostChunks - 1) / (threads * mostChunks) * threads
	a.chunk, a.sums = int64(chunk), at(g.sums)
	grid := size3{X: (n + chunk - 1) / chunk}
	execution.Launch(g.run, "draw", sums, grid, oneBlock, &a)
	if launched == nil {
		execution.Launch(g.run, "draw", put, grid, oneBlock, &a)
		return
	}
	launched(grid, &a)
}

// each launches a kernel over at most n tasks, which threads take in turn.
func (g *drawing) each(name string, a drawArgs, n int) {
	execution.Launch(g.run, "draw", name, g.d.elements(n), oneBlock, &a)
}

// grow makes sure that a matrix takes n numbers.
func (g *drawing) grow(m *Matrix, t DType, n int) {
	if !m.IsZero() && m.Rows >= n {
		return
	}
	if !m.IsZero() {
		g.mem.Release(*m)
	}
	*m = g.mem.Piece(t, n+n/4+64, 1)
}

// close gives all memory back. REQUIRES: the thread is the GPU's, and no one draws.
func (g *drawing) close() {
	g.run.Drain()
	g.mem.Drain()
	for _, b := range g.batches {
		if b.done != 0 {
			driver.Call(g.run.GPU.EventDestroy, b.done)
		}
	}
	g.mem.Close()
	g.run.Close()
}

// drawnBatch is a batch on the GPU.
type drawnBatch struct {
	of       *drawing
	n        int // vertices
	vertices Matrix
	own      Matrix
	blocks   []drawnBlock
	listed   Matrix // vertices, in memory of the host
	list     []uint32
	done     uintptr // the stream that computes has read the batch
	busy     bool
}

// drawnBlock is a layer's edges, in matrices that may have more room.
type drawnBlock struct {
	ptr, index, scale, backPtr, back, place Matrix
	in, out                                 longRows
	made                                    tensor.DrawnBlock
}

func (g *drawing) NewBatch() tensor.DrawnBatch {
	b := &drawnBatch{of: g, blocks: make([]drawnBlock, len(g.of.Layers))}
	g.batches = append(g.batches, b)
	return b
}

func (b *drawnBatch) Vertices() Index                   { return tensor.MakeIndex(b.vertices.Slice(0, b.n)) }
func (b *drawnBatch) Block(layer int) tensor.DrawnBlock { return b.blocks[layer].made }
func (b *drawnBatch) Own() Matrix {
	if b.own.IsZero() {
		return Matrix{}
	}
	return b.own.Slice(0, b.n)
}

// Done is called where the device is.
func (b *drawnBatch) Done() {
	d := b.of.d
	defer d.enter()()
	d.run.Settle()
	if b.done == 0 {
		b.done = d.run.Event(false)
	}
	b.busy = d.run.Record(b.done, d.run.Handle)
}

// Draw draws a batch in place of the one before.
func (b *drawnBatch) Draw(seeds []uint32, keys []uint64) error {
	g := b.of
	defer g.mem.Enter()()
	if b.busy {
		g.run.Do("cuEventSynchronize", g.run.GPU.EventSync, b.done)
		b.busy = false
	}
	if old := memory.BlockOf(b.vertices); old != nil {
		old.List(nil)
	}
	b.n = len(seeds)
	g.grow(&b.vertices, U32, b.mostVertices())
	if g.run.Failed() {
		return g.run.Err()
	}
	g.mem.CopyIn(at(b.vertices), unsafe.Pointer(unsafe.SliceData(seeds)), 4*len(seeds))
	a := drawArgs{vertices: at(b.vertices), where: at(g.where), n: int64(b.n)}
	g.each("draw_seeds", a, b.n)
	var err error
	for layer := len(b.blocks) - 1; layer >= 0 && err == nil; layer-- {
		err = b.layer(layer, keys[layer])
	}
	b.end()
	if err == nil {
		err = b.cutLong()
	}
	if failed := g.run.Err(); failed != nil {
		return failed
	}
	return err
}

// mostVertices is a bound of a batch's vertices.
func (b *drawnBatch) mostVertices() int {
	n := b.n
	for _, l := range b.of.of.Layers {
		switch {
		case l.ByID:
		case l.Fanout < 0 || n > b.of.n/(l.Fanout+1):
			return b.of.n
		default:
			n *= l.Fanout + 1
		}
	}
	return n
}

// end forgets where vertices are, for the next batch, and makes their factors.
func (b *drawnBatch) end() {
	g := b.of
	a := drawArgs{vertices: at(b.vertices), where: at(g.where), n: int64(b.n)}
	if g.of.Own {
		g.grow(&b.own, F32, b.n)
		a.scale, a.factor = at(b.own), at(g.factor)
	}
	g.each("draw_end", a, b.n)
	if g.of.Listed {
		b.listVertices()
	}
	g.run.Wait()
}

// listVertices copies the vertices to the host.
func (b *drawnBatch) listVertices() {
	g := b.of
	if len(b.list) < b.n {
		if b.list != nil {
			g.mem.Release(b.listed)
		}
		staging, bytes := g.mem.Staging(4 * (b.n + b.n/4))
		b.listed, b.list = staging, numbersOf[uint32](bytes)
	}
	g.run.Do("cuMemcpyDtoHAsync", g.run.GPU.CopyOut, at(b.listed), at(b.vertices), uintptr(4*b.n), g.run.Handle)
	memory.BlockOf(b.vertices).List(b.list)
}

// layer draws the edges of a layer, and their transpose.
func (b *drawnBatch) layer(layer int, key uint64) error {
	g, l, x := b.of, b.of.of.Layers[layer], &b.blocks[layer]
	a := drawArgs{indptr: at(g.indptr), indices: at(g.indices), vertices: at(b.vertices), where: at(g.where),
		n: int64(b.n), fanout: int64(l.Fanout), replace: number(g.of.Replace), key: key, factor: at(g.factor),
		form: int64(g.of.Loops), byID: number(l.ByID)}
	reformed := g.of.Loops != tensor.LoopsDrawn
	ptr, index := &x.ptr, &x.index
	if reformed {
		ptr, index = &g.rawPtr, &g.raw
	}
	bound, err := b.count(&a, l, x, ptr)
	if err != nil {
		return err
	}
	g.grow(index, U32, bound)
	a.index, a.total, a.scale = at(*index), 0, 0
	if l.Fanout < 0 {
		a.first = int64(bound)
		g.each("draw_all", a, bound)
	} else {
		execution.Launch(g.run, "draw", "draw_pick", blocks(b.n), oneBlock, &a)
	}
	b.number(a, l, bound, reformed)
	if reformed {
		bound += b.n
		b.reform(a, x, bound)
	}
	g.run.Wait()
	if g.run.Failed() {
		return g.run.Err()
	}
	b.made(layer, int(g.total[0]), int(g.total[1]))
	return nil
}

// count finds where the rows of a block begin, and a bound of its edges.
func (b *drawnBatch) count(a *drawArgs, l tensor.DrawnLayer, x *drawnBlock, ptr *Matrix) (bound int, err error) {
	g := b.of
	g.grow(ptr, tensor.I64, b.n+1)
	a.ptr, a.total = at(*ptr), at(g.totals)
	if l.Fanout >= 0 {
		g.grow(&x.scale, F32, b.n)
		a.scale = at(x.scale)
	}
	g.scan("draw_count_sums", "draw_counts", *a, b.n, nil)
	bound = b.n * l.Fanout
	if l.Fanout < 0 {
		g.run.Wait()
		bound = int(g.total[0])
	}
	if bound > mostEntries-b.n {
		return 0, fmt.Errorf("a batch of more than %d edges on the GPU; use a smaller --batch-size or --fanout, or "+
			"--draw-on host", mostEntries)
	}
	return bound, g.run.Err()
}

// number gives new sources their rows, and puts rows in place of vertices.
func (b *drawnBatch) number(a drawArgs, l tensor.DrawnLayer, bound int, reformed bool) {
	g := b.of
	b.of.total[1] = 0
	if l.ByID {
		return
	}
	a.count = a.ptr + uintptr(8*b.n)
	g.each("draw_name", a, bound)
	a.first, a.total = int64(b.n), at(g.totals)+8
	g.scan("draw_new_sums", "draw_new", a, bound, nil)
	if !reformed {
		g.each("draw_relabel", a, bound)
	}
}

// reform copies a block with other loops.
func (b *drawnBatch) reform(a drawArgs, x *drawnBlock, bound int) {
	g := b.of
	g.grow(&x.ptr, tensor.I64, b.n+1)
	g.grow(&x.index, U32, bound)
	a.rawPtr, a.raw, a.ptr, a.index, a.total = a.ptr, a.index, at(x.ptr), at(x.index), at(g.totals)
	g.scan("draw_reform_sums", "draw_reform", a, b.n, nil)
}

// made makes the matrices of a block that is drawn, with its transpose.
func (b *drawnBatch) made(layer, entries, more int) {
	g, l, x := b.of, b.of.of.Layers[layer], &b.blocks[layer]
	dst, cols := b.n, g.n
	if !l.ByID {
		b.n += more
		cols = b.n
	}
	x.made = tensor.DrawnBlock{In: tensor.DrawnSparse(dst, cols, int64(entries), x.ptr.Slice(0, dst+1),
		tensor.MakeIndex(x.index.Slice(0, entries)), Index{})}
	if l.Fanout >= 0 {
		x.made.Scale = x.scale.Slice(0, dst)
	}
	most := l.Fanout
	if g.of.Loops == tensor.Looped {
		most++
	}
	if x.in.none(g, x.ptr); l.Fanout < 0 || most > leastLong {
		x.in.find(g, x.ptr, dst, entries, 2+2*layer)
	}
	if l.ByID {
		return
	}
	b.transpose(x, dst, entries)
	x.out.none(g, x.backPtr)
	x.out.find(g, x.backPtr, b.n, entries, 3+2*layer)
	x.made.Out = tensor.DrawnSparse(b.n, dst, int64(entries), x.backPtr.Slice(0, b.n+1),
		tensor.MakeIndex(x.back.Slice(0, entries)), tensor.MakeIndex(x.place.Slice(0, entries)))
}

// cutLong makes the plans of rows that are long, whose sums are to be added in the order that all others have.
func (b *drawnBatch) cutLong() error {
	g, any := b.of, false
	for i := range b.blocks {
		x := &b.blocks[i]
		in, out := x.in.cut(g), x.out.cut(g)
		any = any || in || out
	}
	if any {
		g.run.Wait()
	}
	return g.run.Err()
}
