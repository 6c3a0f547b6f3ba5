package bns

import (
	"fmt"
	"slices"
	"testing"

	"starling/exchange"
	"starling/partition"
	"starling/rng"
	"starling/tensor"
	"starling/train"
	"starling/train/site"
	"starling/train/traintest"
)

// twin is a strategy that moves all rows, each directly, and does the rest as policy has
// it, with the draws of bns.
func twin(policy func(d *draws, o options) exchange.Policy) train.Descriptor {
	return train.Describe(train.Descriptor{Name: "twin"}, options{},
		func(s *train.Site, o options) (train.Strategy, error) {
			w := site.Worker(s, o.RowOptions, o.RelayOption)
			plan := exchange.PartHalo(w.Part)
			d := &draws{w: w, whole: plan, p: o.Keep, all: -1, key: rng.New(w.Seed).Fold(drawKey)}
			if o.Cached {
				d.all = 0
			}
			return exchange.NewAggregator(w, policy(d, o), exchange.NewHalo(w.Dev, plan)), nil
		})
}

// afterwards is rows that are changed when they have arrived.
type afterwards struct {
	exchange.Arrival
	change func()
}

func (a *afterwards) Wait() { a.Arrival.Wait(); a.change() }

// masked is boundary sampling as its formula has it: all rows travel, and are
// multiplied by s·mask on arrival.
type masked struct {
	*exchange.Rows
	draws *draws
	scale float64
}

// mask multiplies halo rows by the mask of this epoch, times s.
func (m *masked) mask(t exchange.Tag, rows tensor.Matrix) {
	part, v := m.W.Part, traintest.Numbers(m.W.Dev, rows)
	for k, id := range part.IDs[part.Core():] {
		kept := m.draws.keeps(m.Epoch, part.Book.Owner(part.Halo[k]), m.W.End.Rank(), id)
		for c := range rows.Cols {
			x := &v[k*rows.Cols+c]
			switch {
			case kept && t.EdgeOp:
			case kept:
				*x *= m.scale
			case t.Scores && !t.Backward:
				*x = -1e20
			default:
				*x = 0
			}
		}
	}
	m.W.Dev.Upload(rows, v)
}

func (m *masked) Exchange(t exchange.Tag, h *exchange.Halo, into, src tensor.Matrix) exchange.Arrival {
	a := m.Rows.Exchange(t, h, into, src)
	if !m.Training || t.Layer < 0 {
		return a
	}
	return &afterwards{a, func() { m.mask(t, into) }}
}

func (m *masked) Reverse(t exchange.Tag, h *exchange.Halo, grads, dst tensor.Matrix) exchange.Arrival {
	m.mask(t, grads)
	return m.Rows.Reverse(t, h, grads, dst)
}

// TestIsMasking: sending fewer rows gives what sending all and multiplying by the mask
// gives, for every kind of layer, relayed or not.
func TestIsMasking(t *testing.T) {
	long := twin(func(d *draws, o options) exchange.Policy {
		return &masked{exchange.NewRows(d.w), d, o.weight(d.whole)}
	})
	for i, model := range traintest.FamilyModels {
		for j, keep := range []float64{0.02, 0.3, 0.9, 0.3} {
			c := options{Keep: keep, Shrunk: j == 3, RowOptions: exchange.DefaultRows}
			c.Relay = (i+j)%2 == 0
			parts := someServers(t, i%2 == 0, c.Relay)
			o := traintest.Small(model)
			o.Strategy = traintest.Made(long, c)
			want := traintest.TrainParts(t, parts, traintest.Ref, o)
			o.Strategy = traintest.Made(Strategy, c)
			for k, r := range traintest.TrainParts(t, parts, traintest.Ref, o) {
				traintest.SameCurve(t, fmt.Sprintf("%s keeping %g", model, keep), r.Loss, want[k].Loss, 1e-9)
			}
			for k, r := range traintest.TrainParts(t, parts, traintest.Single, o) {
				traintest.SameCurve(t, fmt.Sprintf("%s keeping %g, float32", model, keep), r.Loss, want[k].Loss, 1e-3)
			}
		}
	}
}

// lasting is what bns:P:cached does, the long way: all rows travel in every pass, and on
// arrival those that were not drawn are overwritten with what was used last. Scores are
// not.
type lasting struct {
	*exchange.Rows
	draws *draws
	means bool
	last  map[exchange.Tag][]float64
}

// lastly replaces the rows of a transfer that were not drawn, and corrects their means if
// that is asked for; drawn says which were.
func (m *lasting) lastly(t exchange.Tag, rows tensor.Matrix, ptr []int64, drawn func(row int) bool) {
	v := traintest.Numbers(m.W.Dev, rows)
	fresh := slices.Clone(v)
	for k := range rows.Rows {
		if !drawn(k) {
			copy(v[k*rows.Cols:(k+1)*rows.Cols], m.last[t][k*rows.Cols:])
		}
	}
	if m.means {
		traintest.MoveToMeans(v, fresh, rows.Cols, ptr)
	}
	m.last[t] = v
	m.W.Dev.Upload(rows, v)
}

func (m *lasting) Exchange(t exchange.Tag, h *exchange.Halo, into, src tensor.Matrix) exchange.Arrival {
	a := m.Rows.Exchange(t, h, into, src)
	if t.AlwaysFresh(m.Training) {
		return a
	}
	part := m.W.Part
	return &afterwards{a, func() {
		m.lastly(t, into, h.HaloPtr, func(k int) bool {
			return m.draws.keeps(m.Epoch, part.Book.Owner(part.Halo[k]), m.W.End.Rank(), part.IDs[part.Core()+k])
		})
	}}
}

func (m *lasting) Reverse(t exchange.Tag, h *exchange.Halo, grads, dst tensor.Matrix) exchange.Arrival {
	if t.AlwaysFresh(m.Training) {
		return m.Rows.Reverse(t, h, grads, dst)
	}
	return m.BeginReverse(t, h, grads, func(theirs tensor.Matrix) {
		m.lastly(t, theirs, h.SendPtr, func(k int) bool {
			peer := 0
			for int64(k) >= h.SendPtr[peer+1] {
				peer++
			}
			return m.draws.keeps(m.Epoch, m.W.End.Rank(), peer, m.W.Part.IDs[m.W.Part.Send[k]])
		})
		m.AddReturned(h, dst, theirs)
	})
}

// TestCachedUsesWhatCameLast: sending fewer rows and keeping them gives what sending all
// and overwriting those not drawn gives, for every kind of layer, among them those that
// plain bns refuses.
func TestCachedUsesWhatCameLast(t *testing.T) {
	long := twin(func(d *draws, o options) exchange.Policy {
		return &lasting{exchange.NewRows(d.w), d, o.Means, map[exchange.Tag][]float64{}}
	})
	for i, model := range append([]string{"gatv2", "sage-pool", "film"}, traintest.FamilyModels...) {
		for j, keep := range []float64{0.02, 0.6} {
			c := options{Keep: keep, Cached: true, RowOptions: exchange.DefaultRows}
			c.Relay, c.Means = (i+j)%2 == 0, (i+j)%2 == 1 // means of relayed rows are grouped otherwise
			parts := someServers(t, i%2 == 0, c.Relay)
			o := traintest.Small(model)
			o.Strategy = traintest.Made(long, c)
			want := traintest.TrainParts(t, parts, traintest.Ref, o)
			o.Strategy = traintest.Made(Strategy, c)
			for k, r := range traintest.TrainParts(t, parts, traintest.Ref, o) {
				traintest.SameCurve(t, fmt.Sprintf("%s keeping %g", model, keep), r.Loss, want[k].Loss, 1e-9)
			}
		}
	}
}

// someServers are three workers on one server, or six on two where rows are relayed.
func someServers(t testing.TB, sparse, relay bool) []*partition.Part {
	t.Helper()
	workers, servers := 3, 1
	if relay {
		workers, servers = 6, 2
	}
	return traintest.CutForServers(t, traintest.Communities(t, 120, sparse), "random", workers, servers)
}
