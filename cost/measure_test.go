package cost

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"starling/graph"
	"starling/nn"
	"starling/train"
	"starling/train/traintest"
)

// fake is a cluster of this worker and another that measured nothing, whose clock moves on
// by a tick whenever it is read, and by what bytes take.
type fake struct {
	now             time.Time
	tick            time.Duration
	inside, between float64 // seconds per byte
	shared          int
	failAt          int // the call of Share that fails; 0: none
}

var errGone = errors.New("the other worker is gone")

func (f *fake) Share(mine ...float64) ([][]float64, error) {
	if f.shared++; f.shared == f.failAt {
		return nil, errGone
	}
	return [][]float64{mine, make([]float64, len(mine))}, nil
}

func (f *fake) Exchange(peers []int, bytes int) error {
	rate := f.inside
	if len(peers) == 2 {
		rate = f.between
	}
	f.now = f.now.Add(time.Duration(rate * float64(bytes*len(peers)) * 1e9))
	return nil
}

func (f *fake) Peers(otherServers bool) []int {
	if otherServers {
		return []int{2, 3}
	}
	return []int{1}
}

func (f *fake) Now() time.Time {
	f.now = f.now.Add(f.tick)
	return f.now
}

// step is a small step of a model.
func step(t *testing.T, model string, d *graph.Dataset) *Step {
	t.Helper()
	dev, o := traintest.Ref(), traintest.Small(model)
	return &Step{Dev: dev, Model: nn.New(dev, o.Model, 1), In: d.Graph, Features: d.Features, Seed: 1,
		Input: func(f *graph.Features) nn.Input { return train.Input(dev, f, o) }}
}

// TestMeasure: every layer has its rates, links theirs, and a worker that could not measure
// does not count.
func TestMeasure(t *testing.T) {
	for _, model := range []string{"gcn", "gat", "ressage+"} {
		c := &fake{tick: 5 * time.Millisecond, inside: 1e-6, between: 5e-6}
		s := step(t, model, traintest.Communities(t, 40, model == "gcn"))
		r, err := Measure(c, s)
		if err != nil || len(r.Row) != s.Model.Convs() || len(r.Edge) != s.Model.Convs() {
			t.Fatalf("%s: %+v, %v", model, r, err)
		}
		for i, seconds := range slices.Concat(r.Row, r.Edge) {
			if !(seconds >= 0) || math.IsInf(seconds, 0) || i < len(r.Row) && seconds == 0 {
				t.Errorf("%s: seconds of rows %v, of edges %v", model, r.Row, r.Edge)
				break
			}
		}
		// A tick is a quarter of a percent of what the bytes take.
		if math.Abs(r.Inside/c.inside-1) > 0.01 || math.Abs(r.Between/c.between-1) > 0.01 {
			t.Errorf("%s: %g and %g seconds per byte, want %g and %g", model, r.Inside, r.Between, c.inside, c.between)
		}
	}
}

// TestMeasureOfNothing: a worker without vertices, and a clock that stands still, end all
// the same, with rates of zero.
func TestMeasureOfNothing(t *testing.T) {
	d := traintest.Communities(t, 4, false)
	empty := &graph.Dataset{Graph: &graph.CSR{Indptr: []int64{0}},
		Features: &graph.Features{Cols: d.Features.Cols, F32: []float32{}}}
	for name, c := range map[string]struct {
		d    *graph.Dataset
		tick time.Duration
	}{"no vertices": {empty, time.Millisecond}, "no time": {d, 0}} {
		r, err := Measure(&fake{tick: c.tick}, step(t, "gcn", c.d))
		if err != nil || slices.Max(slices.Concat(r.Row, r.Edge)) != 0 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// TestMeasureWithoutGraphLayers: an mlp has none to time, and the links are timed all the same.
func TestMeasureWithoutGraphLayers(t *testing.T) {
	f := &fake{tick: 5 * time.Millisecond, inside: 1e-6, between: 5e-6}
	r, err := Measure(f, step(t, "mlp", traintest.Communities(t, 40, false)))
	if err != nil || len(r.Row) != 0 || len(r.Edge) != 0 || !(r.Inside > 0) || !(r.Between > r.Inside) {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestMeasureFails where a peer does, wherever that is.
func TestMeasureFails(t *testing.T) {
	s := step(t, "gcn", traintest.Communities(t, 20, false))
	whole := &fake{tick: 5 * time.Millisecond}
	if _, err := Measure(whole, s); err != nil {
		t.Fatal(err)
	}
	for at := 1; at <= whole.shared; at++ {
		if _, err := Measure(&fake{tick: 5 * time.Millisecond, failAt: at}, s); !errors.Is(err, errGone) {
			t.Errorf("at call %d of %d: %v", at, whole.shared, err)
		}
	}
}

func TestNumbers(t *testing.T) {
	r := Rates{Row: []float64{1, 2, 3}, Edge: []float64{4, 5, 6}, Inside: 7, Between: 8}
	v := r.Numbers()
	back := FromNumbers(v)
	if !slices.Equal(v, []float64{1, 2, 3, 4, 5, 6, 7, 8}) || !slices.Equal(back.Row, r.Row) ||
		!slices.Equal(back.Edge, r.Edge) || back.Inside != 7 || back.Between != 8 {
		t.Errorf("%v, %+v", v, back)
	}
}

// TestFolded: vertices keep their degrees, weights and features of edges, and all sources
// are among them.
func TestFolded(t *testing.T) {
	g := traintest.WithEdgeFeatures(traintest.Oddities(t, 30, true)).Graph
	for _, n := range []int{1, 7, 30} {
		f := folded(g, n)
		if f.Nodes() != n || f.EdgeDim != g.EdgeDim || len(f.EdgeFeatures) != int(f.Edges())*g.EdgeDim {
			t.Fatalf("%d of %d vertices", f.Nodes(), n)
		}
		for e, u := range f.Indices {
			if u != g.Indices[e]%uint32(n) || f.Weights[e] != g.Weights[e] {
				t.Fatalf("%d vertices: edge %d from %d", n, e, u)
			}
		}
		for v := range uint32(n) {
			if f.Degree(v) != g.Degree(v) {
				t.Errorf("vertex %d has %d in-edges, had %d", v, f.Degree(v), g.Degree(v))
			}
		}
	}
}

func TestFirstRows(t *testing.T) {
	for _, sparse := range []bool{false, true} {
		all := traintest.Communities(t, 20, sparse).Features
		some := firstRows(all, 7)
		a, b := make([]float32, all.Cols), make([]float32, all.Cols)
		for v := range uint32(7) {
			all.CopyRow(a, v)
			if some.CopyRow(b, v); !slices.Equal(a, b) || some.Rows != 7 {
				t.Errorf("sparse %v: row %d is %v, want %v", sparse, v, b, a)
			}
		}
	}
}

// TestEdgeShare: the edges of all layers cost what a step with edges takes more than one
// without, however noise divides it.
func TestEdgeShare(t *testing.T) {
	for _, c := range []struct {
		bare, full []float64
		want       float64
	}{
		{[]float64{1, 1}, []float64{2, 3}, 3},
		{[]float64{1, 3}, []float64{4, 2}, 2},
		{[]float64{3, 3}, []float64{2, 1}, 0},
		{[]float64{5, 1}, []float64{1, 2}, 0},
		{nil, nil, 0},
	} {
		share, sum := edgeShare(c.bare, c.full), 0.0
		for i := range c.full {
			sum += share * max(0, c.full[i]-c.bare[i])
		}
		if math.Abs(sum-c.want) > 1e-12 {
			t.Errorf("%v and %v: edges cost %g, want %g", c.bare, c.full, sum, c.want)
		}
	}
}
