package sancus

import (
	"starling/exchange"
	"starling/tensor"
)

// skipping moves the blocks that are due, and keeps them for when they are not.
type skipping struct {
	*exchange.Blocks
	stale *exchange.Stale
	means *exchange.Means
	bound staleness
	turns map[int]*turn // of each layer, in this epoch
}

// Save lists every matrix that outlives a pass.
func (m *skipping) Save() []exchange.SavedRows { return append(m.Blocks.Save(), m.stale.Save()...) }

func (m *skipping) Begin(epoch, batch int, training bool) {
	m.Blocks.Begin(epoch, batch, training)
	m.stale.Note()
}

// turn is who sends a layer's block to whom in an epoch.
type turn struct {
	comes, goes []bool         // by peer
	announced   *announcements // that say what comes; nil: known without
}

// turn decides who sends a layer's block to whom.
func (m *skipping) turn(t exchange.Tag, h *exchange.Halo, src tensor.Matrix) *turn {
	n, me := m.W.End.Size(), m.W.End.Rank()
	d := &turn{comes: make([]bool, n), goes: make([]bool, n)}
	m.turns[t.Layer] = d
	if m.bound.rule == "variation" {
		m.announce(t.Layer, h, d, m.changed(t.Layer, src))
		return d
	}
	for q := range n {
		d.comes[q], d.goes[q] = m.due(q, me, m.Epoch), m.due(me, q, m.Epoch)
	}
	return d
}

// due reports whether a worker's block goes to another in an epoch.
func (m *skipping) due(from, to, epoch int) bool {
	n := m.W.End.Size()
	return m.bound.due(m.stale.First, epoch, (to-from+n)%n)
}

func (m *skipping) RowsTo(t exchange.Tag, h *exchange.Halo, peer, epoch int, training bool) int64 {
	from, to := m.W.End.Rank(), peer
	if t.Backward {
		from, to = to, from
	}
	if !t.AlwaysFresh(training) && m.bound.rule != "variation" && !m.due(from, to, epoch) {
		return 0
	}
	return m.Blocks.RowsTo(t, h, peer, epoch, training)
}

func (m *skipping) Exchange(t exchange.Tag, h *exchange.Halo, into, src tensor.Matrix) exchange.Arrival {
	if t.AlwaysFresh(m.Training) {
		return m.Blocks.Exchange(t, h, into, src)
	}
	d := m.turn(t, h, src)
	kept, _ := m.stale.Rows(exchange.StaleKey{Layer: t.Layer, What: "halo"}, into.Type(), into.Rows, into.Cols)
	x := m.Transfer(t, kept, src)
	receive := func() {
		m.receiveFrom(x, d.comes, h.HaloPtr)
		now := m.meansOf(t, h, d, src)
		x.Arrived = func() {
			now.Apply(kept)
			m.W.Dev.Copy(into, kept)
		}
	}
	if d.announced == nil {
		receive()
	}
	for _, q := range m.W.Peers() {
		if d.goes[q] {
			x.SendTo(q, 0, h.Src)
		}
	}
	if d.announced != nil {
		return &announced{x, m, d, receive}
	}
	return x
}

func (m *skipping) Reverse(t exchange.Tag, h *exchange.Halo, grads, dst tensor.Matrix) exchange.Arrival {
	if t.AlwaysFresh(m.Training) {
		return m.Blocks.Reverse(t, h, grads, dst)
	}
	d := m.turns[t.Layer]
	kept, _ := m.stale.Rows(exchange.StaleKey{Layer: t.Layer, What: "returned"}, grads.Type(), h.Send.Len(), grads.Cols)
	x := m.Transfer(t, kept, grads)
	now := m.meansOf(t, h, d, grads)
	x.Arrived = func() {
		now.Apply(kept)
		m.AddReturned(h, dst, kept)
	}
	m.receiveFrom(x, d.goes, h.SendPtr)
	for _, q := range m.W.Peers() {
		if d.comes[q] {
			x.SendTo(q, int(h.HaloPtr[q]), int(h.HaloPtr[q+1]))
		}
	}
	return x
}

// meansOf begins to bring the means of blocks, or gradients, that do not come.
func (m *skipping) meansOf(t exchange.Tag, h *exchange.Halo, d *turn, rows tensor.Matrix) *exchange.Correction {
	switch {
	case m.means == nil:
		return nil
	case t.Backward:
		return m.means.Swap(t, rows, h.Received().But(d.comes), h.Sent().But(d.goes))
	}
	return m.means.Swap(t, rows, h.Sent().Whole(h.Src).But(d.goes), h.Received().But(d.comes))
}

// MeansTo: means go where rows do not.
func (m *skipping) MeansTo(t exchange.Tag, h *exchange.Halo, peer, epoch int) int64 {
	exact := m.bound.rule == "variation" && m.bound.change == 0
	if exact || m.bound.rule != "variation" && m.RowsTo(t, h, peer, epoch, true) > 0 {
		return 0
	}
	return m.means.To(t, h, peer)
}

// receiveFrom asks some of the peers for their rows.
func (m *skipping) receiveFrom(x *exchange.Transfer, some []bool, ptr []int64) {
	for _, q := range m.W.Peers() {
		if lo, hi := int(ptr[q]), int(ptr[q+1]); some[q] && lo < hi {
			x.ReceiveFrom(q, lo, hi)
		}
	}
}
