package cobatch

import (
	"starling/exchange"
	"starling/nn"
	"starling/tensor"
	"starling/train/batch"
	"starling/wire"
)

// blocks is the aggregator of batches that workers compute together: while a layer goes over the edges from local rows
// of a worker's share of its block, the rows of the other workers come, and on the way back their gradients leave
// before those of local rows are computed.
type blocks struct {
	dev   tensor.Device
	loops bool
	whole *batch.Blocks // of the batch itself, whose seeds it weighs
	rows  *exchange.Rows
	each  []*batch.Blocks
	taken []tensor.Matrix // until the end of the step
	halos []*exchange.Halo
	ids   []tensor.Index
}

func newBlocks(w *exchange.Worker, dev tensor.Device, loops bool) *blocks {
	return &blocks{dev: dev, loops: loops, whole: batch.NewBlocks(dev, loops, tensor.Matrix{}),
		rows: exchange.NewRows(w)}
}

func (c *blocks) Begin(b *batch.Batch) {
	c.whole.Begin(b)
	c.rows.Begin(b.Epoch, b.Number, true)
	c.halos, c.ids = c.halos[:0], c.ids[:0]
	for i, x := range b.Kept.(*share).blocks {
		if i == len(c.each) {
			c.each = append(c.each, batch.NewBlocks(c.dev, c.loops, tensor.Matrix{}))
		}
		c.each[i].Begin(x.Batch)
		c.halos = append(c.halos, &exchange.Halo{Dst: x.Blocks[0].Dst, Src: x.local,
			Send: tensor.Indices(c.dev, x.send), SendPtr: x.sendPtr, HaloPtr: x.haloPtr})
		c.ids = append(c.ids, tensor.Indices(c.dev, x.Pulled.Known.IDs))
	}
}

func (c *blocks) End() {
	for _, on := range c.each[:len(c.halos)] {
		on.End()
	}
	for _, m := range c.taken {
		c.dev.Free(m)
	}
	c.taken = c.taken[:0]
	c.whole.End()
}

func (c *blocks) Weigh(dlogits tensor.Matrix) tensor.Matrix { return c.whole.Weigh(dlogits) }

func (c *blocks) AllReduce(tensor.Matrix) {}

// Failed is why rows mean nothing.
func (c *blocks) Failed() error { return c.rows.Err() }

// at is the place of a layer's block.
func (c *blocks) at(layer int) int {
	if len(c.halos) == 1 {
		return 0
	}
	return layer
}

func (c *blocks) Rows(layer int) (dst, src int) {
	h := c.halos[c.at(layer)]
	return h.Dst, h.Src
}

func (c *blocks) MessageRows(layer int) int {
	h := c.halos[c.at(layer)]
	return h.Src + h.DirectRows()
}

// Sum brings the rows of other workers behind the local ones.
func (c *blocks) Sum(layer int, r nn.Reduction, dst, src tensor.Matrix) {
	c.sum(exchange.Tag{Layer: layer, Kind: wire.Activation}, r, dst, src)
}

func (c *blocks) sum(t exchange.Tag, r nn.Reduction, dst, src tensor.Matrix) {
	at := c.at(t.Layer)
	h, on := c.halos[at], c.each[at]
	n := h.DirectRows()
	if n == 0 && h.Send.Len() == 0 {
		on.Sum(0, r, dst, src)
		return
	}
	rows := c.dev.Scratch(src.Type(), n, src.Cols)
	defer c.dev.Free(rows)
	x := c.rows.Exchange(t, h, rows, src)
	if n == 0 {
		on.Sum(0, r, dst, src)
	} else {
		on.SumLocal(0, r, dst, src)
	}
	if x.Wait(); n > 0 {
		on.SumRemote(0, r, dst, rows)
	}
	x.Done()
}

// SumGrad sends the gradients of other workers' rows before it computes those of local ones, to which what they send
// is added.
func (c *blocks) SumGrad(layer int, r nn.Reduction, dsrc, ddst tensor.Matrix) {
	at := c.at(layer)
	h, on := c.halos[at], c.each[at]
	n := h.DirectRows()
	if n == 0 && h.Send.Len() == 0 {
		on.SumGrad(0, r, dsrc, ddst)
		return
	}
	grads := c.dev.Scratch(dsrc.Type(), n, dsrc.Cols)
	defer c.dev.Free(grads)
	if n > 0 {
		on.RemoteGrad(0, r, grads, ddst)
	}
	x := c.rows.Reverse(exchange.Tag{Layer: layer, Backward: true, Kind: wire.Gradient}, h, grads, dsrc)
	if n == 0 {
		on.SumGrad(0, r, dsrc, ddst)
	} else {
		on.LocalGrad(0, r, dsrc, ddst)
	}
	x.Wait()
	x.Done()
}

// Constant is the first layer's sum over features: the other workers' rows come once per batch,
// and nothing goes back.
func (c *blocks) Constant(r nn.Reduction, src tensor.Matrix) (tensor.Matrix, bool) {
	sum := c.dev.Scratch(src.Type(), c.halos[0].Dst, src.Cols)
	c.taken = append(c.taken, sum)
	c.sum(exchange.Tag{Kind: wire.Feature}, r, sum, src)
	return sum, true
}

func (c *blocks) Edgewise(op nn.EdgeOperator) {
	at := c.at(op.Layer())
	h := c.halos[at]
	t := exchange.Tag{Layer: op.Layer(), EdgeOp: true, Kind: wire.Activation}
	var arrivals []exchange.Arrival
	for i, m := range op.Sent() {
		t.Scores = i > 0
		arrivals = append(arrivals, c.rows.Exchange(t, h, m.Slice(h.Src, m.Rows), m.Slice(0, h.Src)))
	}
	c.await(arrivals)
	op.EdgeForward(c.edgesAt(at), 0, h.Dst)
}

func (c *blocks) EdgewiseGrad(op nn.EdgeOperator) {
	at := c.at(op.Layer())
	h := c.halos[at]
	op.EdgeBackward(c.edgesAt(at))
	t := exchange.Tag{Layer: op.Layer(), EdgeOp: true, Backward: true, Kind: wire.Gradient}
	var arrivals []exchange.Arrival
	for i, m := range op.SentGrads() {
		t.Scores = i > 0
		arrivals = append(arrivals, c.rows.Reverse(t, h, m.Slice(h.Src, m.Rows), m.Slice(0, h.Src)))
	}
	c.await(arrivals)
}

func (c *blocks) await(arrivals []exchange.Arrival) {
	for _, x := range arrivals {
		x.Wait()
	}
	for _, x := range arrivals {
		x.Done()
	}
}

func (c *blocks) edgesAt(at int) *nn.Edges {
	e := c.each[at].Edges(0)
	e.IDs = c.ids[at]
	return e
}
