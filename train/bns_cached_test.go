package train

import (
	"fmt"
	"slices"
	"testing"

	"starling/tensor"
)

// cachedBNS is bns with a memory.
func cachedBNS(keep float64) Choice {
	c := DefaultChoice("bns")
	c.Keep, c.Cached = keep, true
	return c
}

func TestBNSCachedKeepingAllIsHalo(t *testing.T) { isHalo(t, cachedBNS(1)) }

func TestBNSCachedCopes(t *testing.T) { copes(t, cachedBNS(0.1)) }

func TestBNSCachedStopsWithOthers(t *testing.T) { allStop(t, cachedBNS(0.1)) }

// lasting is what bnsCached does, the long way: all rows travel in every pass, and on
// arrival those that were not drawn are overwritten with what was used last. Scores are not.
type lasting struct {
	*exact
	draw *bns
	last map[transfer][]float64
}

// lastly replaces the rows of transfer t that were not drawn, and puts all right on average if that is asked for; drawn says which were.
func (m *lasting) lastly(t transfer, rows tensor.Matrix, ptr []int64, drawn func(row int) bool) {
	v := numbers(m.dev, rows)
	fresh := slices.Clone(v)
	for k := range rows.Rows {
		if !drawn(k) {
			copy(v[k*rows.Cols:(k+1)*rows.Cols], m.last[t][k*rows.Cols:])
		}
	}
	if m.opt.Strategy.Means {
		moveSlowly(v, fresh, rows.Cols, ptr)
	}
	m.last[t] = v
	m.dev.Upload(rows, v)
}

func (m *lasting) fetch(t transfer, b *border, into, src tensor.Matrix) arrival {
	a := m.exact.fetch(t, b, into, src)
	if t.always(m.training) {
		return a
	}
	return &maskedRows{a, func() {
		m.lastly(t, into, b.farPtr, func(k int) bool {
			return m.draw.kept(m.epoch, m.part.Book.Owner(m.part.Halo[k]), m.end.Rank(), m.part.IDs[m.part.Core()+k])
		})
	}}
}

func (m *lasting) giveBack(t transfer, b *border, rows, dst tensor.Matrix) arrival {
	x := m.exact.giveBack(t, b, rows, dst).(*exchange)
	if t.always(m.training) {
		return x
	}
	x.arrived = func() {
		m.lastly(t, x.in, b.sendPtr, func(k int) bool {
			peer := 0
			for int64(k) >= b.sendPtr[peer+1] {
				peer++
			}
			return m.draw.kept(m.epoch, m.end.Rank(), peer, m.part.IDs[m.part.Send[k]])
		})
		m.addTheirs(b, dst, x.in)
	}
	return x
}

// TestBNSCachedUsesWhatCameLast: sending fewer rows and keeping them gives what sending
// all and overwriting those not drawn gives, for every kind of layer, among them those
// that plain bns refuses.
func TestBNSCachedUsesWhatCameLast(t *testing.T) {
	longWay(t, "lasting", func(s *site, x *exchanging) mover {
		return &lasting{&exact{site: s}, x.move.(*bnsCached).bns, map[transfer][]float64{}}
	})
	for i, model := range append([]string{"gatv2", "sage-pool", "film"}, familyModels...) {
		for j, keep := range []float64{0.02, 0.6} {
			o := small(model)
			o.Strategy = cachedBNS(keep)
			o.Strategy.Relay, o.Strategy.Means = (i+j)%2 == 0, (i+j)%2 == 1 // means of passed rows are grouped otherwise
			parts := someServers(t, i%2 == 0, o.Strategy.Relay)
			o.Strategy.Name = "lasting"
			want := trainParts(t, parts, ref, o)
			o.Strategy.Name = "bns"
			for k, r := range trainParts(t, parts, ref, o) {
				sameCurve(t, fmt.Sprintf("%s keeping %g", model, keep), r.Loss, want[k].Loss, 1e-9)
			}
		}
	}
}

// TestBNSSettings: what may follow the name.
func TestBNSSettings(t *testing.T) {
	unbiased := DefaultChoice("bns")
	unbiased.Keep, unbiased.Unbiased = 0.3, true
	for text, want := range map[string]Choice{"bns": DefaultChoice("bns"), "bns:0.3:unbiased": unbiased, "bns:cached": cachedBNS(0.1), "bns:0.3:cached": cachedBNS(0.3)} {
		if got, err := DefaultChoice("").Parse(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"bns:", "bns:cache", "bns:0.1:", "bns:cached:0.1", "bns:0:cached", "bns:0.1:cached:cached", "bns:0.1:unbiased:cached"} {
		if _, err := DefaultChoice("").Parse(text); err == nil {
			t.Errorf("%s makes sense", text)
		}
	}
}
