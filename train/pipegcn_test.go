package train

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"starling/coflow"
	"starling/event"
	"starling/tensor"
	"starling/wire"
)

func TestPipeGCNNotLateIsHalo(t *testing.T) {
	c := DefaultChoice("pipegcn")
	c.Late = 0
	isHalo(t, c)
}

// delayed is what pipegcn computes, without its overlap: everything travels at once,
// and all but scores and attention's last layer is put aside on the host until the next epoch.
type delayed struct {
	*exact
	smooth     float64
	held, mean map[transfer][]float64
}

// exchange puts now aside and returns what the last epoch did, right on average if that is asked for.
func (m *delayed) exchange(t transfer, now []float64, cols int, ptr []int64) []float64 {
	rows := m.smoothed(t, m.held[t], len(now))
	m.held[t] = slices.Clone(now)
	if m.opt.Strategy.Means {
		moveSlowly(rows, now, cols, ptr)
	}
	return rows
}

func (m *delayed) smoothed(t transfer, last []float64, size int) []float64 {
	if last == nil {
		return make([]float64, size)
	}
	if m.smooth == 0 {
		return last
	}
	mean := m.mean[t]
	if mean == nil {
		mean = last
	} else {
		for i := range mean {
			mean[i] = m.smooth*mean[i] + (1-m.smooth)*last[i]
		}
	}
	m.mean[t] = mean
	return mean
}

func (m *delayed) fetch(t transfer, b *border, into, src tensor.Matrix) arrival {
	a := m.exact.fetch(t, b, into, src)
	if t.always(m.training) {
		return a
	}
	return &maskedRows{a, func() {
		m.dev.Upload(into, m.exchange(t, numbers(m.dev, into), into.Cols, b.farPtr))
	}}
}

func (m *delayed) giveBack(t transfer, b *border, rows, dst tensor.Matrix) arrival {
	x := m.exact.giveBack(t, b, rows, dst).(*exchange)
	if !t.always(m.training) {
		x.arrived = func() {
			m.dev.Upload(x.in, m.exchange(t, numbers(m.dev, x.in), x.in.Cols, b.sendPtr))
			m.addTheirs(b, dst, x.in)
		}
	}
	return x
}

// TestPipeGCNIsDelay: overlapped or not, the numbers are those of rows and gradients
// put aside for an epoch, smoothed or not, put right on average or not.
func TestPipeGCNIsDelay(t *testing.T) {
	strategies["delayed"] = func(s *site) (planned, error) {
		m := &delayed{&exact{site: s}, s.opt.Strategy.Smooth, map[transfer][]float64{}, map[transfer][]float64{}}
		return newExchanging(s, m, newBorder(s.dev, haloLists(s.part))), nil
	}
	defer delete(strategies, "delayed")
	for i, model := range familyModels {
		parts := cut(t, communities(t, 120, i%2 == 0), "random", 3)
		for _, smooth := range []float64{0, 0.9} {
			o := small(model)
			for _, means := range []bool{false, true} {
				o.Strategy = DefaultChoice("delayed")
				o.Strategy.Smooth, o.Strategy.Means = smooth, means
				want := trainParts(t, parts, ref, o)
				o.Strategy.Name = "pipegcn"
				label := fmt.Sprintf("%s smoothed by %g, means %t", model, smooth, means)
				for k, r := range trainParts(t, parts, ref, o) {
					sameCurve(t, label, r.Loss, want[k].Loss, 1e-9)
				}
				for k, r := range trainParts(t, parts, single, o) {
					sameCurve(t, label+", float32", r.Loss, want[k].Loss, 1e-3)
				}
			}
		}
	}
}

// TestPipeGCNSendsWhatHaloDoes: the same bytes, by kind and layer; means come to them.
func TestPipeGCNSendsWhatHaloDoes(t *testing.T) {
	parts := cut(t, communities(t, 200, false), "random", 3)
	for _, model := range familyModels {
		o := small(model)
		halo := trainParts(t, parts, single, o)
		o.Strategy = DefaultChoice("pipegcn")
		for _, o.Strategy.Means = range []bool{false, true} {
			for k, r := range trainParts(t, parts, single, o) {
				got, want := r.Plan.Total(0, 6, 2, 6), halo[k].Plan.Total(0, 6, 2, 6)
				all := len(got)
				if maps.DeleteFunc(got, func(s Sent, _ int64) bool { return s.Kind == wire.Control && s.Layer >= 0 }); o.Strategy.Means == (len(got) == all) {
					t.Errorf("%s: means %t, and plans %v", model, o.Strategy.Means, got)
				}
				if !maps.Equal(got, want) {
					t.Errorf("%s: pipegcn sends %v, halo %v", model, got, want)
				}
			}
		}
	}
}

// TestPipeGCNWaitsForTheLastEpochOnly: the first epoch's rows are there although no
// peer has sent any, and the second's as soon as the first's have come.
func TestPipeGCNWaitsForTheLastEpochOnly(t *testing.T) {
	parts := cut(t, communities(t, 60, false), "random", 2)
	ends := wire.NewGroup(2, wire.DefaultOptions())
	var movers [2]*pipegcn
	var borders [2]*border
	for k, end := range ends {
		defer end.Close()
		s, err := newPipeGCN(&site{ctx: context.Background(), dev: tensor.NewRef(), part: parts[k], end: end, events: event.All(),
			opt: Options{Strategy: DefaultChoice("pipegcn")}})
		if err != nil {
			t.Fatal(err)
		}
		movers[k], borders[k] = s.(*exchanging).move.(*pipegcn), s.(*exchanging).borders[0]
	}
	tr := transfer{layer: 1, kind: wire.Activation}
	fetch := func(k, epoch int) []float64 {
		m, b := movers[k], borders[k]
		m.begin(epoch, true)
		into, src := m.dev.Scratch(tensor.F64, b.farRows(), 1), m.dev.New(tensor.F64, b.src, 1)
		v := make([]float64, b.src)
		for i := range v {
			v[i] = float64(100*epoch) + float64(parts[k].IDs[i])
		}
		m.dev.Upload(src, v)
		a := m.fetch(tr, b, into, src)
		a.wait()
		a.done()
		got := make([]float64, b.farRows())
		m.dev.Download(got, into)
		return got
	}
	check := func(k, epoch int, want func(id uint32) float64) {
		for i, x := range fetch(k, epoch) {
			if id := parts[k].IDs[borders[k].src+i]; x != want(id) {
				t.Fatalf("worker %d, epoch %d: vertex %d has %g, want %g", k, epoch, id, x, want(id))
			}
		}
	}
	zero := func(uint32) float64 { return 0 }
	first := func(id uint32) float64 { return float64(id) }
	check(0, 0, zero)
	check(1, 0, zero)
	check(0, 1, first) // worker 1 is still in its first epoch
	check(1, 1, first)
	for k, m := range movers {
		for _, c := range m.remember() {
			if !strings.Contains(c.name, "layer 1") || c.rows.Rows != borders[k].farRows() {
				t.Errorf("cached %q: %v", c.name, c.rows)
			}
		}
		if err := m.finish(); err != nil || len(m.remember()) > 0 {
			t.Fatalf("finish: %v, still cached %v", err, m.remember())
		}
	}
}

// unhurried is a worker's end whose late rows leave only when told.
type unhurried struct {
	wire.Endpoint
	hold *bool
	held *[]func()
}

func (e unhurried) Send(to int, key wire.Key, kind wire.Kind, payload []byte) *wire.Pending {
	if *e.hold && key.Coflow.Type == coflow.Bulk {
		*e.held = append(*e.held, func() { e.Endpoint.Send(to, key, kind, payload) })
		return wire.Settled()
	}
	return e.Endpoint.Send(to, key, kind, payload)
}

// TestPipeGCNWithMeansWaitsForNoRows: an epoch ends while none of its rows has left, and
// once they have, the next one does.
func TestPipeGCNWithMeansWaitsForNoRows(t *testing.T) {
	parts := cut(t, communities(t, 60, false), "random", 2)
	var movers [2]*pipegcn
	var borders [2]*border
	var held [2][]func()
	hold := true
	choice := DefaultChoice("pipegcn")
	choice.Means = true
	for k, end := range wire.NewGroup(2, wire.DefaultOptions()) {
		defer end.Close()
		s, err := newPipeGCN(&site{ctx: context.Background(), dev: tensor.NewRef(), part: parts[k], end: unhurried{end, &hold, &held[k]}, events: event.All(),
			opt: Options{Strategy: choice}})
		if err != nil {
			t.Fatal(err)
		}
		movers[k], borders[k] = s.(*exchanging).move.(*pipegcn), s.(*exchanging).borders[0]
	}
	tr := transfer{layer: 1, kind: wire.Activation}
	epoch := func(k, epoch int) {
		m, b := movers[k], borders[k]
		m.begin(epoch, true)
		src, _ := someRows(m.dev, uint64(epoch), b.src, 2)
		a := m.fetch(tr, b, m.dev.New(tensor.F64, b.farRows(), 2), src)
		a.wait()
		a.done()
	}
	for e := range 2 {
		var both sync.WaitGroup
		for k := range movers {
			both.Go(func() { epoch(k, e) })
		}
		both.Wait()
		for k := range held {
			if e == 0 && len(held[k]) == 0 {
				t.Fatalf("worker %d has sent nothing late", k)
			}
			for _, leave := range held[k] {
				leave()
			}
			held[k] = nil
		}
		hold = false // the second's may leave at once
	}
	for _, m := range movers {
		if err := m.finish(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPipeGCNCopes(t *testing.T)           { copes(t, DefaultChoice("pipegcn")) }
func TestPipeGCNStopsWithOthers(t *testing.T) { allStop(t, DefaultChoice("pipegcn")) }

// TestPipeGCNLearns: late rows end near halo's accuracy, smoothed or not.
func TestPipeGCNLearns(t *testing.T) {
	learns(t, 0.03, func(i int) Choice {
		c := DefaultChoice("pipegcn")
		c.Smooth = float64(i%2) / 2
		return c
	})
}

// TestPipeGCNResumes: a run that goes on without its caches, as on another
// partition, begins with zeros once more, and trains on.
func TestPipeGCNResumes(t *testing.T) {
	parts := cut(t, communities(t, 120, false), "random", 3)
	o := small("gcn")
	o.Strategy = DefaultChoice("pipegcn")
	want := trainParts(t, parts, single, o)[0]
	got := inTwoRuns(t, parts, o, 3)
	if !slices.Equal(got.Loss[:3], want.Loss[:3]) || got.Loss[3] == want.Loss[3] {
		t.Errorf("losses %v after a stop, %v without", got.Loss, want.Loss)
	}
	sameCurve(t, "after a stop", got.Loss, want.Loss, 0.2)
}
