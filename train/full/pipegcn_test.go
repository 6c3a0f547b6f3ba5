package full

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"starling/coflow"
	"starling/exchange"
	"starling/partition"
	"starling/rng"
	"starling/tensor"
	"starling/train"
	"starling/train/site"
	"starling/train/traintest"
	"starling/wire"
)

func TestPipeGCNFreshIsHalo(t *testing.T) { traintest.IsHalo(t, traintest.Strategy(t, "pipegcn:0")) }

// delayed is what pipegcn computes, without its overlap: everything travels at once,
// and all but scores and attention's last layer is kept on the host until the next epoch.
type delayed struct {
	*exchange.Rows
	o          pipeOptions
	held, mean map[exchange.Tag][]float64
}

// swap keeps now and returns what the last epoch kept, with its mean corrected if that
// is asked for.
func (m *delayed) swap(t exchange.Tag, now []float64, cols int, ptr []int64) []float64 {
	rows := m.smoothed(t, m.held[t], len(now))
	m.held[t] = slices.Clone(now)
	if m.o.Means {
		traintest.MoveToMeans(rows, now, cols, ptr)
	}
	return rows
}

func (m *delayed) smoothed(t exchange.Tag, last []float64, size int) []float64 {
	if last == nil {
		return make([]float64, size)
	}
	if m.o.Smooth == 0 {
		return last
	}
	mean := m.mean[t]
	if mean == nil {
		mean = last
	} else {
		for i := range mean {
			mean[i] = m.o.Smooth*mean[i] + (1-m.o.Smooth)*last[i]
		}
	}
	m.mean[t] = mean
	return mean
}

func (m *delayed) Exchange(t exchange.Tag, h *exchange.Halo, into, src tensor.Matrix) exchange.Arrival {
	a := m.Rows.Exchange(t, h, into, src)
	if t.AlwaysFresh(m.Training) {
		return a
	}
	return &afterwards{a, func() {
		m.W.Dev.Upload(into, m.swap(t, traintest.Numbers(m.W.Dev, into), into.Cols, h.HaloPtr))
	}}
}

func (m *delayed) Reverse(t exchange.Tag, h *exchange.Halo, grads, dst tensor.Matrix) exchange.Arrival {
	if t.AlwaysFresh(m.Training) {
		return m.Rows.Reverse(t, h, grads, dst)
	}
	return m.BeginReverse(t, h, grads, func(theirs tensor.Matrix) {
		m.W.Dev.Upload(theirs, m.swap(t, traintest.Numbers(m.W.Dev, theirs), theirs.Cols, h.SendPtr))
		m.AddReturned(h, dst, theirs)
	})
}

// afterwards is rows that are changed when they have arrived.
type afterwards struct {
	exchange.Arrival
	change func()
}

func (a *afterwards) Wait() { a.Arrival.Wait(); a.change() }

// TestPipeGCNIsDelay: overlapped or not, the numbers come from rows and gradients
// kept for an epoch, smoothed or not, with means corrected or not.
func TestPipeGCNIsDelay(t *testing.T) {
	twin := train.Describe(train.Descriptor{Name: "delayed"}, pipeOptions{},
		func(s *train.Site, o pipeOptions) (train.Strategy, error) {
			w := site.Worker(s, o.RowOptions, o.RelayOption)
			m := &delayed{exchange.NewRows(w), o, map[exchange.Tag][]float64{}, map[exchange.Tag][]float64{}}
			a, _, err := exchange.OverHalo(w, m)
			return a, err
		})
	for i, model := range traintest.FamilyModels {
		parts := traintest.Cut(t, traintest.Communities(t, 120, i%2 == 0), "random", 3)
		for _, smooth := range []float64{0, 0.9} {
			o := traintest.Small(model)
			for _, means := range []bool{false, true} {
				c := pipeOptions{Stale: 1, Smooth: smooth, MeanOption: exchange.MeanOption{Means: means},
					RowOptions: exchange.DefaultRows}
				o.Strategy = traintest.Made(twin, c)
				want := traintest.TrainParts(t, parts, traintest.Ref, o)
				o.Strategy = traintest.Made(pipegcn, c)
				label := fmt.Sprintf("%s smoothed by %g, means %t", model, smooth, means)
				for k, r := range traintest.TrainParts(t, parts, traintest.Ref, o) {
					traintest.SameCurve(t, label, r.Loss, want[k].Loss, 1e-9)
				}
				for k, r := range traintest.TrainParts(t, parts, traintest.Single, o) {
					traintest.SameCurve(t, label+", float32", r.Loss, want[k].Loss, 1e-3)
				}
			}
		}
	}
}

// TestPipeGCNSendsWhatHaloDoes: the same bytes, by kind and layer; means come to them.
func TestPipeGCNSendsWhatHaloDoes(t *testing.T) {
	parts := traintest.Cut(t, traintest.Communities(t, 200, false), "random", 3)
	for _, model := range traintest.FamilyModels {
		o := traintest.Small(model)
		halo := traintest.TrainParts(t, parts, traintest.Single, o)
		for _, means := range []bool{false, true} {
			o.Strategy = traintest.Strategy(t, "pipegcn", optionIf(means, "means"))
			for k, r := range traintest.TrainParts(t, parts, traintest.Single, o) {
				got, want := r.Plan.Total(0, 6, 2, 6), halo[k].Plan.Total(0, 6, 2, 6)
				all := len(got)
				maps.DeleteFunc(got, func(c wire.Class, _ int64) bool { return c.Kind == wire.Control && c.Layer >= 0 })
				if means == (len(got) == all) {
					t.Errorf("%s: means %t, and plans %v", model, means, got)
				}
				if !maps.Equal(got, want) {
					t.Errorf("%s: pipegcn sends %v, halo %v", model, got, want)
				}
			}
		}
	}
}

// pipelines are the pipelines of two workers, with their halos.
func pipelines(t *testing.T, parts []*partition.Part, ends []wire.Endpoint, means bool) (p [2]*pipeline,
	h [2]*exchange.Halo) {
	t.Helper()
	o := train.Options{Strategy: traintest.Strategy(t, "pipegcn")}
	for k := range p {
		w := site.Worker(traintest.Site(parts[k], ends[k], o), exchange.DefaultRows, exchange.RelayOption{})
		p[k] = newPipeline(w, pipeOptions{Stale: 1, MeanOption: exchange.MeanOption{Means: means}})
		h[k] = exchange.NewHalo(w.Dev, exchange.PartHalo(w.Part))
	}
	return p, h
}

// TestPipeGCNWaitsForTheLastEpochOnly: the first epoch's rows are there although no peer
// has sent any, and the second's as soon as the first's have arrived.
func TestPipeGCNWaitsForTheLastEpochOnly(t *testing.T) {
	parts := traintest.Cut(t, traintest.Communities(t, 60, false), "random", 2)
	ends := traintest.Ends(2)
	defer traintest.Close(ends)
	lines, halos := pipelines(t, parts, ends, false)
	tag := exchange.Tag{Layer: 1, Kind: wire.Activation}
	rowsOf := func(k, epoch int) []float64 {
		p, h, dev := lines[k], halos[k], lines[k].W.Dev
		p.Begin(epoch, 0, true)
		into, src := dev.Scratch(tensor.F64, h.HaloRows(), 1), dev.New(tensor.F64, h.Src, 1)
		v := make([]float64, h.Src)
		for i := range v {
			v[i] = float64(100*epoch) + float64(parts[k].IDs[i])
		}
		dev.Upload(src, v)
		a := p.Exchange(tag, h, into, src)
		a.Wait()
		a.Done()
		return traintest.Numbers(dev, into)
	}
	check := func(k, epoch int, want func(id uint32) float64) {
		for i, x := range rowsOf(k, epoch) {
			if id := parts[k].IDs[halos[k].Src+i]; x != want(id) {
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
	for k, p := range lines {
		for _, m := range p.Save() {
			if !strings.Contains(m.Name, "layer 1") || m.Rows.Rows != halos[k].HaloRows() {
				t.Errorf("saved %q: %v", m.Name, m.Rows)
			}
		}
		if err := p.Finish(); err != nil || len(p.Save()) > 0 {
			t.Fatalf("finish: %v, still kept %v", err, p.Save())
		}
	}
}

// holding is an endpoint whose stale rows leave only when told.
type holding struct {
	wire.Endpoint
	hold *bool
	held *[]func()
}

func (e holding) Send(to int, key wire.Key, kind wire.Kind, payload []byte) *wire.Pending {
	if *e.hold && key.Coflow.Type == coflow.Inputs {
		*e.held = append(*e.held, func() { e.Endpoint.Send(to, key, kind, payload) })
		return wire.Settled()
	}
	return e.Endpoint.Send(to, key, kind, payload)
}

// TestPipeGCNWithMeansWaitsForNoRows: an epoch ends while none of its rows has left, and
// once they have, the next one does.
func TestPipeGCNWithMeansWaitsForNoRows(t *testing.T) {
	parts := traintest.Cut(t, traintest.Communities(t, 60, false), "random", 2)
	ends := traintest.Ends(2)
	defer traintest.Close(ends)
	var held [2][]func()
	hold := true
	lines, halos := pipelines(t, parts, []wire.Endpoint{holding{ends[0], &hold, &held[0]},
		holding{ends[1], &hold, &held[1]}}, true)
	tag := exchange.Tag{Layer: 1, Kind: wire.Activation}
	for e := range 2 {
		traintest.Each(2, func(k int) {
			p, h, dev := lines[k], halos[k], lines[k].W.Dev
			p.Begin(e, 0, true)
			src, v := dev.New(tensor.F64, h.Src, 2), make([]float64, 2*h.Src)
			for i := range v {
				v[i] = rng.New(uint64(e)).Float64(uint64(i)) - 0.3
			}
			dev.Upload(src, v)
			a := p.Exchange(tag, h, dev.New(tensor.F64, h.HaloRows(), 2), src)
			a.Wait()
			a.Done()
		})
		for k := range held {
			if e == 0 && len(held[k]) == 0 {
				t.Fatalf("worker %d has sent nothing stale", k)
			}
			for _, leave := range held[k] {
				leave()
			}
			held[k] = nil
		}
		hold = false // the second's may leave at once
	}
	for _, p := range lines {
		if err := p.Finish(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPipeGCNCopes(t *testing.T)           { traintest.Copes(t, traintest.Strategy(t, "pipegcn")) }
func TestPipeGCNStopsWithOthers(t *testing.T) { traintest.AllStop(t, traintest.Strategy(t, "pipegcn")) }

// TestPipeGCNLearns: stale rows end near halo's accuracy, smoothed or not.
func TestPipeGCNLearns(t *testing.T) {
	traintest.Learns(t, 0.03, func(i int) train.Choice {
		return traintest.Strategy(t, "pipegcn", optionIf(i%2 == 1, "smooth=0.5"))
	})
}

// TestPipeGCNResumes: a run that is resumed without its caches, as on another
// partition, begins with zeros once more, and trains on.
func TestPipeGCNResumes(t *testing.T) {
	parts := traintest.Cut(t, traintest.Communities(t, 120, false), "random", 3)
	o := traintest.Small("gcn")
	o.Strategy = traintest.Strategy(t, "pipegcn")
	want, got := traintest.Resumed(t, parts, o, 3, false)
	if !slices.Equal(got.Loss[:3], want.Loss[:3]) || got.Loss[3] == want.Loss[3] {
		t.Errorf("losses %v after a stop, %v without", got.Loss, want.Loss)
	}
	traintest.SameCurve(t, "after a stop", got.Loss, want.Loss, 0.2)
}
