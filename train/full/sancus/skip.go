package sancus

import (
	"starling/exchange"
	"starling/tensor"
)

// skipping broadcasts the blocks of workers that are ACTIVE, and keeps them for when they
// are not.
type skipping struct {
	*exchange.Blocks
	stale *exchange.Stale
	means *exchange.Means
	bound staleness
	limit float64 // norm of the gradients that a worker sends in a layer; 0: any
	// gradients: those of a block return only in the epochs in which it came.
	gradients bool
	// now is the tracker of the run, plan that of epochs being planned.
	now, plan *versions
	turns     map[int]*turn // of each layer, in this epoch
}

// Save lists every matrix that outlives a pass.
func (m *skipping) Save() []exchange.SavedRows { return append(m.Blocks.Save(), m.stale.Save()...) }

func (m *skipping) Begin(epoch, batch int, training bool) {
	m.Blocks.Begin(epoch, batch, training)
	m.stale.Note()
}

// turn is whose blocks of a layer travel in an epoch.
type turn struct {
	active    []bool         // by owner
	announced *announcements // that say so; nil: known without
}

// turn decides whose blocks of a layer travel.
func (m *skipping) turn(t exchange.Tag, h *exchange.Halo, src tensor.Matrix) *turn {
	d := &turn{}
	m.turns[t.Layer] = d
	if m.bound.looks() {
		d.active = make([]bool, m.W.End.Size())
		m.announce(t.Layer, h, d, m.changed(t.Layer, src))
		return d
	}
	d.active = m.now.at(m.Epoch)
	return d
}

func (m *skipping) RowsTo(t exchange.Tag, h *exchange.Halo, peer, epoch int, training bool) int64 {
	if t.AlwaysFresh(training) || m.bound.looks() || t.Backward && !m.gradients {
		return m.Blocks.RowsTo(t, h, peer, epoch, training)
	}
	active := m.plan.at(epoch)
	return m.RowsOf(t, peer, func(owner int) bool { return active[owner] })
}

func (m *skipping) Exchange(t exchange.Tag, h *exchange.Halo, into, src tensor.Matrix) exchange.Arrival {
	if t.AlwaysFresh(m.Training) {
		return m.Blocks.Exchange(t, h, into, src)
	}
	d := m.turn(t, h, src)
	kept, _ := m.stale.Rows(exchange.StaleKey{Layer: t.Layer, What: "halo"}, into.Type(), into.Rows, into.Cols)
	x := m.Broadcast(t, h, kept, src)
	receive := func() {
		x.Receive(d.active)
		now := m.meansOf(t, h, d, src)
		x.Arrived = func() {
			now.Apply(kept)
			m.W.Dev.Copy(into, kept)
		}
	}
	if d.announced == nil {
		receive()
	}
	if d.active[m.W.End.Rank()] {
		x.Leave()
	}
	if d.announced != nil {
		return &announced{x, m, d, receive}
	}
	return x
}

func (m *skipping) Reverse(t exchange.Tag, h *exchange.Halo, grads, dst tensor.Matrix) exchange.Arrival {
	if m.Training && m.limit > 0 {
		clip(m.W.Dev, m.limit, grads)
	}
	if t.AlwaysFresh(m.Training) || !m.gradients {
		return m.Blocks.Reverse(t, h, grads, dst)
	}
	d := m.turns[t.Layer]
	kept, _ := m.stale.Rows(exchange.StaleKey{Layer: t.Layer, What: "returned"}, grads.Type(), dst.Rows, grads.Cols)
	now := m.meansOf(t, h, d, grads)
	return &returned{m.Reduce(t, h, grads, d.active, func(sum tensor.Matrix) { m.W.Dev.Copy(kept, sum) }), func() {
		now.ApplySum(kept)
		m.W.Dev.Combine(dst, 1, dst, 1, kept)
	}}
}

// returned is gradients on their way, and what is done with those of the own block: they
// are the last that came.
type returned struct {
	*exchange.Reduction
	use func()
}

func (r *returned) Wait() {
	r.Reduction.Wait()
	r.use()
}

// meansOf begins to bring the means of blocks, or gradients, that do not come.
func (m *skipping) meansOf(t exchange.Tag, h *exchange.Halo, d *turn, rows tensor.Matrix) *exchange.Correction {
	if m.means == nil {
		return nil
	}
	mine := make([]bool, len(d.active)) // whether the own block goes, to each
	for q := range mine {
		mine[q] = d.active[m.W.End.Rank()]
	}
	if t.Backward {
		return m.means.Swap(t, rows, h.Received().But(d.active), h.Sent().But(mine))
	}
	return m.means.Swap(t, rows, h.Sent().Whole(h.Src).But(mine), h.Received().But(d.active))
}

// MeansTo: means go where rows do not.
func (m *skipping) MeansTo(t exchange.Tag, h *exchange.Halo, peer, epoch int) int64 {
	if t.Backward && !m.gradients {
		return 0
	}
	owner := m.W.End.Rank()
	if t.Backward {
		owner = peer
	}
	if exact := m.bound.looks() && m.bound.change == 0; exact || !m.bound.looks() && m.plan.at(epoch)[owner] {
		return 0
	}
	return m.means.To(t, h, peer)
}
