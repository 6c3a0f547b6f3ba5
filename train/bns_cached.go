package train

import "starling/tensor"

// bnsCached is boundary node sampling with a memory, as SANCUS has for whole blocks:
// a border vertex that is not kept is not forgotten, but counts with the row that came
// last, and so does its gradient at its owner:
//
//	z_far = z where it came this epoch, else as it came last
//	dz    = A_nearᵀ·dy + what each peer gave back last for our rows
//
// and with Choice.Means both are moved to the means of all such rows as they are now
// (means.go). Nothing is scaled; rows are up to some multiples of 1/p epochs old instead.
// In the first epoch all are kept. It moves the rows of bns, and a worker has memory
// for its far rows and for the gradients of those it sends, of every layer.
//
// Scores of attention, its last layer, and gradients of both travel for all vertices in every epoch, see transfer.always.
//
// All rows are there, so that every model can be trained. (Control variates,
// old + (z - old)/p, are right on average, but were hardly better than plain bns: see
// docs/strategies/bns.md.)
type bnsCached struct {
	*bns
	*historical
}

func newBNSCached(m *bns) *bnsCached {
	c := &bnsCached{m, newHistorical(m.site)}
	m.all = c.first
	return c
}

func (m *bnsCached) begin(epoch int, training bool) {
	m.bns.begin(epoch, training)
	m.note()
}

// remember lists every matrix that outlives a pass.
func (m *bnsCached) remember() []remembered { return append(m.bns.remember(), m.historical.all()...) }

func (m *bnsCached) fetch(t transfer, b *border, into, src tensor.Matrix) arrival {
	if !m.thins(t, m.training) {
		return m.bns.fetch(t, b, into, src)
	}
	d := m.now.draw(m.bns, m.epoch)
	kept, _ := m.keeper(keep{t.layer, "far"}, into.Type(), into.Rows, into.Cols)
	rows := m.dev.Scratch(src.Type(), len(d.far), src.Cols)
	now := m.centre(t, b, src)
	return &spread{arrival: m.exact.fetch(t, &d.border, rows, src), m: m.bns, rows: rows, arrived: func() {
		m.renew(kept, rows, d.come)
		now.move(kept)
		m.dev.Copy(into, kept)
	}}
}

func (m *bnsCached) giveBack(t transfer, b *border, rows, dst tensor.Matrix) arrival {
	if !m.thins(t, m.training) {
		return m.bns.giveBack(t, b, rows, dst)
	}
	d := m.now.draw(m.bns, m.epoch)
	kept, _ := m.keeper(keep{t.layer, "back"}, rows.Type(), b.send.Len(), rows.Cols)
	out := m.dev.Scratch(rows.Type(), len(d.far), rows.Cols)
	m.dev.GatherRows(out, rows, d.come)
	now := m.centreBack(t, b, rows)
	x := m.exact.giveBack(t, &d.border, out, dst).(homecoming)
	x.instead(func(in tensor.Matrix) {
		m.renew(kept, in, d.sendSlots.at)
		now.move(kept)
		m.addTheirs(b, dst, kept)
	})
	return &spread{arrival: x, m: m.bns, rows: out}
}

func (m *bnsCached) means(t transfer, b *border, peer, epoch int) int64 {
	if !m.thins(t, true) {
		return 0
	}
	return m.meansTo(t, b, peer)
}

// renew puts rows in the place of old ones. These less themselves are zeros to the
// bit, so that what is added to them stays what it is. The first epoch, with all rows, would need
// the most memory of all for that.
func (m *bnsCached) renew(kept, rows tensor.Matrix, at tensor.Index) {
	if rows.Rows == kept.Rows {
		m.dev.Copy(kept, rows)
		return
	}
	old := m.dev.Scratch(kept.Type(), rows.Rows, rows.Cols)
	m.dev.GatherRows(old, kept, at)
	m.dev.Combine(old, -1, old, 0, tensor.Matrix{})
	m.dev.ScatterAdd(kept, old, at)
	m.dev.ScatterAdd(kept, rows, at)
	m.dev.Free(old)
}
