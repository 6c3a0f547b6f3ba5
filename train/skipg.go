package train

import (
	"cmp"
	"maps"
	"slices"

	"starling/tensor"
)

// skipg sends gradients of rows seldom instead of rows: the baseline "SkipG" of
// SANCUS (§6 there). All blocks are broadcast in every epoch, as CAGNET's. Their
// gradients return in every (K+1)-th epoch only; in between a worker uses the sum that
// returned last:
//
//	dz_i = Σ_j A_jiᵀ·dy_j  for j = i as it is now, for other j as it was last sent
//
// With K = 0 it is exact. Gradients of attention's scores and of its last layer return in every epoch.
type skipg struct {
	*blocks
	every, first int
	kept         map[transfer]tensor.Matrix // what peers gave back, added up
}

func newSkipG(s *site) (planned, error) {
	m := &skipg{blocks: &blocks{&exact{site: s}}, every: s.opt.Strategy.SkipG + 1, kept: map[transfer]tensor.Matrix{}}
	if s.opt.Resume != nil && len(s.opt.Resume.Caches) == 0 {
		m.first = s.opt.Resume.Epoch
	}
	return newExchanging(s, m, newBorder(s.dev, blockLists(s.part))), nil
}

func (m *skipg) name(t transfer) string { return "skipg " + t.String() }

// remember lists the gradients that are used again.
func (m *skipg) remember() []remembered {
	out := m.exact.remember()
	for _, t := range slices.SortedFunc(maps.Keys(m.kept), func(a, b transfer) int { return cmp.Compare(a.String(), b.String()) }) {
		out = append(out, remembered{m.name(t), m.kept[t]})
	}
	return out
}

func (m *skipg) due(epoch int) bool { return epoch == m.first || epoch%m.every == 0 }

func (m *skipg) rows(t transfer, b *border, peer, epoch int, training bool) int64 {
	if t.backward && !t.always(training) && !m.due(epoch) {
		return 0
	}
	return m.blocks.rows(t, b, peer, epoch, training)
}

func (m *skipg) giveBack(t transfer, b *border, rows, dst tensor.Matrix) arrival {
	if t.always(m.training) {
		return m.blocks.giveBack(t, b, rows, dst)
	}
	kept, ok := m.kept[t]
	if !ok {
		kept = m.dev.New(dst.Type(), dst.Rows, dst.Cols)
		m.recall(m.name(t), kept)
		m.kept[t] = kept
	}
	r := &recalled{skipg: m, kept: kept, dst: dst}
	if m.due(m.epoch) {
		m.dev.Zero(kept)
		r.coming = m.blocks.giveBack(t, b, rows, kept)
	}
	return r
}

// recalled is the sum of peers' gradients: a new one if it is coming, else the last.
type recalled struct {
	*skipg
	coming    arrival // or nil
	kept, dst tensor.Matrix
}

func (r *recalled) wait() {
	if r.coming != nil {
		r.coming.wait()
	}
	r.dev.Combine(r.dst, 1, r.dst, 1, r.kept)
}

func (r *recalled) done() {
	if r.coming != nil {
		r.coming.done()
	}
}
