package mini

import (
	"starling/exchange"
	"starling/nn"
	"starling/tensor"
	"starling/wire"
)

// coBlocks is the aggregator of batches that the workers of a server compute together: before a layer
// goes over a worker's share of its block, the rows of the other workers come, and on the way back
// their gradients return.
type coBlocks struct {
	onBlocks // of the batch itself, whose seeds it weighs
	rows     *exchange.Rows
	blocks   []*onBlocks
	halos    []*exchange.Halo
	ids      []tensor.Index
}

func newCoBlocks(w *exchange.Worker, dev tensor.Device, loops bool) *coBlocks {
	return &coBlocks{onBlocks: onBlocks{dev: dev, loops: loops}, rows: exchange.NewRows(w)}
}

func (c *coBlocks) begin(b *batch) {
	c.onBlocks.begin(b)
	c.rows.Begin(b.Epoch, b.Number, true)
	c.halos, c.ids = c.halos[:0], c.ids[:0]
	for i, x := range b.share.blocks {
		if i == len(c.blocks) {
			c.blocks = append(c.blocks, &onBlocks{dev: c.dev, loops: c.loops})
		}
		c.blocks[i].begin(&x.batch)
		c.halos = append(c.halos, &exchange.Halo{Dst: x.Blocks[0].Dst, Src: x.local,
			Send: tensor.Indices(c.dev, x.send), SendPtr: x.sendPtr, HaloPtr: x.haloPtr})
		c.ids = append(c.ids, tensor.Indices(c.dev, x.pulled.known.IDs))
	}
}

func (c *coBlocks) end() {
	for _, on := range c.blocks[:len(c.halos)] {
		on.end()
	}
	c.onBlocks.end()
}

// failed is why rows mean nothing.
func (c *coBlocks) failed() error { return c.rows.Err() }

// at is the place of a layer's block.
func (c *coBlocks) at(layer int) int {
	if len(c.halos) == 1 {
		return 0
	}
	return layer
}

func (c *coBlocks) Rows(layer int) (dst, src int) {
	h := c.halos[c.at(layer)]
	return h.Dst, h.Src
}

func (c *coBlocks) MessageRows(layer int) int {
	h := c.halos[c.at(layer)]
	return h.Src + h.DirectRows()
}

// Sum brings the rows of other workers behind the local ones.
func (c *coBlocks) Sum(layer int, r nn.Reduction, dst, src tensor.Matrix) {
	c.sum(exchange.Tag{Layer: layer, Kind: wire.Activation}, r, dst, src)
}

func (c *coBlocks) sum(t exchange.Tag, r nn.Reduction, dst, src tensor.Matrix) {
	at := c.at(t.Layer)
	h := c.halos[at]
	all := src
	if n := h.DirectRows(); n > 0 || h.Send.Len() > 0 {
		all = c.dev.Scratch(src.Type(), h.Src+n, src.Cols)
		defer c.dev.Free(all)
		x := c.rows.Exchange(t, h, all.Slice(h.Src, all.Rows), src)
		c.dev.Copy(all.Slice(0, h.Src), src.Slice(0, h.Src))
		x.Wait()
		x.Done()
	}
	c.blocks[at].Sum(0, r, dst, all)
}

func (c *coBlocks) SumGrad(layer int, r nn.Reduction, dsrc, ddst tensor.Matrix) {
	at := c.at(layer)
	h := c.halos[at]
	n := h.DirectRows()
	if n == 0 && h.Send.Len() == 0 {
		c.blocks[at].SumGrad(0, r, dsrc, ddst)
		return
	}
	all := c.dev.Scratch(dsrc.Type(), h.Src+n, dsrc.Cols)
	defer c.dev.Free(all)
	c.blocks[at].SumGrad(0, r, all, ddst)
	c.dev.Copy(dsrc, all.Slice(0, h.Src))
	t := exchange.Tag{Layer: layer, Backward: true, Kind: wire.Gradient}
	x := c.rows.Reverse(t, h, all.Slice(h.Src, all.Rows), dsrc)
	x.Wait()
	x.Done()
}

// Constant is the first layer's sum over features: the other workers' rows come once per batch,
// and nothing goes back.
func (c *coBlocks) Constant(r nn.Reduction, src tensor.Matrix) (tensor.Matrix, bool) {
	sum := c.dev.Scratch(src.Type(), c.halos[0].Dst, src.Cols)
	c.taken = append(c.taken, sum)
	c.sum(exchange.Tag{Kind: wire.Feature}, r, sum, src)
	return sum, true
}

func (c *coBlocks) Edgewise(op nn.EdgeOperator) {
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

func (c *coBlocks) EdgewiseGrad(op nn.EdgeOperator) {
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

func (c *coBlocks) await(arrivals []exchange.Arrival) {
	for _, x := range arrivals {
		x.Wait()
	}
	for _, x := range arrivals {
		x.Done()
	}
}

func (c *coBlocks) edgesAt(at int) *nn.Edges {
	e := c.blocks[at].edges(0)
	e.IDs = c.ids[at]
	return e
}
