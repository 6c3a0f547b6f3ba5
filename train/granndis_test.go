package train

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/partition"
	"starling/rng"
	"starling/tensor"
	"starling/wire"
)

// trained is a run of several workers.
type trained struct {
	results []*Result
	counted []map[Sent]int64
	notes   []string // of worker 0
}

// trainServers is trainParts with links by server, and what went over them.
func trainServers(t *testing.T, parts []*partition.Part, device func() tensor.Device, o Options) *trained {
	t.Helper()
	opt := wire.DefaultOptions()
	for k := range parts {
		opt.ServerOf = append(opt.ServerOf, parts[0].Book.Server(k))
	}
	ends := wire.NewGroup(len(parts), opt)
	r := &trained{results: make([]*Result, len(parts)), counted: make([]map[Sent]int64, len(parts))}
	errs := make([]error, len(parts))
	var wg sync.WaitGroup
	for k := range parts {
		var events event.Listener
		if k == 0 {
			events = event.Func(func(e event.Event) {
				if n, ok := e.(event.Note); ok {
					r.notes = append(r.notes, n.Text)
				}
			})
		}
		wg.Go(func() {
			dev := device()
			defer dev.Close()
			ctx := context.Background()
			r.results[k], errs[k] = Worker(ctx, dev, parts[k], ends[k], NewGroup(ctx, ends[k], dev, parts[k].Book.Servers), o, events)
			r.counted[k] = Counted(ends[k].Ledger())
		})
	}
	wg.Wait()
	for k, err := range errs {
		if err != nil {
			t.Fatalf("worker %d: %v", k, err)
		}
	}
	for k, e := range ends {
		want := r.results[k].Plan.Total(0, o.Epochs, len(r.results[k].Measured), o.Epochs)
		if !keeps(r.results[k].Plan, r.counted[k], want) {
			t.Errorf("worker %d planned to send %v, sent %v", k, want, r.counted[k])
		}
		e.Close()
	}
	return r
}

// between are the bytes of rows that left for another server while training.
func (r *trained) between(layers ...int16) (bytes int64) {
	for _, c := range r.counted {
		for s, b := range c {
			if s.Link == wire.BetweenServers && (s.Kind == wire.Activation || s.Kind == wire.Gradient) && (len(layers) == 0 || slices.Contains(layers, s.Layer)) {
				bytes += b
			}
		}
	}
	return bytes
}

func onRef() tensor.Device { return tensor.NewRef() }
func onCPU() tensor.Device { return tensor.NewCPU(1) }

// modelOptions are short runs of a model; gcn with batch norm, deep ones of 4 layers.
func modelOptions(model string) Options {
	o := options(model)
	o.Epochs, o.EvalEvery = 4, 2
	if o.Model.Layers = 3; o.Model.Norm == "layer" {
		o.Model.Layers = 4
	}
	if model == "gcn" {
		o.Model.Norm = "batch"
	}
	o.Strategy = DefaultChoice("granndis")
	return o
}

// TestGranndisIsExact: every model, with dropout, for every number of preloaded layers,
// follows one worker's loss, and rows of preloaded layers stay inside their server.
func TestGranndisIsExact(t *testing.T) {
	for i, model := range nn.Models {
		d := communities(t, 120, i%2 == 1)
		o := modelOptions(model)
		want := mustTrain(t, tensor.NewRef(), d, o)
		for j, shape := range [][2]int{{4, 2}, {[]int{3, 5, 6}[i%3], []int{3, 1, 2}[i%3]}} {
			parts := cutForServers(t, d, []string{"random", "hash", "chunk", "fennel"}[(i+j)%4], shape[0], shape[1])
			for k := range graphLayers(o.Model) + 1 {
				o.Strategy.Preload = fmt.Sprint(k)
				label := fmt.Sprintf("%s on %d workers of %d servers, %d layers preloaded", model, shape[0], shape[1], k)
				run := trainServers(t, parts, onRef, o)
				for _, r := range run.results {
					sameCurve(t, label, r.Loss, want.Loss, 1e-9)
					sameCurve(t, label+", validation", r.Val, want.Val, 1e-9)
				}
				for l := range k {
					if b := run.between(int16(l)); b > 0 {
						t.Errorf("%s: %d bytes of layer %d between servers", label, b, l)
					}
				}
				if k == graphLayers(o.Model) && run.between() > 0 {
					t.Errorf("%s: %d bytes of rows between servers", label, run.between())
				}
			}
		}
	}
}

// TestGranndisWithoutPreloadingIsHalo, to the last bit.
func TestGranndisWithoutPreloadingIsHalo(t *testing.T) {
	d := communities(t, 100, false)
	o := modelOptions("gat")
	parts := cutForServers(t, d, "random", 4, 2)
	o.Strategy.Preload = "0"
	got := trainServers(t, parts, onCPU, o)
	o.Strategy = DefaultChoice("halo")
	want := trainServers(t, parts, onCPU, o)
	for k := range parts {
		if !slices.Equal(got.results[k].Loss, want.results[k].Loss) || !maps.Equal(got.counted[k], want.counted[k]) {
			t.Errorf("worker %d: losses %v, bytes %v; halo has %v, %v", k, got.results[k].Loss, got.counted[k], want.results[k].Loss, want.counted[k])
		}
	}
}

// TestGranndisDeep: hops of 28 layers reach everything that can be reached, and float32
// follows float64.
func TestGranndisDeep(t *testing.T) {
	d := communities(t, 60, false)
	o := options("ressage+")
	o.Epochs, o.EvalEvery, o.Model.Hidden, o.Model.Dropout = 3, 0, 8, 0.1
	o.Strategy = DefaultChoice("granndis")
	want := mustTrain(t, tensor.NewRef(), d, o)
	parts := cutForServers(t, d, "random", 4, 2)
	for _, k := range []string{"28", "5", "1"} {
		o.Strategy.Preload = k
		for _, r := range trainServers(t, parts, onRef, o).results {
			sameCurve(t, k+" of 28 layers", r.Loss, want.Loss, 1e-9)
		}
		for _, r := range trainServers(t, parts, onCPU, o).results {
			sameCurve(t, k+" of 28 layers, float32", r.Loss, want.Loss, 1e-4)
		}
	}
}

// TestGranndisFloat32 follows one worker's losses for 20 epochs.
func TestGranndisFloat32(t *testing.T) {
	d := communities(t, 150, false)
	o := modelOptions("gcn")
	o.Epochs, o.EvalEvery = 20, 5
	want := mustTrain(t, tensor.NewRef(), d, o)
	parts := cutForServers(t, d, "fennel", 4, 2)
	for _, k := range []string{"1", "3", "auto"} {
		o.Strategy.Preload = k
		for _, r := range trainServers(t, parts, onCPU, o).results {
			sameCurve(t, k+" layers preloaded", r.Loss, want.Loss, 1e-4)
		}
	}
}

// TestGranndisChooses: whatever is chosen is exact, and what was predicted and measured
// is told.
func TestGranndisChooses(t *testing.T) {
	for _, model := range []string{"gcn", "ressage+", "mlp"} {
		d := communities(t, 80, false)
		o := modelOptions(model)
		want := mustTrain(t, tensor.NewRef(), d, o)
		parts := cutForServers(t, d, "random", 4, 2)
		for _, budget := range []int64{0, 1} {
			o.Strategy.Budget = budget
			run := trainServers(t, parts, onRef, o)
			for _, r := range run.results {
				sameCurve(t, model, r.Loss, want.Loss, 1e-9)
			}
			if model == "mlp" {
				continue
			}
			if last := run.notes[len(run.notes)-1]; !strings.Contains(last, "measured") || !strings.Contains(last, "predicts") {
				t.Errorf("%s: notes are %q", model, run.notes)
			}
			if budget == 1 && run.between() == 0 {
				t.Errorf("%s: preloaded without memory: %q", model, run.notes)
			}
		}
	}
}

// oddities are graphs with weights, loops, one-way and repeated edges.
func oddities(t *testing.T, n int, weighted bool) *graph.Dataset {
	d := communities(t, n, false)
	key := rng.New(5)
	var src, dst []uint32
	var weights []float32
	for i := range uint64(4 * n) {
		src, dst = append(src, uint32(key.Fold(1).IntN(i, n))), append(dst, uint32(key.Fold(2).IntN(i, n)))
		if i%5 == 0 {
			dst[i] = src[i]
		}
		weights = append(weights, float32(0.5+key.Fold(3).Float64(i)))
	}
	if !weighted {
		weights = nil
	}
	g, err := graph.FromEdges(n, src, dst, weights, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d.Graph, d.Meta.Edges, d.Meta.Symmetric = g, g.Edges(), false
	return d
}

// TestGranndisOddGraphs: loops, weights and directions are as in one worker's run.
func TestGranndisOddGraphs(t *testing.T) {
	for _, model := range []string{"gcn", "sage", "sage-pool", "gat", "gatv2", "gin", "film", "ressage+"} {
		d := oddities(t, 70, model[0] == 'g')
		o := modelOptions(model)
		o.Epochs = 3
		want := mustTrain(t, tensor.NewRef(), d, o)
		parts := cutForServers(t, d, "random", 4, 2)
		for _, k := range []string{"1", "2", "4"} {
			o.Strategy.Preload = k
			for _, r := range trainServers(t, parts, onRef, o).results {
				sameCurve(t, model+" with "+k, r.Loss, want.Loss, 1e-9)
			}
		}
		o.Strategy.Sample = "9,999"
		for _, r := range trainServers(t, parts, onRef, o).results {
			sameCurve(t, model+" sampling everything", r.Loss, want.Loss, 1e-9)
		}
	}
}

// TestGranndisOddParts: parts without a border, without training vertices, of one vertex,
// of none, and much larger than the others.
func TestGranndisOddParts(t *testing.T) {
	d := communities(t, 64, false)
	var src, dst []uint32 // two halves without an edge between them
	for v := range uint32(d.Graph.Nodes()) {
		for _, u := range d.Graph.Neighbors(v) {
			if (u < 32) == (v < 32) {
				src, dst = append(src, u), append(dst, v)
			}
		}
	}
	halves := communities(t, 64, false)
	halves.Graph, _ = graph.FromEdges(64, src, dst, nil, graph.BuildOptions{})
	halves.Meta.Edges = halves.Graph.Edges()
	for name, c := range map[string]struct {
		d  *graph.Dataset
		of func(v uint32) uint32
	}{
		"no border":          {halves, func(v uint32) uint32 { return v / 32 * 2 }},
		"no training vertex": {d, func(v uint32) uint32 { return min(v%4, 1) * (1 + v%3) }},
		"one vertex":         {d, func(v uint32) uint32 { return min(v, 3) }},
		"one empty":          {d, func(v uint32) uint32 { return v % 3 }},
		"uneven":             {d, func(v uint32) uint32 { return uint32(max(0, int(v)-57)) / 2 }},
	} {
		for _, model := range []string{"gcn", "sage", "gat"} {
			o := modelOptions(model)
			o.Epochs = 3
			want := mustTrain(t, tensor.NewRef(), c.d, o)
			of := make([]uint32, 64)
			for v := range of {
				of[v] = c.of(uint32(v))
			}
			parts := writeParts(t, c.d, of, 4, 2)
			for _, k := range []string{"1", "3"} {
				o.Strategy.Preload, o.Strategy.Sample = k, ""
				for _, r := range trainServers(t, parts, onRef, o).results {
					sameCurve(t, name+", "+model+" with "+k, r.Loss, want.Loss, 1e-9)
				}
			}
			o.Strategy.Sample = "1,2"
			trainServers(t, parts, onRef, o)
		}
	}
}

// TestGranndisSampling: nothing but sums travels between servers in training, accuracy is
// that of the whole graph, and with everything sampled losses are exact.
func TestGranndisSampling(t *testing.T) {
	for i, model := range nn.Models {
		d := communities(t, 120, i%2 == 0)
		parts := cutForServers(t, d, "random", 4, 2)
		o := modelOptions(model)
		want := mustTrain(t, tensor.NewRef(), d, o)
		for _, sample := range []string{"0,0", "1,2", "2,1"} {
			o.Strategy.Sample = sample
			run := trainServers(t, parts, onRef, o)
			for _, c := range run.counted {
				for s, b := range c {
					if s.Link == wire.BetweenServers && s.Kind == wire.Gradient {
						t.Errorf("%s sampling %s: %d bytes of %v between servers", model, sample, b, s)
					}
				}
			}
			for _, r := range run.results {
				if last := len(r.Loss) - 1; model != "mlp" && r.Loss[last] == want.Loss[last] {
					t.Errorf("%s sampling %s: left nothing out", model, sample)
				}
			}
		}
		o.Strategy.Sample, o.Strategy.Preload = "1,2", "1"
		run := trainServers(t, parts, onRef, o)
		for _, c := range run.counted {
			for s, b := range c {
				if s.Link == wire.BetweenServers && s.Kind == wire.Gradient && s.Layer < 1 {
					t.Errorf("%s sampling, one layer preloaded: %d bytes of %v between servers", model, b, s)
				}
			}
		}
		if model != "mlp" && run.between() == 0 {
			t.Errorf("%s sampling, one layer preloaded: no rows between servers", model)
		}
		o.Strategy.Sample = "9,1000"
		for _, preload := range []string{"auto", "0", "1"} { // rows that are not computed twice are received
			o.Strategy.Preload = preload
			for _, r := range trainServers(t, parts, onRef, o).results {
				sameCurve(t, model+" sampling everything, preloading "+preload, r.Loss, want.Loss, 1e-9)
			}
		}
		o.Strategy.Preload = "auto"
		o.Optim.LR, o.Strategy.Sample = 0, "1,1" // the same weights: the same accuracy
		want = mustTrain(t, tensor.NewRef(), d, o)
		for _, r := range trainServers(t, parts, onRef, o).results {
			if o.Model.Norm != "batch" { // whose running means are of sampled rows
				sameCurve(t, model+" measured", r.Val, want.Val, 1e-9)
			}
		}
	}
}

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

// TestShareOut: the neediest first, the others when it has its share; none to workers
// without vertices.
func TestShareOut(t *testing.T) {
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
		if got := shareOut(c.vertices, c.load); !slices.Equal(got, c.at) {
			t.Errorf("%s: %v, want %v", name, got, c.at)
		}
	}
}

// TestGrowthCountsWhatBordersHave: the counts that predictions stand on are those of the
// borders that are then made.
func TestGrowthCountsWhatBordersHave(t *testing.T) {
	const layers = 4
	for _, shape := range [][2]int{{4, 2}, {6, 3}, {3, 3}} {
		parts := cutForServers(t, communities(t, 100, false), "fennel", shape[0], shape[1])
		onAll(t, parts, func(l *lookup) error {
			s, err := newSurroundings(l, layers, nil, nil)
			if err != nil {
				return err
			}
			b := newBorder(l.dev, haloLists(l.part))
			if w := s.grown.layer(0, 0); w.made != int64(b.dst) || w.taken != int64(b.src) || w.edges != l.part.In.Edges() || w.inside+w.between != int64(b.farRows()) {
				return fmt.Errorf("halo: counted %+v", w)
			}
			if err := s.grow(layers); err != nil {
				return err
			}
			for k := 1; k <= layers; k++ {
				c := s.copies(k)
				borders, err := c.borders(layers, func(layer int, v uint32) int {
					if layer < k {
						return s.holder(v)
					}
					return l.part.Book.Owner(v)
				})
				if err != nil {
					return err
				}
				for i, b := range borders {
					got := s.grown.layer(k, i)
					want := load{made: int64(b.dst), taken: int64(b.src), edges: c.in.Indptr[b.dst], inside: int64(b.farRows())}
					for q := range parts {
						if l.part.Book.Server(q) != l.part.Book.Server(l.end.Rank()) {
							n := b.farPtr[q+1] - b.farPtr[q]
							want.inside, want.between = want.inside-n, want.between+n
						}
					}
					if got != want {
						return fmt.Errorf("layer %d of %d: counted %+v, made %+v", i, k, got, want)
					}
				}
			}
			return nil
		})
	}
}

// TestCosts: a hand-computed case. Own 10 vertices with 30 edges; hop 1 has 4 with 8,
// hop 2 has 2. Inside the server 3 border rows and one more each for hops 1 and 2;
// 5 between servers.
func TestCosts(t *testing.T) {
	g := growth{rows: []int64{10, 4, 2}, edges: []int64{30, 8}, far: []int64{4, 1}, inside: 3, between: 5}
	c := costs{inside: 0.5, between: 2, fixed: 7, feature: 3, layers: []layerCost{
		{row: 1, edge: 0.1, traffic: 10, kept: 100}, {row: 2, edge: 0.2, traffic: 20, kept: 100, transformFirst: true}}}
	for k, want := range []float64{
		7 + (10 + 3 + 10*(1.5+10)) + (20 + 6 + 20*(1.5+10)), // halo
		7 + (10 + 3 + 10*2) + (20 + 6 + 20*(1.5+10)),        // hop 1's features
		7 + (14 + 3.8 + 10*2.5) + (2*14 + 6 + 20*2),         // hop 1 computed, hop 2's features
	} {
		if got := c.seconds(&g, k, 0); math.Abs(got-want) > 1e-9 {
			t.Errorf("%d layers preloaded: %g s, want %g", k, got, want)
		}
	}
	for k, want := range []int64{
		10*3 + 10*100 + 10*100 + 30*edgeBytes,
		14*3 + 10*100 + 10*100 + 2*30*edgeBytes,
		16*3 + 14*100 + 10*100 + (38+30)*edgeBytes,
	} {
		if got := c.memory(&g, k); got != want {
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
			t.Errorf("%v, of which %d fit: looked at %d and chose %d, want %d and %d", c.seconds, c.fits, len(f.seconds), f.best, c.looked, c.at)
		}
	}
}

// TestGranndisNeedsPeersToPlan: on paper there is nobody to ask.
func TestGranndisNeedsPeersToPlan(t *testing.T) {
	parts := cutForServers(t, communities(t, 40, false), "random", 4, 2)
	ends := wire.NewGroup(4, wire.DefaultOptions())
	o := modelOptions("gcn")
	dev := tensor.NewRef()
	for preload, want := range map[string]error{"0": nil, "1": ErrUnplanned, "auto": ErrUnplanned} {
		o.Strategy.Preload = preload
		model := nn.New(dev, o.Model, 1)
		if _, err := PlanOnPaper(parts[0], ends[0], dev, model, nn.Classify{}, o); !errors.Is(err, want) {
			t.Errorf("preload %s: %v", preload, err)
		}
	}
	for _, preload := range []string{"", "x", "-1", "1.5"} {
		if _, err := preloaded(preload, 3); err == nil {
			t.Errorf("preload %q passed", preload)
		}
	}
}

// TestGranndisStopsTogether: wherever one worker breaks, while looking up or in an
// epoch, all end and know why.
func TestGranndisStopsTogether(t *testing.T) {
	parts := cutForServers(t, communities(t, 100, false), "random", 4, 2)
	for _, sample := range []string{"", "1,5"} {
		for _, at := range []int{1, 10, 40, 150} {
			o := modelOptions("gcn")
			o.Epochs, o.Strategy.Sample = 50, sample
			ends := wire.NewGroup(4, wire.DefaultOptions())
			errs := make([]error, 4)
			var wg sync.WaitGroup
			for k := range parts {
				var end wire.Endpoint = ends[k]
				if k == 1 {
					end = newFailing(end, at)
				}
				wg.Go(func() {
					dev := tensor.NewRef()
					defer dev.Close()
					_, errs[k] = Worker(context.Background(), dev, parts[k], end, NewGroup(context.Background(), end, dev, parts[k].Book.Servers), o, nil)
				})
			}
			wg.Wait()
			for k, err := range errs {
				if err == nil || !strings.Contains(err.Error(), errUnplugged.Error()) {
					t.Errorf("broken at message %d: worker %d ended with %v", at, k, err)
				}
				ends[k].Close()
			}
		}
	}
}

// TestKeptDegrees: the sums that kept edges make are, for equal rows, those of all.
func TestKeptDegrees(t *testing.T) {
	dev := tensor.NewRef()
	whole := &nn.Degrees{All: []float64{4, 3, 0}, NoLoops: []float64{4, 3, 0}}
	of := func(k nn.Kind, in *graph.CSR, rows *nn.Degrees) []float64 {
		src, dst := dev.New(tensor.F64, 8, 1), dev.New(tensor.F64, 3, 1)
		dev.Upload(src, []float64{1, 1, 1, 1, 1, 1, 1, 1})
		columns := &nn.Degrees{All: make([]float64, 8), NoLoops: make([]float64, 8)}
		nn.NewPart(dev, in, 8, rows, columns, true).Sum(nn.Reduction{Kind: k}, dst, src, false)
		out := make([]float64, 3)
		dev.Download(out, dst)
		return out
	}
	all := &graph.CSR{Indptr: []int64{0, 4, 7, 7}, Indices: []uint32{3, 4, 5, 6, 5, 6, 7}}
	some := &graph.CSR{Indptr: []int64{0, 1, 3, 3}, Indices: []uint32{4, 5, 7}}
	rows := keptDegrees(whole, []float64{1. / 4, 2. / 3, 1})
	for _, k := range []nn.Kind{nn.Mean, nn.MeanSelf, nn.Symmetric} {
		got, want := of(k, some, rows), of(k, all, whole)
		for v := range want {
			if math.Abs(got[v]-want[v]) > 1e-12 {
				t.Errorf("kind %d: %v, want %v", k, got, want)
			}
		}
	}
}

// TestGranndisOverBudget: more layers than memory are refused by name.
func TestGranndisOverBudget(t *testing.T) {
	parts := cutForServers(t, communities(t, 60, false), "random", 2, 2)
	o := modelOptions("sage")
	o.Strategy.Preload, o.Strategy.Budget = "2", 100
	ends := wire.NewGroup(2, wire.DefaultOptions())
	var wg sync.WaitGroup
	for k := range parts {
		wg.Go(func() {
			dev := tensor.NewRef()
			_, err := Worker(context.Background(), dev, parts[k], ends[k], NewGroup(context.Background(), ends[k], dev, parts[k].Book.Servers), o, nil)
			if err == nil || !strings.Contains(err.Error(), "over the --memory-budget of 100 B") {
				t.Errorf("worker %d: %v", k, err)
			}
			ends[k].Close()
		})
	}
	wg.Wait()
}

// TestGranndisReceivesAShare: whatever share of the last preloaded layer's border is
// received all the same, the loss is one worker's, and what is sent was planned.
func TestGranndisReceivesAShare(t *testing.T) {
	for i, model := range []string{"gcn", "sage", "gat", "ressage+"} {
		d := communities(t, 100, i%2 == 1)
		o := modelOptions(model)
		want := mustTrain(t, tensor.NewRef(), d, o)
		parts := cutForServers(t, d, "random", 6, 2)
		for k := 2; k <= 3; k++ {
			var sent []int64
			for _, share := range []float64{0, 0.5, 1} {
				strategies["share"] = func(s *site) (planned, error) {
					l := newLookup(s)
					around, err := newSurroundings(l, k, l.works(), nil)
					if err != nil {
						return nil, err
					}
					if err := around.grow(k); err != nil {
						return nil, err
					}
					around.receive(share)
					return around.preload(k, graphLayers(s.opt.Model))
				}
				o.Strategy.Name = "share"
				run := trainServers(t, parts, onRef, o)
				for _, r := range run.results {
					sameCurve(t, fmt.Sprintf("%s, %d layers, %g received", model, k, share), r.Loss, want.Loss, 1e-9)
				}
				sent = append(sent, run.between(int16(k-1)))
			}
			if sent[0] != 0 || sent[1] <= 0 || sent[2] <= sent[1] {
				t.Errorf("%s, %d layers: bytes of the last are %v", model, k, sent)
			}
		}
	}
	delete(strategies, "share")
}

// TestReceivable: rows that come in 0.8 of the time in which near ones are added up.
func TestReceivable(t *testing.T) {
	g := growth{between: 10, relayed: 5, near: 100, copied: 50}
	c := costs{inside: 1, between: 3, layers: []layerCost{{}, {edge: 0.1, traffic: 2}}}
	want := 0.8 * 0.1 * 150 / (2*(3*10+5) + 0.8*0.1*50) // of share·70 = 0.08·(100 + (1-share)·50)
	if got := c.receivable(&g, 2); math.Abs(got-want) > 1e-12 {
		t.Errorf("receives %g, want %g", got, want)
	}
	if got := c.receivable(&g, 1); got != 0 {
		t.Errorf("with one layer receives %g", got)
	}
	if got := c.receivable(&growth{near: 1, copied: 1}, 2); got != 1 {
		t.Errorf("without a border receives %g", got)
	}
}
