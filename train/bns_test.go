package train

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"starling/partition"
	"starling/tensor"
	"starling/wire"
)

func single() tensor.Device { return tensor.NewCPU(1) }

// small is options for a quick run of a model.
func small(model string) Options {
	o := options(model)
	o.Epochs, o.EvalEvery = 6, 3
	if o.Model.Layers > 2 {
		o.Model.Layers = 3
	}
	if model == "gcn" {
		o.Model.Norm = "batch"
	}
	return o
}

// familyModels are one of each kind of layer.
var familyModels = []string{"gcn", "sage", "gat", "gin", "ressage+"}

// isHalo: with its approximation off a strategy follows one worker, and halo to the
// last bit.
func isHalo(t *testing.T, choice Choice) {
	t.Helper()
	exactEverywhere(t, choice)
	for _, model := range familyModels {
		o := small(model)
		parts := cut(t, communities(t, 120, false), "random", 3)
		halo := trainParts(t, parts, single, o)[0]
		o.Strategy = choice
		for _, r := range trainParts(t, parts, single, o) {
			if !slices.Equal(r.Loss, halo.Loss) || !slices.Equal(r.Val, halo.Val) {
				t.Fatalf("%s: losses %v, halo's %v", model, r.Loss, halo.Loss)
			}
		}
	}
}

// TestBNSWeightMissesLeast: of rows with √F in common, kept ones with the weight are nearest to
// the sum of all, over all draws. One row counts as it is, and where all are kept so does each.
func TestBNSWeightMissesLeast(t *testing.T) {
	rows := []float64{1, 1, 1, 3 - math.Sqrt(12)} // (Σz)² = √4·Σz²
	for _, p := range []float64{0.05, 0.1, 0.5, 0.9} {
		s := bnsWeight(p, float64(len(rows)))
		if least := missed(rows, p, s); missed(rows, p, s*0.99) <= least || missed(rows, p, s*1.01) <= least {
			t.Errorf("p %g: weight %g is not the best", p, s)
		}
		if one := bnsWeight(p, 1); math.Abs(one-1) > 1e-12 {
			t.Errorf("p %g: a single neighbour counts %g", p, one)
		}
	}
	for _, far := range []float64{1, 2, 1000} {
		if all := bnsWeight(1, far); all != 1 {
			t.Errorf("%g neighbours that all come count %g", far, all)
		}
	}
}

// missed is the mean square by which s times the sum of kept rows misses that of all.
func missed(rows []float64, p, s float64) (mean float64) {
	for mask := range 1 << len(rows) {
		off, chance := 0.0, 1.0
		for i, z := range rows {
			if mask>>i&1 == 1 {
				off, chance = off+s*z, chance*p
			} else {
				chance *= 1 - p
			}
			off -= z
		}
		mean += chance * off * off
	}
	return mean
}

func TestBNSKeepingAllIsHalo(t *testing.T) {
	c := DefaultChoice("bns")
	c.Keep = 1
	isHalo(t, c)
}

// masked is boundary sampling as its formula has it: all rows travel, and are
// multiplied by s·mask on arrival.
type masked struct {
	*exact
	draw *bns
}

// mask is that of far rows in this epoch, times s.
func (m *masked) mask(t transfer, rows tensor.Matrix) []float64 {
	v := make([]float64, rows.Rows*rows.Cols)
	m.dev.Download(v, rows)
	for k, id := range m.part.IDs[m.part.Meta.Core:] {
		kept := m.draw.kept(m.epoch, m.part.Book.Owner(m.part.Halo[k]), m.end.Rank(), id)
		for c := range rows.Cols {
			x := &v[k*rows.Cols+c]
			switch {
			case kept && t.across:
			case kept:
				*x *= m.draw.weight
			case t.scores && !t.backward:
				*x = -1e20
			default:
				*x = 0
			}
		}
	}
	return v
}

type maskedRows struct {
	arrival
	then func()
}

func (a *maskedRows) wait() { a.arrival.wait(); a.then() }

func (m *masked) fetch(t transfer, b *border, into, src tensor.Matrix) arrival {
	a := m.exact.fetch(t, b, into, src)
	if !m.training || t.layer < 0 {
		return a
	}
	return &maskedRows{a, func() { m.dev.Upload(into, m.mask(t, into)) }}
}

func (m *masked) giveBack(t transfer, b *border, rows, dst tensor.Matrix) arrival {
	m.dev.Upload(rows, m.mask(t, rows))
	return m.exact.giveBack(t, b, rows, dst)
}

// longWay makes a strategy of that name that moves all rows, each straight, and does the
// rest as way has it, with the draws of bns.
func longWay(t *testing.T, name string, way func(s *site, x *exchanging) mover) {
	strategies[name] = func(s *site) (planned, error) {
		p, err := newBNS(s)
		if err != nil {
			return nil, err
		}
		short := p.(*exchanging)
		x := newExchanging(s, way(s, short), newBorder(s.dev, haloLists(s.part)))
		x.prepare = short.prepare
		return x, nil
	}
	t.Cleanup(func() { delete(strategies, name) })
}

// someServers are 3 workers on one server, or as many as relay needs.
func someServers(t *testing.T, directed, relay bool) []*partition.Part {
	workers, servers := 3, 1
	if relay {
		workers, servers = 6, 2
	}
	return cutForServers(t, communities(t, 120, directed), "random", workers, servers)
}

// TestBNSIsMasking: sending fewer rows gives what sending all and multiplying by
// the mask gives, for every kind of layer, passed on or not.
func TestBNSIsMasking(t *testing.T) {
	longWay(t, "masked", func(s *site, x *exchanging) mover { return &masked{&exact{site: s}, x.move.(*bns)} })
	for i, model := range familyModels {
		for j, keep := range []float64{0.02, 0.3, 0.9, 0.3} {
			o := small(model)
			o.Strategy = DefaultChoice("masked")
			o.Strategy.Keep, o.Strategy.Relay, o.Strategy.Unbiased = keep, (i+j)%2 == 0, j == 3
			parts := someServers(t, i%2 == 0, o.Strategy.Relay)
			want := trainParts(t, parts, ref, o)
			o.Strategy.Name = "bns"
			for k, r := range trainParts(t, parts, ref, o) {
				sameCurve(t, fmt.Sprintf("%s keeping %g", model, keep), r.Loss, want[k].Loss, 1e-9)
			}
			for k, r := range trainParts(t, parts, single, o) {
				sameCurve(t, fmt.Sprintf("%s keeping %g, float32", model, keep), r.Loss, want[k].Loss, 1e-3)
			}
		}
	}
}

// TestBNSSendsItsShare: the rows of training passes are a share p of halo's, and
// those of measuring passes all of them.
func TestBNSSendsItsShare(t *testing.T) {
	d := communities(t, 600, true)
	parts := cut(t, d, "random", 4)
	rows := func(c Choice) (n float64) {
		o := small("gcn")
		o.Epochs, o.EvalEvery, o.Strategy = 20, 0, c
		for _, r := range trainParts(t, parts, single, o) {
			for e := range o.Epochs {
				for s, b := range r.Plan.Epoch(e) {
					if s.Kind == wire.Activation || s.Kind == wire.Gradient {
						n += float64(b)
					}
				}
			}
		}
		return n
	}
	share := rows(DefaultChoice("bns")) / rows(DefaultChoice("halo"))
	if math.Abs(share-0.1) > 0.005 {
		t.Fatalf("bns sends %.4f of halo's rows, want 0.1", share)
	}
}

// copes trains on odd partitions, with planned and counted bytes compared.
func copes(t *testing.T, c Choice) {
	t.Helper()
	_, odd := oddParts(t)
	for name, parts := range odd {
		for _, model := range []string{"gcn", "gat"} {
			o := small(model)
			o.Strategy = c
			for _, r := range trainParts(t, parts, single, o) {
				if x := r.Loss[len(r.Loss)-1]; !(x > 0 && x < 10) {
					t.Errorf("%s, %s: loss %g", name, model, x)
				}
			}
		}
	}
}

func TestBNSCopes(t *testing.T) { copes(t, DefaultChoice("bns")) }

func TestBNSStopsWithOthers(t *testing.T) { allStop(t, DefaultChoice("bns")) }

// TestBNSLearns: attention and sums at the default share end near halo's accuracy.
func TestBNSLearns(t *testing.T) {
	learns(t, 0.05, func(int) Choice { return DefaultChoice("bns") })
}

// learns compares the accuracy of a strategy, chosen for each model, with one worker's,
// which it may fall short of by so much.
func learns(t *testing.T, short float64, choose func(i int) Choice) {
	t.Helper()
	d := communities(t, 600, false)
	parts := cut(t, d, "fennel", 4)
	for i, model := range []string{"gcn", "sage", "gat"} {
		o := options(model)
		o.Epochs = 60
		want := mustTrain(t, cpu(t, 1), d, o).TestMetric
		o.Strategy = choose(i)
		if got := trainParts(t, parts, single, o)[0].TestMetric; got < want-short {
			t.Errorf("%s: accuracy %.3f with %+v, %.3f on one worker", model, got, o.Strategy, want)
		}
	}
}

// inTwoRuns trains, stops after some epochs, and goes on in another run, with the weights
// and nothing else.
func inTwoRuns(t *testing.T, parts []*partition.Part, o Options, stop int) *Result {
	t.Helper()
	var saved *State
	run := func(o Options) (out *Result) {
		ends := wire.NewGroup(len(parts), wire.DefaultOptions())
		var wg sync.WaitGroup
		for k := range parts {
			o := o
			if o.Resume != nil { // a worker uses its state up
				own := *o.Resume
				own.Caches, o.Resume = nil, &own
			}
			if k == 0 {
				o.Save = func(s *State) error { saved = s; return nil }
			}
			wg.Go(func() {
				dev := single()
				defer dev.Close()
				r, err := Worker(context.Background(), dev, parts[k], ends[k], NewGroup(context.Background(), ends[k], dev, parts[k].Book.Servers), o, nil)
				if err != nil {
					t.Error(err)
				}
				if k == 0 {
					out = r
				}
			})
		}
		wg.Wait()
		for _, e := range ends {
			e.Close()
		}
		return out
	}
	first := o
	first.Epochs = stop
	run(first)
	o.Resume = saved
	return run(o)
}

// TestBNSResumes: a run that goes on draws what it would have drawn.
func TestBNSResumes(t *testing.T) {
	parts := cut(t, communities(t, 120, false), "random", 3)
	for _, model := range []string{"gcn", "gat"} {
		o := small(model)
		o.Strategy = DefaultChoice("bns")
		want := trainParts(t, parts, single, o)[0]
		if got := inTwoRuns(t, parts, o, 3); !slices.Equal(got.Loss, want.Loss) {
			t.Errorf("%s: losses %v after a stop, %v without", model, got.Loss, want.Loss)
		}
	}
}

// TestBNSRefusesWhatNeedsAllRows: layers that have no place for a missing row say so.
func TestBNSRefusesWhatNeedsAllRows(t *testing.T) {
	parts := cut(t, communities(t, 60, false), "chunk", 2)
	for _, model := range []string{"gatv2", "sage-pool", "film"} {
		o := options(model)
		o.Strategy = DefaultChoice("bns")
		s := &site{ctx: context.Background(), dev: tensor.NewRef(), part: parts[0], end: wire.NewGroup(2, wire.DefaultOptions())[0], opt: o, paper: true}
		if _, err := newStrategy(s); err == nil || !strings.Contains(err.Error(), model) {
			t.Errorf("%s: %v", model, err)
		}
		s.opt.Strategy.Keep = 1
		if _, err := newStrategy(s); err != nil {
			t.Errorf("%s, all rows kept: %v", model, err)
		}
	}
}
