package cuda

import (
	"math/bits"

	"starling/tensor"
	"starling/tensor/cuda/execution"
	"starling/tensor/cuda/memory"
)

// sortArgs is SortArgs of kernels/draw.cu.
type sortArgs struct {
	keys, places, keysTo, placesTo, counts uintptr
	n, shift, tiles                        int64
}

// transposeArgs is TransposeArgs of kernels/draw.cu.
type transposeArgs struct {
	keys, places, ptr, backPtr, back uintptr
	entries, rows, cols              int64
}

// What a block of threads sorts at a time, and by how many bits.
const (
	sortTile = 2048
	sortBits = 8
)

// transpose makes the transpose of a block: its entries in order of columns, and of places among those of one column.
func (b *drawnBatch) transpose(x *drawnBlock, rows, entries int) {
	g, cols := b.of, b.n
	g.grow(&x.backPtr, tensor.I64, cols+1)
	g.grow(&x.back, U32, entries)
	g.grow(&x.place, U32, entries)
	keys := at(x.index)
	if entries > 0 {
		keys = g.sort(x, entries, cols)
	}
	a := transposeArgs{keys, at(x.place), at(x.ptr), at(x.backPtr), at(x.back), int64(entries), int64(rows), int64(cols)}
	execution.Launch(g.run, "draw", "draw_transpose", g.d.elements(max(entries, cols+1)), oneBlock, &a)
}

// sort puts the places of a block's entries in order, and returns where their columns are, in this order.
func (g *drawing) sort(x *drawnBlock, entries, cols int) (keys uintptr) {
	tiles := (entries + sortTile - 1) / sortTile
	g.grow(&g.counts, tensor.I64, tiles<<sortBits)
	for i := range g.keys {
		g.grow(&g.keys[i], U32, entries)
		g.grow(&g.places[i], U32, entries)
	}
	a := sortArgs{keys: at(x.index), counts: at(g.counts), n: int64(entries), tiles: int64(tiles)}
	passes := max(1, (bits.Len(uint(cols-1))+sortBits-1)/sortBits)
	for p := range passes {
		a.shift, a.keysTo, a.placesTo = int64(sortBits*p), at(g.keys[p%2]), at(g.places[p%2])
		if p == passes-1 {
			a.placesTo = at(x.place)
		}
		execution.Launch(g.run, "draw", "sort_count", size3{X: tiles}, oneBlock, &a)
		n := tiles << sortBits
		g.scan("sort_sums", "sort_starts", drawArgs{ptr: at(g.counts), n: int64(n)}, n, nil)
		execution.Launch(g.run, "draw", "sort_move", size3{X: tiles}, oneBlock, &a)
		a.keys, a.places = a.keysTo, a.placesTo
	}
	return a.keys
}

// longRows are the rows of a drawn matrix that are cut in pieces.
type longRows struct {
	plan   *plan
	sought bool
	rows   []int64 // row, first entry, end of each, in memory of the host
	memory Matrix
	total  int // of totals: how many there are
	limit  int64
}

// longArgs is LongArgs of kernels/draw.cu.
type longArgs struct {
	of   drawArgs
	rows uintptr
}

// none forgets the rows of the matrix before, whose rows begin as ptr says.
func (l *longRows) none(g *drawing, ptr Matrix) {
	if p := l.plan; p != nil {
		g.mem.Return(p.pieces)
		g.mem.Return(p.longs)
		g.mem.Return(p.wholes)
	}
	l.plan, l.sought = nil, false
	if b := memory.BlockOf(ptr); b != nil {
		b.Known = l
	}
}

// find begins to look for long rows.
func (l *longRows) find(g *drawing, ptr Matrix, rows, entries, total int) {
	l.sought, l.total, l.limit = true, total, longRow(rows, int64(entries))
	if n := 3 * (entries/int(l.limit) + 1); len(l.rows) < n {
		if l.rows != nil {
			g.mem.Release(l.memory)
		}
		staging, bytes := g.mem.Staging(8 * n)
		l.memory, l.rows = staging, numbersOf[int64](bytes)
	}
	a := drawArgs{ptr: at(ptr), n: int64(rows), first: l.limit, total: at(g.totals) + uintptr(8*total)}
	g.scan("draw_long_sums", "", a, rows, func(grid size3, a *drawArgs) {
		execution.Launch(g.run, "draw", "draw_longs", grid, oneBlock, &longArgs{*a, at(l.memory)})
	})
}

// cut makes the plan of the rows that were found, if there are any. REQUIRES: the stream was waited for.
func (l *longRows) cut(g *drawing) bool {
	if !l.sought || g.run.Failed() || g.total[l.total] == 0 {
		return false
	}
	l.plan = cut(g.mem.FromHost, l.rows[:3*g.total[l.total]], l.limit)
	return true
}
