package train

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/partition"
	"starling/tensor"
	"starling/wire"
)

func g3Options(model, pipeline string) Options {
	o := options(model)
	o.Strategy = DefaultChoice("g3")
	o.Strategy.Pipeline = pipeline
	o.Strategy.Budget = 2 << 10 // bins of a few vertices
	return o
}

// TestG3IsExact: every model and pipeline, on several workers and partitions, follows
// one worker's loss: to 1e-9 in float64, to 1e-4 in float32.
func TestG3IsExact(t *testing.T) {
	workers := []int{1, 2, 3, 5}
	method := func(w int) string { return []string{"random", "hash", "chunk", "fennel"}[w%4] }
	for _, sparse := range []bool{false, true} {
		d := communities(t, 120, sparse)
		cuts := map[int][]*partition.Part{}
		for _, w := range workers {
			cuts[w] = cut(t, d, method(w), w)
		}
		for _, model := range nn.Models {
			o := g3Options(model, "both")
			o.Epochs, o.EvalEvery = 4, 2
			if o.Model.Layers > 2 {
				o.Model.Layers = 4
			}
			if model == "gcn" {
				o.Model.Norm = "batch"
			}
			want := mustTrain(t, tensor.NewRef(), d, o)
			for i, w := range workers {
				parts := cuts[w]
				o.Strategy.Pipeline = []string{"none", "intra", "both", "inter"}[i]
				label := fmt.Sprintf("%s sparse=%v on %d workers cut by %s, pipeline %s", model, sparse, w, method(w), o.Strategy.Pipeline)
				for _, r := range trainParts(t, parts, func() tensor.Device { return tensor.NewRef() }, o) {
					sameCurve(t, label, r.Loss, want.Loss, 1e-9)
					sameCurve(t, label+", validation", r.Val, want.Val, 1e-9)
				}
				for _, r := range trainParts(t, parts, func() tensor.Device { return tensor.NewCPU(1) }, o) {
					sameCurve(t, label+", float32", r.Loss, want.Loss, 1e-4)
				}
			}
		}
	}
}

// g3Choice has bins of a few vertices in small models.
func g3Choice(pipeline string) Choice { return g3Options("gcn", pipeline).Strategy }

func TestG3OnOddParts(t *testing.T) {
	for _, pipeline := range []string{"none", "both"} {
		exactOnOddParts(t, g3Choice(pipeline))
	}
}

func TestG3StopsTogether(t *testing.T) { allStop(t, g3Choice("both")) }

// TestG3SameBits: whatever rows come first, equal runs have equal bits.
func TestG3SameBits(t *testing.T) {
	for _, model := range []string{"sage", "sage-pool", "gat", "gatv2", "film", "ressage+"} {
		d := communities(t, 300, false)
		o := g3Options(model, "both")
		o.Epochs, o.EvalEvery, o.Model.Layers = 5, 0, 3
		parts := cut(t, d, "fennel", 3)
		want := trainParts(t, parts, func() tensor.Device { return tensor.NewCPU(1) }, o)[0]
		for range 3 {
			if r := trainParts(t, parts, func() tensor.Device { return tensor.NewCPU(2) }, o)[0]; !slices.Equal(r.Loss, want.Loss) {
				t.Fatalf("%s: losses %v, before %v", model, r.Loss, want.Loss)
			}
		}
	}
}

// TestG3Orders: in both orders each row travels once, and what one worker sends in a
// chunk is what the other expects in it.
func TestG3Orders(t *testing.T) {
	d := communities(t, 150, false)
	parts := cut(t, d, "fennel", 4)
	bound := func(rows int) []int { return cutBins(rows, 5) }
	dev := tensor.NewRef()
	for _, name := range []string{"owner", "need"} {
		sent, expected := map[string][]uint32{}, map[string][]uint32{}
		for k, p := range parts {
			l := haloLists(p)
			cut := &cutting{site: &site{dev: dev, part: p}, lists: &l, bins: newBins(p, bound(p.Core())), theirs: boundsOf(p, bound)}
			send, far := cut.byOwner()
			if name == "need" {
				send, far, _ = cut.byNeed(nil)
			}
			o := cut.order(send, far)
			at := o.farAt
			rows := slices.Clone(p.Send)
			for q := range parts { // the same sort, the dumb way
				mine := rows[p.SendPtr[q]:p.SendPtr[q+1]]
				place := map[uint32]int{}
				for i, v := range p.SendTo(q) {
					place[v] = send[int(p.SendPtr[q])+i]
				}
				slices.SortStableFunc(mine, func(a, b uint32) int { return place[a] - place[b] })
			}
			for _, c := range o.sends {
				for _, v := range rows[c.lo:c.hi] {
					key := fmt.Sprintf("%d to %d, %d", k, c.peer, c.number)
					sent[key] = append(sent[key], p.IDs[v])
				}
			}
			back := make([]int, len(at))
			for i, place := range at {
				back[place] = i
			}
			for _, c := range o.fars {
				for row := c.lo; row < c.hi; row++ {
					key := fmt.Sprintf("%d to %d, %d", c.peer, k, c.number)
					expected[key] = append(expected[key], p.IDs[p.Core()+back[row]])
				}
			}
		}
		if len(sent) != len(expected) || len(sent) < 20 {
			t.Fatalf("by %s: %d chunks leave, %d are expected", name, len(sent), len(expected))
		}
		for key, ids := range sent {
			if !slices.Equal(ids, expected[key]) {
				t.Fatalf("by %s, %s: %v leave, %v are expected", name, key, ids, expected[key])
			}
		}
	}
}

// TestBinsCoverAllRows: bins are ranges one after the other, within the budget.
func TestBinsCoverAllRows(t *testing.T) {
	for _, rows := range []int{0, 1, 5, 16, 17, 1000, 123456} {
		for _, budget := range []int64{0, 1, 1 << 10, 1 << 30} {
			each := binRows(rows, 100, budget)
			at := cutBins(rows, each)
			if budget >= 200 && int64(each)*100 > budget/2 || at[0] != 0 || at[len(at)-1] != rows || budget == 0 && len(at)-1 > mostBins {
				t.Fatalf("%d rows, budget %d: %d rows a bin, bounds %v", rows, budget, each, at)
			}
			for b := range len(at) - 1 {
				if rows > 0 && (at[b] >= at[b+1] || at[b+1]-at[b] > each || binOf(at, at[b]) != b || binOf(at, at[b+1]-1) != b) {
					t.Fatalf("%d rows, budget %d: bin %d of %v", rows, budget, b, at)
				}
			}
		}
	}
}

// TestG3Timeline: every exchange of an epoch is on the timeline, beside computation,
// and from it follows how much was hidden.
func TestG3Timeline(t *testing.T) {
	parts := cut(t, communities(t, 200, false), "hash", 2)
	o := g3Options("sage", "both")
	o.Epochs, o.EvalEvery, o.Model.Layers = 2, 0, 3
	ends := wire.NewGroup(2, wire.DefaultOptions())
	var spans []event.Span
	var wg sync.WaitGroup
	for k := range parts {
		wg.Go(func() {
			dev := tensor.NewRef()
			defer dev.Close()
			listen := event.Func(func(e event.Event) {
				if s, ok := e.(event.Span); ok && k == 0 {
					spans = append(spans, s)
				}
			})
			if _, err := Worker(context.Background(), dev, parts[k], ends[k], NewGroup(context.Background(), ends[k], dev, parts[k].Book.Servers), o, listen); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, e := range ends {
		e.Close()
	}
	var travel, wait time.Duration
	transfers, computed := 0, 0
	for _, s := range spans {
		switch {
		case s.Kind == "transfer" && s.Lane > 0 && strings.Contains(s.Name, "layer"):
			transfers++
			travel += s.Dur
		case s.Kind == "wait" && strings.Contains(s.Name, "layer") && s.Lane == 0:
			wait += s.Dur
		case (s.Kind == "forward" || s.Kind == "backward") && strings.Contains(s.Name, "bin"):
			computed++
		}
	}
	// Two layers go forwards and backwards in each epoch, and forwards to measure.
	if want := 2*4 + 2; transfers != want || computed == 0 {
		t.Fatalf("%d transfers and %d bins on the timeline, want %d transfers", transfers, computed, want)
	}
	t.Logf("rows travelled %v, %v of it waited for: %.0f%% hidden", travel, wait, 100*(1-float64(wait)/float64(travel)))
}

// TestG3Waves: on a dense graph, whose far rows are added wave by wave, g3 is as exact,
// on one server and on several, and equal runs have equal bits.
func TestG3Waves(t *testing.T) {
	d := crowded(t, 90)
	for _, model := range []string{"gcn", "sage", "gin", "ressage+"} {
		o := g3Options(model, "both")
		o.Epochs, o.EvalEvery = 4, 0
		want := mustTrain(t, tensor.NewRef(), d, o)
		for _, servers := range []int{1, 2} {
			parts := cut(t, d, "hash", 4)
			for _, p := range parts {
				p.Book.Servers = servers
			}
			if n := (&g3{exchanging: &exchanging{site: &site{part: parts[0]}}}).waveCount(); n < 2 {
				t.Fatalf("%d waves: the graph is not dense enough to try them", n)
			}
			label := fmt.Sprintf("%s on %d servers", model, servers)
			for _, r := range trainParts(t, parts, func() tensor.Device { return tensor.NewRef() }, o) {
				sameCurve(t, label, r.Loss, want.Loss, 1e-9)
			}
			first := trainParts(t, parts, func() tensor.Device { return tensor.NewCPU(1) }, o)[0]
			again := trainParts(t, parts, func() tensor.Device { return tensor.NewCPU(2) }, o)[0]
			sameCurve(t, label+", float32", first.Loss, want.Loss, 1e-4)
			if !slices.Equal(first.Loss, again.Loss) {
				t.Fatalf("%s: losses %v, then %v", label, first.Loss, again.Loss)
			}
		}
	}
}

// crowded is a graph in which every vertex has an edge to most others.
func crowded(t *testing.T, n int) *graph.Dataset {
	t.Helper()
	d := communities(t, n, false)
	var src, dst []uint32
	for u := range uint32(n) {
		for v := range u {
			if (u*7+v*3)%5 > 0 {
				src, dst = append(src, u), append(dst, v)
			}
		}
	}
	g, err := graph.FromEdges(n, src, dst, nil, graph.BuildOptions{Symmetrise: true})
	if err != nil {
		t.Fatal(err)
	}
	d.Graph, d.Meta.Edges = g, g.Edges()
	return d
}

// TestG3LooksBeforeItWaits: rows that came between a look and a wait are work, however
// long others take. Where all workers waited then, none ever went on.
func TestG3LooksBeforeItWaits(t *testing.T) {
	ends := wire.NewGroup(2, wire.DefaultOptions())
	defer ends[0].Close()
	defer ends[1].Close()
	key := func(step uint32) wire.Key { return wire.Key{Step: step} }
	came := ends[0].Recv(1, key(1), wire.Activation, make([]byte, 1))
	never := ends[0].Recv(1, key(2), wire.Activation, make([]byte, 1))
	ends[1].Send(0, key(1), wire.Activation, []byte{1})
	if err := came.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	e := &exact{site: &site{ctx: ctx, events: event.All()}}
	f := &flow{}
	g := &g3{exchanging: &exchanging{site: e.site}, moves: e, coming: []comer{{flow: f, pending: []*wire.Pending{never}}, {flow: f, pending: []*wire.Pending{came}}}}
	g.await()
	if ctx.Err() != nil || e.first != nil {
		t.Fatalf("waited for rows that nobody sends: %v, %v", ctx.Err(), e.first)
	}
}

// TestG3OfOneWayEdges: a part of a graph that is said to be symmetric, and is not, is the
// user's mistake.
func TestG3OfOneWayEdges(t *testing.T) {
	d := communities(t, 400, false)
	var src, dst []uint32
	for v := range uint32(400) {
		src, dst = append(src, v), append(dst, (v+1)%400)
	}
	var err error
	if d.Graph, err = graph.FromEdges(400, src, dst, nil, graph.BuildOptions{}); err != nil {
		t.Fatal(err)
	}
	d.Meta.Edges, d.Meta.Symmetric = d.Graph.Edges(), true
	dev, o := tensor.NewRef(), g3Options("gcn", "both")
	_, err = PlanOnPaper(cut(t, d, "random", 2)[0], wire.NewGroup(2, wire.DefaultOptions())[0], dev, nn.New(dev, o.Model, 1), nn.Classify{}, o)
	if !errors.Is(err, graph.ErrInput) || !strings.Contains(err.Error(), "edges without their way back") {
		t.Error(err)
	}
}
