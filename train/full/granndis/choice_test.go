package granndis

import (
	"math"
	"slices"
	"testing"

	"starling/cost"
	"starling/graph"
)

// TestSamplingPicks the neighbours with most left, the lower number of equals, and counts
// an edge that is there twice once.
func TestSamplingPicks(t *testing.T) {
	in := &graph.CSR{Indptr: []int64{0, 5, 7, 7}, Indices: []uint32{9, 8, 8, 7, 1, 9, 6}}
	left := map[uint32]int64{6: 0, 7: 4, 8: 4, 9: 2} // 1 is inside
	for fanout, want := range [][]uint32{nil, {7, 9}, {6, 7, 8, 9}, {6, 7, 8, 9}} {
		if got := (&sampling{1, fanout}).of(in, left); !slices.Equal(got, want) {
			t.Errorf("fanout %d picks %v, want %v", fanout, got, want)
		}
	}
	for _, text := range []string{"", "1", "1,", "a,b", "-1,2", "1,-2", "1,2,3"} {
		if _, err := newSampling(text); err == nil {
			t.Errorf("sampling %q passed", text)
		}
	}
}

// TestDistribute: the neediest first, the others when it has its share; none to workers
// without vertices.
func TestDistribute(t *testing.T) {
	for name, c := range map[string]struct {
		load     []int64
		vertices []want
		at       []int
	}{
		"the neediest":   {[]int64{10, 10}, []want{{2, []uint32{0, 1}}, {2, []uint32{3, 1}}}, []int{1, 0}},
		"ties":           {[]int64{10, 10}, []want{{1, []uint32{1, 1}}}, []int{0}},
		"a full one":     {[]int64{100, 10}, []want{{2, []uint32{5, 0}}}, []int{1}},
		"one without":    {[]int64{-1, 10}, []want{{2, []uint32{5, 0}}}, []int{1}},
		"all to one":     {[]int64{0, 0}, []want{{10, []uint32{1, 0}}, {10, []uint32{1, 0}}}, []int{0, 1}},
		"nothing to do":  {[]int64{3}, nil, []int{}},
		"a single share": {[]int64{3}, []want{{1 << 40, []uint32{1}}}, []int{0}},
	} {
		if got := distribute(c.vertices, c.load); !slices.Equal(got, c.at) {
			t.Errorf("%s: %v, want %v", name, got, c.at)
		}
	}
}

// TestCosts: a hand-computed case. Own 10 vertices with 30 edges; hop 1 has 4 with 8,
// hop 2 has 2. Inside the server 3 halo rows and one more each for hops 1 and 2;
// 5 between servers.
func TestCosts(t *testing.T) {
	g := growth{rows: []int64{10, 4, 2}, edges: []int64{30, 8}, remote: []int64{4, 1}, inside: 3, between: 5}
	c := cost.Epoch{Inside: 0.5, Between: 2, Fixed: 7, Feature: 3, Layers: []cost.Layer{
		{Row: 1, Edge: 0.1, Traffic: 10, Kept: 100}, {Row: 2, Edge: 0.2, Traffic: 20, Kept: 100, TransformFirst: true}}}
	for k, want := range []float64{
		7 + (10 + 3 + 10*(1.5+10)) + (20 + 6 + 20*(1.5+10)), // halo
		7 + (10 + 3 + 10*2) + (20 + 6 + 20*(1.5+10)),        // hop 1's features
		7 + (14 + 3.8 + 10*2.5) + (2*14 + 6 + 20*2),         // hop 1 computed, hop 2's features
	} {
		if got := seconds(&c, &g, k, 0); math.Abs(got-want) > 1e-9 {
			t.Errorf("%d layers preloaded: %g s, want %g", k, got, want)
		}
	}
	for k, want := range []int64{
		10*3 + 10*100 + 10*100 + 30*cost.EdgeBytes,
		14*3 + 10*100 + 10*100 + 2*30*cost.EdgeBytes,
		16*3 + 14*100 + 10*100 + (38+30)*cost.EdgeBytes,
	} {
		if got := memory(&c, &g, k); got != want {
			t.Errorf("%d layers preloaded: %d bytes, want %d", k, got, want)
		}
	}
}

// TestForecast stops where memory ends, or after two layers that do not help.
func TestForecast(t *testing.T) {
	never := math.Inf(1)
	for _, c := range []struct {
		seconds    []float64
		fits       int // how many do
		looked, at int
	}{
		{[]float64{5, 4, 3, 2}, 9, 4, 3},
		{[]float64{5, 6, 4, 3}, 9, 4, 3},
		{[]float64{5, 6, 7, 1}, 9, 3, 0},
		{[]float64{5, 4, 3, 2}, 2, 3, 1},
		{[]float64{5, 4}, 0, 2, 0},
		{[]float64{5, 5, 5}, 9, 3, 0},
		{[]float64{5, never, 4}, 9, 3, 2},
	} {
		f := &forecast{}
		for k, s := range c.seconds {
			if !f.consider(s, 0, k < c.fits) {
				break
			}
		}
		if len(f.seconds) != c.looked || f.best != c.at {
			t.Errorf("%v, of which %d fit: looked at %d and chose %d, want %d and %d", c.seconds, c.fits,
				len(f.seconds), f.best, c.looked, c.at)
		}
	}
}

// TestForecastOfMost takes as many layers as fit, however slow.
func TestForecastOfMost(t *testing.T) {
	f := &forecast{most: true}
	for k, s := range []float64{5, 6, 7, 8, 9} {
		if !f.consider(s, 0, k < 4) {
			break
		}
	}
	if len(f.seconds) != 5 || f.best != 3 {
		t.Errorf("looked at %d and chose %d, want 5 and 3", len(f.seconds), f.best)
	}
}

// TestReceivable: rows that come in 0.8 of the time in which local ones are summed.
func TestReceivable(t *testing.T) {
	g := growth{between: 10, relayed: 5, local: 100, replicated: 50}
	c := cost.Epoch{Inside: 1, Between: 3, Layers: []cost.Layer{{}, {Edge: 0.1, Traffic: 2}}}
	want := 0.8 * 0.1 * 150 / (2*(3*10+5) + 0.8*0.1*50) // of share·70 = 0.08·(100 + (1-share)·50)
	if got := receivable(&c, &g, 2); math.Abs(got-want) > 1e-12 {
		t.Errorf("receives %g, want %g", got, want)
	}
	if got := receivable(&c, &g, 1); got != 0 {
		t.Errorf("with one layer receives %g", got)
	}
	if got := receivable(&c, &growth{local: 1, replicated: 1}, 2); got != 1 {
		t.Errorf("without a halo receives %g", got)
	}
}
