package train

import "starling/tensor"

// skipping moves the blocks that are due, and keeps them for when they are not.
type skipping struct {
	*blocks
	*historical
	bound staleness
	turns map[int]*turn // of each layer, in this epoch
}

// remember lists every matrix that outlives a pass.
func (m *skipping) remember() []remembered { return append(m.exact.remember(), m.all()...) }

func (m *skipping) begin(epoch int, training bool) {
	m.blocks.begin(epoch, training)
	m.note()
}

// turn is who sends a layer's block to whom in an epoch.
type turn struct {
	comes, goes []bool // by peer
	words       *words // that say what comes; nil: known without
}

// turn decides who sends a layer's block to whom.
func (m *skipping) turn(t transfer, b *border, src tensor.Matrix) *turn {
	n, me := m.end.Size(), m.end.Rank()
	d := &turn{comes: make([]bool, n), goes: make([]bool, n)}
	m.turns[t.layer] = d
	if m.bound.rule == "variation" {
		m.tell(t.layer, b, d, m.changed(t.layer, src))
		return d
	}
	for q := range n {
		d.comes[q], d.goes[q] = m.due(q, me, m.epoch), m.due(me, q, m.epoch)
	}
	return d
}

// due reports whether a worker's block goes to another in an epoch.
func (m *skipping) due(from, to, epoch int) bool {
	n := m.end.Size()
	return m.bound.due(m.first, epoch, (to-from+n)%n)
}

func (m *skipping) rows(t transfer, b *border, peer, epoch int, training bool) int64 {
	from, to := m.end.Rank(), peer
	if t.backward {
		from, to = to, from
	}
	if !t.always(training) && m.bound.rule != "variation" && !m.due(from, to, epoch) {
		return 0
	}
	return m.blocks.rows(t, b, peer, epoch, training)
}

func (m *skipping) fetch(t transfer, b *border, into, src tensor.Matrix) arrival {
	if t.always(m.training) {
		return m.blocks.fetch(t, b, into, src)
	}
	d := m.turn(t, b, src)
	kept, _ := m.keeper(keep{t.layer, "far"}, into.Type(), into.Rows, into.Cols)
	x := m.exchange(t, kept, src)
	take := func() {
		m.receiveFrom(x, d.comes, b.farPtr)
		now := m.centreOld(t, b, d, src)
		x.arrived = func() {
			now.move(kept)
			m.dev.Copy(into, kept)
		}
	}
	if d.words == nil {
		take()
	}
	for _, q := range m.round() {
		if d.goes[q] {
			x.send(m.only(q, 0, b.src))
		}
	}
	if d.words != nil {
		return &announced{x, m, d, take}
	}
	return x
}

func (m *skipping) giveBack(t transfer, b *border, rows, dst tensor.Matrix) arrival {
	if t.always(m.training) {
		return m.blocks.giveBack(t, b, rows, dst)
	}
	d := m.turns[t.layer]
	kept, _ := m.keeper(keep{t.layer, "back"}, rows.Type(), b.send.Len(), rows.Cols)
	x := m.exchange(t, kept, rows)
	now := m.centreOld(t, b, d, rows)
	x.arrived = func() {
		now.move(kept)
		m.addTheirs(b, dst, kept)
	}
	m.receiveFrom(x, d.goes, b.sendPtr)
	for _, q := range m.round() {
		if d.comes[q] {
			x.send(m.only(q, int(b.farPtr[q]), int(b.farPtr[q+1])))
		}
	}
	return x
}

// centreOld begins to bring what blocks, or gradients, that do not come are on average.
func (m *skipping) centreOld(t transfer, b *border, d *turn, rows tensor.Matrix) *centring {
	switch {
	case !m.opt.Strategy.Means:
		return nil
	case t.backward:
		return m.swapMeans(t, rows, b.come().but(d.comes), b.sent().but(d.goes))
	}
	return m.swapMeans(t, rows, m.whole(b).but(d.goes), b.come().but(d.comes))
}

// whole is the block as a group for every peer.
func (m *skipping) whole(b *border) groups {
	g := b.sent()
	for i := range g.list {
		g.list[i] = group{0, b.src}
	}
	return g
}

// means go where rows do not.
func (m *skipping) means(t transfer, b *border, peer, epoch int) int64 {
	exact := m.bound.rule == "variation" && m.bound.change == 0
	if exact || m.bound.rule != "variation" && m.rows(t, b, peer, epoch, true) > 0 {
		return 0
	}
	return m.meansTo(t, b, peer)
}

// receiveFrom asks some of the peers for their rows.
func (m *skipping) receiveFrom(x *exchange, some []bool, ptr []int64) {
	for _, q := range m.round() {
		if some[q] {
			x.receive(m.only(q, int(ptr[q]), int(ptr[q+1])))
		}
	}
}
