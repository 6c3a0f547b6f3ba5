package bns

import (
	"starling/exchange"
	"starling/tensor"
)

// cached is boundary node sampling with a cache, as SANCUS has for whole blocks: a halo
// vertex that is not kept is not forgotten, but counts with the row that came last, and so
// does its gradient at its owner:
//
//	z_halo = z where it came this epoch, else as it came last
//	dz     = A_localᵀ·dy + what each peer returned last for our rows
//
// and with --means both are moved to the means of all such rows as they are now
// (exchange.Means). Nothing is scaled; rows are up to some multiples of 1/p epochs stale
// instead. In the first epoch all are kept. It moves the rows of bns, and a worker has
// memory for its halo rows and for the gradients of those it sends, of every layer.
//
// Scores of attention, its last layer, and gradients of both travel for all vertices in
// every epoch: see exchange.Tag.AlwaysFresh.
//
// All rows are there, so that every model can be trained. (Control variates,
// old + (z - old)/p, are right on average, but were hardly better than plain bns: see
// docs/strategies/bns.md.)
type cached struct {
	*exchange.Rows
	draws *draws
	stale *exchange.Stale
	means *exchange.Means
}

func newCached(d *draws, o exchange.MeanOption) *cached {
	rows := exchange.NewRows(d.w)
	c := &cached{rows, d, exchange.NewStale(d.w), exchange.NewMeans(rows, o)}
	d.all = c.stale.First
	return c
}

func (c *cached) Begin(epoch, batch int, training bool) {
	c.Rows.Begin(epoch, batch, training)
	c.stale.Note()
}

// Save lists every matrix that outlives a pass.
func (c *cached) Save() []exchange.SavedRows { return append(c.Rows.Save(), c.stale.Save()...) }

// thins reports whether a transfer moves fewer rows than halo's.
func (c *cached) thins(t exchange.Tag, training bool) bool {
	return training && t.Layer >= 0 && c.draws.p < 1 && !t.AlwaysFresh(training)
}

func (c *cached) RowsTo(t exchange.Tag, h *exchange.Halo, peer, epoch int, training bool) int64 {
	if c.thins(t, training) {
		h = &c.draws.plan.draw(c.draws, epoch).Halo
	}
	return c.Rows.RowsTo(t, h, peer, epoch, training)
}

func (c *cached) Exchange(t exchange.Tag, h *exchange.Halo, into, src tensor.Matrix) exchange.Arrival {
	if !c.thins(t, c.Training) {
		return c.Rows.Exchange(t, h, into, src)
	}
	dev, d := c.W.Dev, c.draws.now.draw(c.draws, c.Epoch)
	kept, _ := c.stale.Rows(exchange.StaleKey{Layer: t.Layer, What: "halo"}, into.Type(), into.Rows, into.Cols)
	rows := dev.Scratch(src.Type(), len(d.kept), src.Cols)
	now := c.means.Exchange(t, h, src)
	return &scattered{Arrival: c.Rows.Exchange(t, &d.Halo, rows, src), dev: dev, rows: rows, arrived: func() {
		c.renew(kept, rows, d.keptAt)
		now.Apply(kept)
		dev.Copy(into, kept)
	}}
}

func (c *cached) Reverse(t exchange.Tag, h *exchange.Halo, grads, dst tensor.Matrix) exchange.Arrival {
	if !c.thins(t, c.Training) {
		return c.Rows.Reverse(t, h, grads, dst)
	}
	dev, d := c.W.Dev, c.draws.now.draw(c.draws, c.Epoch)
	kept, _ := c.stale.Rows(exchange.StaleKey{Layer: t.Layer, What: "returned"}, grads.Type(), h.Send.Len(), grads.Cols)
	out := dev.Scratch(grads.Type(), len(d.kept), grads.Cols)
	dev.GatherRows(out, grads, d.keptAt)
	now := c.means.Reverse(t, h, grads)
	x := c.BeginReverse(t, &d.Halo, out, func(theirs tensor.Matrix) {
		c.renew(kept, theirs, d.SendSlots.At)
		now.Apply(kept)
		c.AddReturned(h, dst, kept)
	})
	x.Leave()
	return &scattered{Arrival: x, dev: dev, rows: out}
}

func (c *cached) MeansTo(t exchange.Tag, h *exchange.Halo, peer, _ int) int64 {
	if !c.thins(t, true) {
		return 0
	}
	return c.means.To(t, h, peer)
}

// renew puts rows in the place of stale ones. These less themselves are zeros to the bit,
// so that what is added to them stays what it is. The first epoch, with all rows, would
// need the most memory of all for that.
func (c *cached) renew(kept, rows tensor.Matrix, at tensor.Index) {
	dev := c.W.Dev
	if rows.Rows == kept.Rows {
		dev.Copy(kept, rows)
		return
	}
	old := dev.Scratch(kept.Type(), rows.Rows, rows.Cols)
	dev.GatherRows(old, kept, at)
	dev.Combine(old, -1, old, 0, tensor.Matrix{})
	dev.ScatterAdd(kept, old, at)
	dev.ScatterAdd(kept, rows, at)
	dev.Free(old)
}

// scattered is an exchange of kept rows, which then take their places among all.
type scattered struct {
	exchange.Arrival
	dev     tensor.Device
	rows    tensor.Matrix
	arrived func()
}

func (s *scattered) Wait() {
	s.Arrival.Wait()
	if s.arrived != nil {
		s.arrived()
	}
}

func (s *scattered) Done() {
	s.Arrival.Done()
	s.dev.Free(s.rows)
}
