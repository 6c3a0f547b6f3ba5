package cagnet

import (
	"starling/exchange"
	"starling/nn"
	"starling/tensor"
	"starling/train"
	"starling/wire"
)

// grid is a worker of CAGNET's 1.5D or 2D algorithm. Workers are a grid of R rows and C
// columns. Row i has the parts of its C workers as one block of rows, z_i, and makes
//
//	y_i = Σ_k A_ik·z_k        k = 1 to R
//
// Its workers share that product. In 1.5D each has a share of the blocks k, and their sums
// are added; in 2D, where R = C, each has a share of the columns of z. A layer goes
//
//	assemble   own rows        ─ along the row ─▶     z_i: a copy on each worker, in 2D its columns
//	broadcast  z_k             ─ along the column ─▶  the workers that multiply it, one block at a time
//	return     shares of y_i   ─ along the row ─▶     own rows, added in 1.5D
//
// and backward the same way round: dy_i is assembled, A_ikᵀ·dy_i is added along the column,
// and what a row has then returns to its owners. Products with weights are made of own rows
// alone: the paper's 1.5D makes them on each of C copies, and its 2D by another broadcast.
// Blocks of A are sent once, before training; the paper's 2D broadcasts them in every layer.
type grid struct {
	w          *exchange.Worker
	moved      *exchange.Rows
	rows, cols int
	row, col   int  // this worker
	sliced     bool // 2D
	offsets    []int64
	blocks     []*nn.Topology // A_ik by k; nil: another worker of the row has it
}

// What a worker tells a peer at a time.
const (
	assembled = iota
	broadcast
	returned
)

func newGrid(s *train.Site, w *exchange.Worker, o options) (train.Strategy, error) {
	g := &grid{w: w, moved: exchange.NewRows(w), sliced: o.Grid == "2d", offsets: w.Part.Book.Offsets}
	g.cols = o.row(w.End.Size())
	g.rows = w.End.Size() / g.cols
	g.row, g.col = w.End.Rank()/g.cols, w.End.Rank()%g.cols
	on := exchange.NewSummed(g.moved, g)
	if w.Model.GraphLayers() == 0 {
		return on, nil
	}
	messages := g.messages()
	for q, m := range messages {
		if q != w.End.Rank() {
			on.Prepare.Add(w.Class(wire.Topology, -1, q), int64(sizeBytes+len(m)))
		}
	}
	if s.Alone && !s.MemoryOnly {
		return on, nil
	}
	return on, g.learn(messages)
}

func (g *grid) rank(row, col int) int { return row*g.cols + col }

// size is the number of rows of a block, partSize of a part.
func (g *grid) size(row int) int     { return int(g.offsets[(row+1)*g.cols] - g.offsets[row*g.cols]) }
func (g *grid) partSize(q int) int64 { return g.offsets[q+1] - g.offsets[q] }

// part is the rows of a worker among those of its block.
func (g *grid) part(q int) (lo, hi int) {
	first := g.offsets[q/g.cols*g.cols]
	return int(g.offsets[q] - first), int(g.offsets[q+1] - first)
}

// owner is the column whose workers multiply a block in 1.5D.
func (g *grid) owner(block int) int {
	for col := range g.cols {
		if block < exchange.Cut(g.rows, col+1, g.cols) {
			return col
		}
	}
	return g.cols - 1
}

// multiplies reports whether workers of a column multiply a block.
func (g *grid) multiplies(col, block int) bool { return g.sliced || g.owner(block) == col }

// width is how many of some features workers of a column have.
func (g *grid) width(all, col int) int {
	if !g.sliced {
		return all
	}
	return exchange.Cut(all, col+1, g.cols) - exchange.Cut(all, col, g.cols)
}

// share is the columns of features that workers of a column have.
func (g *grid) share(m tensor.Matrix, col int) tensor.Matrix {
	if !g.sliced {
		return m
	}
	return m.Columns(exchange.Cut(m.Cols, col, g.cols), exchange.Cut(m.Cols, col+1, g.cols))
}

// Numbers are what the three exchanges of a layer send.
func (g *grid) Numbers(width int, backward bool, peer int) (n int64) {
	row, col := peer/g.cols, peer%g.cols
	mine := int64(g.width(width, g.col))
	if row == g.row {
		n = g.partSize(g.w.End.Rank()) * int64(g.width(width, col))
		if !backward || g.multiplies(g.col, g.row) {
			n += g.partSize(peer) * mine
		}
	}
	if col == g.col && row != g.row {
		if block := map[bool]int{false: g.row, true: row}[backward]; g.multiplies(g.col, block) {
			n += int64(g.size(block)) * mine
		}
	}
	return n
}

// others are the other workers of the row, beginning with the next.
func (g *grid) others() (list []int) {
	for i := 1; i < g.cols; i++ {
		list = append(list, g.rank(g.row, (g.col+i)%g.cols))
	}
	return list
}

// assemble makes the row's block of the rows of its workers.
func (g *grid) assemble(x *exchange.Regrouping, own tensor.Matrix) tensor.Matrix {
	block := g.w.Dev.Scratch(own.Type(), g.size(g.row), g.width(own.Cols, g.col))
	for _, q := range g.others() {
		x.Receive(q, assembled, block.Slice(g.part(q)))
	}
	for _, q := range g.others() {
		x.Send(q, assembled, g.share(own, q%g.cols))
	}
	g.copy(block.Slice(g.part(g.w.End.Rank())), g.share(own, g.col))
	x.Wait()
	return block
}

// Sum takes the blocks of its column from its own on, each while it multiplies the one before.
func (g *grid) Sum(t exchange.Tag, r nn.Reduction, dst, src tensor.Matrix) {
	dev, x := g.w.Dev, g.moved.Regroup(t)
	block := g.assemble(x, src)
	if g.multiplies(g.col, g.row) {
		for i := 1; i < g.rows; i++ {
			x.Send(g.rank((g.row+g.rows-i)%g.rows, g.col), broadcast, block)
		}
	}
	y := dev.Scratch(src.Type(), block.Rows, block.Cols)
	next, at, added := g.ask(x, src.Type(), block.Cols, 0)
	if g.multiplies(g.col, g.row) {
		g.sum(r, g.row, y, block, false)
		added = true
	}
	for at > 0 {
		x.Wait()
		z, k := next, (g.row+at)%g.rows
		next, at, _ = g.ask(x, src.Type(), block.Cols, at)
		g.sum(r, k, y, z, added)
		dev.Free(z)
		added = true
	}
	g.giveShares(x, dst, y)
	dev.Free(block)
	dev.Free(y)
}

// ask asks for the next block after a step that this worker multiplies, and returns its step; 0: there is none.
func (g *grid) ask(x *exchange.Regrouping, t tensor.DType, width, step int) (z tensor.Matrix, at int, added bool) {
	for at = step + 1; at < g.rows; at++ {
		if k := (g.row + at) % g.rows; g.multiplies(g.col, k) {
			z = g.w.Dev.Scratch(t, g.size(k), width)
			x.Receive(g.rank(k, g.col), broadcast, z)
			return z, at, false
		}
	}
	return tensor.Matrix{}, 0, false
}

func (g *grid) sum(r nn.Reduction, k int, y, z tensor.Matrix, add bool) {
	if y.Rows*y.Cols > 0 {
		g.blocks[k].SumOf(r, y, z, 0, add)
	}
}

// giveShares returns shares of a row's sums to the owners of these: slices of columns, or sums that are added.
func (g *grid) giveShares(x *exchange.Regrouping, dst, y tensor.Matrix) {
	dev, partial := g.w.Dev, map[int]tensor.Matrix{}
	for _, q := range g.others() {
		into := g.share(dst, q%g.cols)
		if !g.sliced {
			into = dev.Scratch(dst.Type(), dst.Rows, dst.Cols)
			partial[q] = into
		}
		x.Receive(q, returned, into)
	}
	for _, q := range g.others() {
		x.Send(q, returned, y.Slice(g.part(q)))
	}
	g.copy(g.share(dst, g.col), y.Slice(g.part(g.w.End.Rank())))
	x.Wait()
	for q := range g.w.End.Size() { // in rank order
		if m, ok := partial[q]; ok {
			dev.Combine(dst, 1, dst, 1, m)
			dev.Free(m)
		}
	}
	x.Done()
}

// SumGrad adds gradients of blocks along the column: at each step a worker gives those of one block away and takes some
// of its own.
func (g *grid) SumGrad(t exchange.Tag, r nn.Reduction, dsrc, ddst tensor.Matrix) {
	dev, x := g.w.Dev, g.moved.Regroup(t)
	block := g.assemble(x, ddst)
	var sum, coming tensor.Matrix
	takes := g.multiplies(g.col, g.row)
	if takes {
		sum = dev.Scratch(ddst.Type(), block.Rows, block.Cols)
		coming = dev.Scratch(ddst.Type(), block.Rows, block.Cols)
		g.sumGrad(r, g.row, sum, block)
	}
	for i := 1; i < g.rows; i++ {
		if takes {
			x.Receive(g.rank((g.row+g.rows-i)%g.rows, g.col), broadcast, coming)
		}
		if k := (g.row + i) % g.rows; g.multiplies(g.col, k) {
			part := dev.Scratch(ddst.Type(), g.size(k), block.Cols)
			g.sumGrad(r, k, part, block)
			x.Give(g.rank(k, g.col), broadcast, part)
		}
		x.Wait()
		if takes && sum.Rows*sum.Cols > 0 {
			dev.Combine(sum, 1, sum, 1, coming)
		}
		x.Reap(1)
	}
	g.returnGrads(x, dsrc, sum)
	dev.Free(block)
	if takes {
		dev.Free(sum)
		dev.Free(coming)
	}
}

func (g *grid) sumGrad(r nn.Reduction, k int, dz, dy tensor.Matrix) {
	if dz.Rows*dz.Cols > 0 {
		g.blocks[k].SumGradOf(r, dz, dy, 0)
	}
}

// returnGrads returns the gradients of a row's block, which in 1.5D one worker of it has.
func (g *grid) returnGrads(x *exchange.Regrouping, dsrc, sum tensor.Matrix) {
	has := g.rank(g.row, g.owner(g.row))
	switch {
	case g.sliced:
		g.giveShares(x, dsrc, sum)
		return
	case has != g.w.End.Rank():
		x.Receive(has, returned, dsrc)
	default:
		for _, q := range g.others() {
			x.Send(q, returned, sum.Slice(g.part(q)))
		}
		g.copy(dsrc, sum.Slice(g.part(has)))
	}
	x.Wait()
	x.Done()
}

func (g *grid) copy(dst, src tensor.Matrix) {
	if dst.Rows*dst.Cols > 0 {
		g.w.Dev.Copy(dst, src)
	}
}
